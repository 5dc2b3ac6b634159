"""rackspan config show and check, and collecting from named clusters."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rackspan import api
from rackspan.api import Source
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, columns
from rackspan.model.snapshot import ReadSnapshot
from tests.cli.conftest import GOOD, Ran

Cli = Callable[..., Ran]

HIDDEN = "never-shown"


@pytest.fixture
def file(tmp_path: Path, cluster: EmbeddedCluster) -> Path:
    written = tmp_path / "rackspan.toml"
    (tmp_path / "fleet").write_text(f"client.id={HIDDEN}\n")
    written.write_text(f"""
command-config = "fleet"
min-insync-racks = 2
[topics."clicks"]
min.insync.racks = 1
leader.racks = ["eu-1a", "eu-1b"]
[clusters.dev]
bootstrap-server = "{cluster.bootstrap_servers}"
name = "Development"
[clusters.prod-eu]
bootstrap-server = "127.0.0.1:1"
command-config = "eu"
timeout = 500
[clusters.prod-eu.controllers]
3000 = "eu-1a"
""")
    return written


def settings(ran: Ran) -> dict[str, tuple[object, str]]:
    assert ran.code == 0, ran
    return {one["setting"]: (one["value"], one["from"]) for one in ran.document["settings"]}


def test_show_says_where_each_value_comes_from(
    cli: Cli, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKSPAN_UNRACKED", "own")
    (tmp_path / "config" / "rackspan").mkdir(parents=True)
    (tmp_path / "config" / "rackspan" / "rackspan.toml").write_text("timeout = 7000\nmin-insync-racks = 3\n")
    user = str(tmp_path / "config" / "rackspan" / "rackspan.toml")
    shared = {
        "command-config": ("fleet", "rackspan.toml"),
        "min-insync-racks": (2, "rackspan.toml"),
        "timeout": (7000, user),
        "unracked": ("own", "RACKSPAN_UNRACKED"),
        'topics."clicks" leader.racks': (["eu-1a", "eu-1b"], "rackspan.toml"),
        'topics."clicks" min.insync.racks': (1, "rackspan.toml"),
    }
    assert settings(cli("config", "show", "-o", "json")) == shared
    own = "rackspan.toml: [clusters.prod-eu]"
    assert settings(cli("config", "show", "--cluster", "prod-eu", "-o", "json")) == {
        **shared,
        "bootstrap-server": ("127.0.0.1:1", own),
        "command-config": ("eu", own),
        "timeout": (500, own),
        "controllers 3000": ("eu-1a", own),
    }


def test_show_has_the_brokers_that_are_excluded_and_where(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rackspan.toml").write_text("[brokers]\nexcluded = [7, 3]\n")
    assert settings(cli("config", "show", "-o", "json")) == {"brokers excluded": ([3, 7], "rackspan.toml")}


def test_show_lists_the_clusters_and_no_secret(cli: Cli, file: Path, cluster: EmbeddedCluster) -> None:
    ran = cli("config", "show", "-o", "json")
    assert [(one["cluster"], one["name"], one["command-config"]) for one in ran.document["clusters"]] == [
        ("dev", "Development", "fleet"),
        ("prod-eu", "prod-eu", "eu"),
    ]
    page = cli("config", "show")
    assert f"dev      Development  {cluster.bootstrap_servers}" in page.out
    assert HIDDEN not in ran.out + page.out


def test_check_reads_every_cluster_and_lists_what_is_wrong(cli: Cli, file: Path, tmp_path: Path) -> None:
    (tmp_path / "eu").write_text("")
    ran = cli("config", "check", "-o", "json")
    dev, prod = ran.document["clusters"]
    assert (ran.code, dev["read"], dev["brokers"], prod["read"]) == (1, True, 3, False)
    assert [one["problem"] for one in dev["problems"]] == [
        'rackspan.toml: [topics."clicks"] has no effect: no such topic'
    ]
    assert [one["problem"].split(":")[0] for one in prod["problems"]] == ["no broker responded"]
    assert cli("config", "check", "--cluster", "dev").code == 2


def test_check_waits_for_as_many_seconds_as_the_timeout_has(
    cli: Cli, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    snapshot = ClusterSnapshot(
        brokers=(Broker(BrokerId(1)),),
        topics=(),
        partitions=columns(topic=[], partition=[], leader=[], replicas=[], isr=[]),
        cluster_id="a",
    )

    def live_cluster(_address: str, _config: object, timeout_seconds: float, **_: object) -> Source:
        waits.append(timeout_seconds)
        return Source("here", lambda: ReadSnapshot(snapshot, ()))

    monkeypatch.setattr(api, "live_cluster", live_cluster)
    (tmp_path / "eu").write_text("")
    cli("config", "check", "--cluster", "prod-eu")
    assert waits == [0.5]


def test_check_without_problems_is_clean(cli: Cli, tmp_path: Path, cluster: EmbeddedCluster) -> None:
    (tmp_path / "rackspan.toml").write_text(f'[clusters.dev]\nbootstrap-server = "{cluster.bootstrap_servers}"\n')
    ran = cli("config", "check")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "no problems")


def test_check_offline_finds_a_wrong_command_config(cli: Cli, file: Path, tmp_path: Path) -> None:
    (tmp_path / "eu").write_text("ssl.colour=red\n")
    ran = cli("config", "check", "--offline", "-o", "json")
    dev, prod = ran.document["clusters"]
    assert (ran.code, dev["problems"], dev["brokers"]) == (1, [], None)
    assert "ssl.colour in --command-config" in prod["problems"][0]["problem"]


def test_check_lists_what_becomes_of_every_line_and_shows_no_value(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nacks={HIDDEN}\n# a comment\nssl.key.password={HIDDEN}\n"
        f'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{HIDDEN}";\n'
    )
    ran = cli("config", "check", "--command-config", "client.properties", "-o", "json")
    assert (ran.code, ran.document["clusters"]) == (0, [])
    [file] = ran.document["command-configs"]
    assert (file["file"], file["problem"]) == ("client.properties", None)
    assert [(line["line"], line["setting"], line["state"], line["reason"]) for line in file["lines"]] == [
        (1, "security.protocol", "used", ""),
        (2, "sasl.mechanism", "used", ""),
        (3, "acks", "ignored", "a setting of other clients and tools"),
        (5, "ssl.key.password", "ignored", "security.protocol is SASL_PLAINTEXT"),
        (6, "sasl.jaas.config", "used", ""),
    ]
    page = cli("config", "check", "--command-config", "client.properties")
    assert (page.code, page.out.splitlines()[0].split()) == (0, ["client.properties", "setting", "reason"])
    assert HIDDEN not in ran.out + page.out + page.err


def test_check_of_a_file_that_no_client_can_use_says_why_and_fails(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=SASL_SSL\nsasl.mechanisms=PLAIN\n")
    ran = cli("config", "check", "--command-config", "client.properties")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "1 problem")
    assert (
        "2  sasl.mechanisms    refused  no client of Kafka has such a setting; did you mean sasl.mechanism?" in ran.out
    )
    absent = cli("config", "check", "--command-config", "absent", "-o", "json")
    assert (absent.code, absent.document["command-configs"][0]["lines"]) == (1, [])


def test_check_names_an_address_of_another_protocol_and_one_that_is_none(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "rackspan.toml"
    file.write_text('[clusters.dev]\nbootstrap-server = "SASL_SSL://broker.example:9092"\n')
    ran = cli("config", "check", "--offline", "-o", "json")
    [problem] = ran.document["clusters"][0]["problems"]
    assert (ran.code, problem["problem"]) == (
        2,
        "--bootstrap-server SASL_SSL://broker.example:9092: the address says SASL_SSL, and connections use PLAINTEXT; "
        "set security.protocol=SASL_SSL, or leave SASL_SSL:// out",
    )
    file.write_text('[clusters.dev]\nbootstrap-server = "broker.example:99999"\n')
    ran = cli("config", "check", "--offline", "-o", "json")
    assert ran.code == 1
    assert (
        "'broker.example:99999' is not of the form HOST:PORT" in ran.document["clusters"][0]["problems"][0]["problem"]
    )


def test_a_command_warns_once_of_what_it_ignores(cli: Cli, tmp_path: Path, cluster: EmbeddedCluster) -> None:
    (tmp_path / "client.properties").write_text("acks=all\nbasic.auth.user.info=x\nretries=5\n")
    servers = f"PLAINTEXT://{cluster.bootstrap_servers}"
    ran = cli("snapshot", "--out", "s.json", "--bootstrap-server", servers, "--command-config", "client.properties")
    assert (ran.code, ran.err.splitlines()[:-1]) == (
        0,
        ["warning: --command-config: settings of other clients and tools are ignored: acks, basic.auth.user.info"],
    )


def test_check_of_nothing_says_so(cli: Cli) -> None:
    ran = cli("config", "check")
    assert (ran.code, ran.out) == (0, "no rackspan.toml: no named cluster to check; add [clusters.NAME]\n")


@pytest.mark.slow
def test_a_fleet_is_collected_by_name(cli: Cli, file: Path, tmp_path: Path) -> None:
    (tmp_path / "eu").write_text("")
    ran = cli("pipeline", "collect", "--all-clusters", "--warehouse", "out")
    assert ran.code == 1, "prod-eu is not there"
    kept, refused = (line.partition("Z ")[2] for line in sorted(ran.err.splitlines()))
    assert kept.startswith("Development: stored as ")
    assert refused.startswith("prod-eu: error: no broker responded: 127.0.0.1:1: connection refused")
    [named] = cli("pipeline", "table", "clusters", "--warehouse", "out", "-o", "json").document
    assert (named["name"], named["cluster"]) == ("Development", "dev")
    again = cli("pipeline", "collect", "--cluster", "dev", "--cluster", "dev", "--warehouse", "out")
    assert (again.code, len(again.err.splitlines())) == (0, 1)


@pytest.mark.parametrize(
    ("flags", "config", "timeout_seconds"),
    [((), "eu", 0.5), (("--timeout", "2000"), "eu", 2.0), (("--command-config", "own"), "own", 0.5)],
)
def test_what_a_cluster_of_the_file_has_counts_where_no_flag_is_given(
    cli: Cli,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    config: str,
    timeout_seconds: float,
) -> None:
    given: list[tuple[object, ...]] = []

    def live_cluster(address: str, config: Path | None, timeout_seconds: float, *, name: str, **_: object) -> Source:
        given.append((name, address, config, timeout_seconds))
        raise UsageError("enough")

    monkeypatch.setattr(api, "live_cluster", live_cluster)
    cli("pipeline", "collect", "--cluster", "prod-eu", *flags, "--warehouse", "out")
    assert given == [("prod-eu", "127.0.0.1:1", Path(config), timeout_seconds)]


@pytest.mark.slow
def test_a_flag_for_one_source_counts_before_the_files(cli: Cli, file: Path, tmp_path: Path) -> None:
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    file.write_text('cluster = "far"\n[clusters.far]\nbootstrap-server = "127.0.0.1:1"\n')
    ran = cli("pipeline", "collect", "--snapshot", "moment.json", "--warehouse", "out")
    assert (ran.code, len(ran.err.splitlines())) == (0, 1)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--all-clusters", "--cluster", "dev"), "--cluster and --all-clusters: name one of them"),
        (("--snapshot", "s.json", "--timeout", "5"), "--timeout: snapshots are read without a connection; leave it out"),
        (("--cluster", "dve"), "--cluster dve: no such cluster in rackspan.toml (did you mean 'dev'?); there are dev, prod-eu"),
        ((), "no source named: give --bootstrap-server HOST:PORT, --cluster NAME, --all-clusters, --snapshot FILE or --from-snapshots DIR"),
    ],
)  # fmt: skip
def test_a_mistake_about_sources_gets_one_line(cli: Cli, file: Path, words: tuple[str, ...], line: str) -> None:
    ran = cli("pipeline", "collect", "--warehouse", "out", *words)
    assert (ran.code, ran.err) == (1, f"rackspan: {line}\n")
