"""Where the value of an option comes from: flag, variable, the chosen cluster's table, the folder's file, the user's."""

import json
import pwd
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from rackspan.audit import FleetPolicy, RackPolicy
from rackspan.audit.policy import Survive
from rackspan.cluster import EmbeddedCluster
from rackspan.model import RackId
from rackspan.pipeline import RunReport
from tests.cli.conftest import GOOD, Ran, good

Cli = Callable[..., Ran]
Write = Callable[[object], Path]

ENFORCED: dict[str, Any] = json.loads(json.dumps(GOOD))
ENFORCED["topics"][0]["config"]["min.insync.racks"] = "2"


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    with EmbeddedCluster(racks=2, brokers=2) as two, EmbeddedCluster(racks=3, brokers=3) as three:
        yield two, three


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., None]:
    """Write the folder's rackspan.toml, and the user's."""

    def written(folder: str, user: str = "") -> None:
        (tmp_path / "rackspan.toml").write_text(folder)
        (tmp_path / "config" / "rackspan").mkdir(parents=True, exist_ok=True)
        (tmp_path / "config" / "rackspan" / "rackspan.toml").write_text(user)

    return written


def racks(ran: Ran) -> list[str]:
    assert ran.code in (0, 2), ran
    found: list[str] = ran.document["summary"]["racks"]
    return found


AUDIT = ("audit", "-o", "json")


def test_a_named_cluster_is_read(
    cli: Cli, files: Callable[..., None], clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    two, three = (one.bootstrap_servers for one in clusters)
    files(f'[clusters.two]\nbootstrap-server = "{two}"\n[clusters.three]\nbootstrap-server = "{three}"\n')
    assert racks(cli(*AUDIT, "--cluster", "two")) == ["r1", "r2"]
    assert racks(cli(*AUDIT, "--cluster", "three")) == ["r1", "r2", "r3"]


def test_the_source_named_at_the_highest_level_counts(
    cli: Cli,
    files: Callable[..., None],
    clusters: tuple[EmbeddedCluster, EmbeddedCluster],
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    two, three = (one.bootstrap_servers for one in clusters)
    path = write(good())
    files(f'cluster = "two"\n[clusters.two]\nbootstrap-server = "{two}"\n', f'bootstrap-server = "{three}"\n')
    assert racks(cli(*AUDIT)) == ["r1", "r2"], "the folder's file before the user's"
    monkeypatch.setenv("RACKSPAN_BOOTSTRAP_SERVER", three)
    assert racks(cli(*AUDIT)) == ["r1", "r2", "r3"], "a variable before a file"
    assert racks(cli(*AUDIT, "--cluster", "two")) == ["r1", "r2"], "a flag before a variable"
    assert len(cli(*AUDIT, "--snapshot", path).document["summary"]["racks"]) == 3, "a snapshot too"
    ran = cli(*AUDIT, "--cluster", "two", "--bootstrap-server", three)
    assert (ran.code, ran.err) == (1, "rackspan: --cluster and --bootstrap-server: name one of them\n")


def test_the_table_of_the_cluster_counts_before_the_file_and_a_flag_before_both(
    cli: Cli, files: Callable[..., None]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        files(f'timeout = 90000\n[clusters.far]\nbootstrap-server = "{address}"\ntimeout = 100\n')
        assert "no response within 0.1 s" in cli(*AUDIT, "--cluster", "far").err
        assert "no response within 0.3 s" in cli(*AUDIT, "--cluster", "far", "--timeout", "300").err


def test_one_command_config_serves_every_cluster_that_has_none(
    cli: Cli, files: Callable[..., None], tmp_path: Path
) -> None:
    nowhere = 'bootstrap-server = "127.0.0.1:1"\n'
    files(f'command-config = "fleet"\n[clusters.a]\n{nowhere}[clusters.b]\n{nowhere}command-config = "own"\n')
    (tmp_path / "fleet").write_text("of.the.fleet=1\n")
    (tmp_path / "own").write_text("its.own=1\n")
    assert "of.the.fleet" in cli(*AUDIT, "--cluster", "a").err
    assert "its.own" in cli(*AUDIT, "--cluster", "b").err


def test_a_path_in_the_users_file_is_beside_it(cli: Cli, files: Callable[..., None], tmp_path: Path) -> None:
    files("", '[clusters.a]\nbootstrap-server = "127.0.0.1:1"\ncommand-config = "own"\n')
    (tmp_path / "config" / "rackspan" / "own").write_text("its.own=1\n")
    assert "its.own" in cli(*AUDIT, "--cluster", "a").err


def test_the_racks_of_controllers_may_be_the_clusters_own(cli: Cli, files: Callable[..., None]) -> None:
    with EmbeddedCluster(racks=2, brokers=2) as cluster:
        ids = [one["id"] for one in cli("snapshot", "--bootstrap-server", cluster.bootstrap_servers, "--out", "-").document["controllers"]]  # fmt: skip
        lines = "\n".join(f'{one} = "r1"' for one in ids)
        files(f'[clusters.a]\nbootstrap-server = "{cluster.bootstrap_servers}"\n[clusters.a.controllers]\n{lines}\n')
        found = cli(*AUDIT, "--cluster", "a").document["findings"]
        assert "controller-quorum-spread" in {one["constraint"] for one in found}


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("", "--cluster prd: no cluster is named in rackspan.toml or {user}; add [clusters.prd] with bootstrap-server"),
        ('[clusters.prod]\nbootstrap-server = "h:1"\n', "--cluster prd: no such cluster in rackspan.toml (did you mean 'prod'?); there are prod"),
        ("[clusters.prd]\n", 'rackspan.toml: [clusters.prd] has no bootstrap-server; add bootstrap-server = "HOST:PORT"'),
        ('[clusters.prd]\nbootstrap-server = "h:1"\nwarehouse = "x"\n', 'rackspan.toml: [clusters.prd]: there is no key "warehouse"; there are topics, controllers, brokers, racks, name, cluster-id, survive, require-controllers, min-insync-racks, unracked, bootstrap-server, command-config, timeout, rack-locator-class, rack-locator-properties'),
        ('[clusters.prd]\nbootstrap-server = "h:1"\nname = 3\n', "rackspan.toml: [clusters.prd]: name is 3, not a string; fix it in the file"),
        ('cluster = "prd"\nbootstrap-server = "h:1"\n', "rackspan.toml: cluster and bootstrap-server name two clusters; remove one of them"),
        ("clusters = 1\n", "rackspan.toml: clusters is 1, not a table; fix it in the file"),
    ],
)  # fmt: skip
def test_a_mistake_about_named_clusters_gets_one_line(
    cli: Cli, files: Callable[..., None], tmp_path: Path, folder: str, line: str
) -> None:
    files(folder)
    ran = cli("audit", "--cluster", "prd")
    user = tmp_path / "config" / "rackspan" / "rackspan.toml"
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line.format(user=user)}\n")


def test_a_user_without_a_home_has_no_file_of_its_own(cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a number."""

    def nobody(_: object) -> NoReturn:
        raise KeyError

    for variable in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for look_up in ("getpwuid", "getpwnam"):
        monkeypatch.setattr(pwd, look_up, nobody)
    write(GOOD)
    assert cli("audit", "--snapshot", "moment.json").code == 0
    assert [file["path"] for file in cli("config", "show", "-o", "json").document["files"]] == ["rackspan.toml"]
    Path("rackspan.toml").write_text('command-config = "~kafka/client.properties"\n')
    ran = cli("audit", "--snapshot", "moment.json")
    line = "'~kafka/client.properties': the home of that user is not known; write the whole path"
    assert (ran.code, ran.err) == (1, f"rackspan: rackspan.toml: {line}\n")


def required(cli: Cli, *words: str) -> tuple[int, str]:
    """The racks that harden takes `orders` to require, and the warnings about settings, not those about losses."""
    ran = cli("acks", "harden", "--snapshot", "moment.json", "-o", "json", *words)
    lines = ran.err.splitlines(keepends=True)
    settings = [line for line in lines if not line.startswith("warning: topic orders, once the value is set:")]
    return ran.document["topics"][0]["min_insync_racks"], "".join(settings)


def test_a_flag_counts_before_a_topic_of_the_file_and_says_so(
    cli: Cli, files: Callable[..., None], write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(good())
    files('[topics."orders"]\nmin.insync.racks = 2\n')
    assert required(cli) == (2, "")
    overruled = (
        'warning: rackspan.toml: [topics."orders"] min.insync.racks = 2 has no effect: {} 3 counts for every topic\n'
    )
    assert required(cli, "--min-insync-racks", "3") == (3, overruled.format("--min-insync-racks"))
    monkeypatch.setenv("RACKSPAN_MIN_INSYNC_RACKS", "3")
    assert required(cli) == (3, overruled.format("RACKSPAN_MIN_INSYNC_RACKS"))


def test_the_folders_file_counts_before_a_topic_of_the_users(
    cli: Cli, files: Callable[..., None], write: Write
) -> None:
    write(good())
    files("", '[topics."orders"]\nmin.insync.racks = 3\n')
    assert required(cli) == (3, "")
    files("min-insync-racks = 2\n", '[topics."orders"]\nmin.insync.racks = 3\n')
    assert required(cli) == (2, "")


def test_the_higher_of_policy_and_cluster_counts(cli: Cli, files: Callable[..., None], write: Write) -> None:
    write(ENFORCED)
    enforced = (
        "warning: min.insync.racks of orders is higher in the cluster, whose brokers enforce it: that value counts\n"
    )
    assert required(cli) == (2, "")
    assert required(cli, "--min-insync-racks", "3") == (3, "")
    assert required(cli, "--min-insync-racks", "1") == (2, enforced)
    files('[topics."orders"]\nmin.insync.racks = 1\n')
    assert required(cli) == (2, enforced)
    files('[topics."orders"]\nmin.insync.racks = 3\n')
    assert required(cli) == (3, "")


def test_a_flag_above_the_clusters_own_value_is_audited(cli: Cli, write: Write) -> None:
    write(ENFORCED)
    words = ("--snapshot", "moment.json")
    assert cli("audit", *words).code == 0
    found = cli(*AUDIT, *words, "--min-insync-racks", "3")
    assert found.code == 2
    # Three racks that all have to be in sync: the loss of one stops writes.
    assert "accepts-writes-after-rack-loss" in {one["constraint"] for one in found.document["findings"]}


POLICY_VERBS = (
    ("audit",),
    ("outage",),
    ("acks", "harden"),
    ("reassign", "plan"),
    ("reassign", "lint", "--plan", "plan.json"),
)


@pytest.mark.parametrize("words", POLICY_VERBS)
def test_what_the_file_names_and_the_cluster_has_not_is_reported(
    cli: Cli, files: Callable[..., None], write: Write, tmp_path: Path, words: tuple[str, ...]
) -> None:
    write(good())
    (tmp_path / "plan.json").write_text('{"version": 1, "partitions": []}')
    files('[topics."ordres"]\nmin.insync.racks = 2\n[controllers]\n3000 = "r1"\n')
    assert cli(*words, "--snapshot", "moment.json").err == (
        "warning: rackspan.toml: [topics.\"ordres\"] has no effect: no such topic (did you mean 'orders'?)\n"
        "warning: [controllers] 3000 has no effect: no such controller; there are 1, 2, 3\n"
    )


def test_racks_for_leaders_that_the_cluster_lacks_are_reported(
    cli: Cli, files: Callable[..., None], write: Write
) -> None:
    write(good())
    files('[topics."orders"]\nleader.racks = ["r1", "r9"]\n')
    assert cli("audit", "--snapshot", "moment.json").err == (
        'warning: rackspan.toml: [topics."orders"] leader.racks: r9 has no effect: no such rack; there are r1, r2, r3\n'
    )


@pytest.mark.parametrize("value", ["[]", '"r1"', '["r1", "r1"]', "[1]"])
def test_racks_for_leaders_are_a_list_of_names(cli: Cli, files: Callable[..., None], write: Write, value: str) -> None:
    write(good())
    files(f'[topics."orders"]\nleader.racks = {value}\n')
    ran = cli("audit", "--snapshot", "moment.json")
    assert ran.code == 1
    assert "leader.racks" in ran.err
    assert ran.err.count("\n") == 1


def test_the_name_of_a_cluster_is_on_its_pages(
    cli: Cli, files: Callable[..., None], clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    three = clusters[1].bootstrap_servers
    files(f'[clusters.three]\nbootstrap-server = "{three}"\nname = "Production, Europe"\n')
    for verb, head in (("audit", "summary"), ("outage", None)):
        assert cli(verb, "--cluster", "three").out.splitlines()[1].startswith("cluster Production, Europe (")
        document = cli(verb, "--cluster", "three", "-o", "json").document
        assert (document if head is None else document[head])["cluster_name"] == "Production, Europe"


@pytest.mark.slow
def test_the_name_of_a_cluster_is_on_the_page_of_advice(
    cli: Cli, files: Callable[..., None], clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    files(f'[clusters.three]\nbootstrap-server = "{clusters[1].bootstrap_servers}"\nname = "Production, Europe"\n')
    assert (
        cli("advise", "--cluster", "three", "--seconds", "1")
        .out.splitlines()[1]
        .startswith("cluster Production, Europe at ")
    )


def test_an_address_that_leads_to_another_cluster_is_warned_of(
    cli: Cli, files: Callable[..., None], clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    three = clusters[1].bootstrap_servers
    named = f'[clusters.three]\nbootstrap-server = "{three}"\ncluster-id = '
    files(f'{named}"another"\n')
    warned = cli("audit", "--cluster", "three").err
    assert warned.startswith("warning: rackspan.toml: [clusters.three]: cluster-id: expected another, actual ")
    actual = cli("audit", "--cluster", "three", "-o", "json").document["summary"]["cluster_id"]
    files(f'{named}"{actual}"\n')
    assert cli("audit", "--cluster", "three").err == ""


EU = """
[clusters.eu]
bootstrap-server = "h:1"
name = "Europe"
cluster-id = "abc"
min-insync-racks = 2
[clusters.eu.topics."orders"]
survive = "none"
[clusters.eu.controllers]
3000 = "r1"
[clusters.eu.brokers]
excluded = [5]
"""


@pytest.fixture
def policies(monkeypatch: pytest.MonkeyPatch) -> list[FleetPolicy]:
    """The policies that pipeline run, follow and report get."""
    found: list[FleetPolicy] = []

    def ran(_warehouse: str, policies: FleetPolicy, *_others: object, **_options: object) -> Any:
        found.append(policies)
        return RunReport(None)

    def drawn(
        _warehouse: str, policies: FleetPolicy, _out: Path, names: Mapping[str, str], *_more: object
    ) -> list[str]:
        assert names == {"abc": "Europe"}
        found.append(policies)
        return []

    monkeypatch.setattr("rackspan.api.run_pipeline", ran)
    monkeypatch.setattr("rackspan.api.follow_pipeline", ran)
    monkeypatch.setattr("rackspan.api.report", drawn)
    return found


PIPELINE_VERBS = (("run",), ("follow", "--available-now"), ("report", "--out", "r.html"))


def test_the_pipeline_judges_each_cluster_by_its_own_tables_of_the_file(
    cli: Cli, files: Callable[..., None], policies: list[FleetPolicy]
) -> None:
    files('survive = "broker"\n[topics."clicks"]\nsurvive = "none"\n[brokers]\nexcluded = [4]\n' + EU)
    for verb in PIPELINE_VERBS:
        assert "warning" not in cli("pipeline", *verb, "--warehouse", "w").err
    general = RackPolicy(
        survive=Survive.BROKER, topic_survive={"clicks": Survive.NONE}, excluded_brokers=frozenset({4})
    )
    of_eu = RackPolicy(
        min_insync_racks=2,
        survive=Survive.BROKER,
        topic_survive={"orders": Survive.NONE, "clicks": Survive.NONE},
        controller_racks={3000: RackId("r1")},
        excluded_brokers=frozenset({5}),
    )
    assert policies == [FleetPolicy(general, {"abc": of_eu})] * 3


def test_a_flag_of_the_pipeline_counts_for_every_cluster_and_says_what_it_overrules(
    cli: Cli, files: Callable[..., None], policies: list[FleetPolicy]
) -> None:
    files(EU)
    ran = cli("pipeline", "run", "--warehouse", "w", "--min-insync-racks", "3", "--survive", "rack")
    assert [
        (one.min_insync_racks, one.topic_survive) for one in (policies[0].general, policies[0].of_cluster("abc"))
    ] == [
        (3, {}),
        (3, {}),
    ]
    assert ran.err.partition("Z ")[2].startswith(
        'warning: rackspan.toml: [clusters.eu]: [topics."orders"] survive = none has no effect: --survive rack counts for every topic'
    )


def test_the_pipeline_names_the_tables_of_clusters_that_it_cannot_find(
    cli: Cli, files: Callable[..., None], policies: list[FleetPolicy]
) -> None:
    files(
        EU
        + '[clusters.us]\nbootstrap-server = "h:2"\nsurvive = "none"\n[clusters.us.brokers]\nexcluded = [5]\n'
        + '[clusters.zz]\nbootstrap-server = "h:3"\ncluster-id = "abc"\nsurvive = "none"\n'
    )
    warned = [line.partition("Z ")[2] for line in cli("pipeline", "run", "--warehouse", "w").err.splitlines()]
    assert warned[:3] == [
        f"warning: rackspan.toml: [clusters.us]: {what} has no effect here: a warehouse has clusters by their id; "
        'add cluster-id = "ID" (rackspan audit --cluster us -o json prints it)'
        for what in ("[brokers]", "survive")
    ] + ["warning: rackspan.toml: [clusters.zz]: has no effect here: [clusters.eu] has the same cluster-id"]
    assert set(policies[0].by_cluster) == {"abc"}
    assert policies[0].of_cluster("abc").survive is Survive.RACK


SURVIVES_NOTHING = 'survive = "none"\n'


def test_another_file_takes_the_place_of_the_folders(
    cli: Cli, files: Callable[..., None], write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag counts before the variable, on either side of the command; the user's own file stays below it."""
    path = write(good())
    files('unracked = "ignore"\n', "min-insync-racks = 2\n")
    named, other = tmp_path / "named.toml", tmp_path / "other.toml"
    named.write_text(SURVIVES_NOTHING)
    other.write_text('unracked = "own"\n')
    users = str(tmp_path / "config" / "rackspan" / "rackspan.toml")

    def in_force(*words: str) -> Any:
        return cli(*words, "--snapshot", str(path), "-o", "json").document["settings"]

    folders = {"unracked": "ignore", "min-insync-racks": 2}
    assert in_force("audit") == {"files": [str(tmp_path / "rackspan.toml"), users], "values": folders}
    monkeypatch.setenv("RACKSPAN_SETTINGS", str(other))
    assert in_force("audit")["values"] == {"unracked": "own", "min-insync-racks": 2}
    expected = {"files": [str(named), users], "values": {"survive": "none", "min-insync-racks": 2}}
    for words in (
        ("--settings", str(named), "audit"),
        ("audit", "--settings", str(named)),
        ("audit", f"--settings={named}"),
        ("--debug", "audit", "--settings", str(other), "--settings", str(named)),
    ):
        assert in_force(*words) == expected, words


@pytest.mark.parametrize(
    ("words", "variable", "line"),
    [
        (("audit", "--settings", "no.toml"), "", "--settings no.toml: no such file; name a rackspan.toml"),
        (("audit",), "no.toml", "RACKSPAN_SETTINGS is no.toml: no such file; name a rackspan.toml"),
        (("audit", "--settings"), "", "--settings: no file is named; give --settings FILE"),
        (("audit", "--settings="), "", "--settings: no file is named; give --settings FILE"),
        (("demo", "--settings", "there.toml"), "", "--settings: rackspan demo reads no settings; leave it out"),
        (
            ("schema", "audit", "--settings", "there.toml"),
            "",
            "--settings: rackspan schema reads no settings; leave it out",
        ),
    ],
)
def test_a_file_that_cannot_be_meant_is_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], variable: str, line: str
) -> None:
    (tmp_path / "there.toml").write_text("")
    monkeypatch.setenv("RACKSPAN_SETTINGS", variable)
    ran = cli(*words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")


def test_config_show_lists_the_named_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "named.toml").write_text(SURVIVES_NOTHING)
    shown = cli("config", "show", "--settings", "named.toml", "-o", "json").document
    assert shown["files"][0] == {"path": "named.toml", "found": True}
    assert shown["settings"] == [{"setting": "survive", "value": "none", "from": "named.toml"}]
    assert "rackspan.toml" not in cli("audit", "--cluster", "x", "--settings", "named.toml").err.partition("config")[0]


AT = ("--snapshot", "moment.json")
JUDGING = {
    "audit": AT,
    "outage": AT,
    "advise": AT,
    "place create": (*AT, "--topic", "new", "--partitions", "2", "--replication-factor", "2"),
    "place extend": (*AT, "--topic", "orders", "--partitions", "4"),
    "reassign plan": (*AT, "--drain", "1"),
    "restart plan": AT,
    "restart safe": (*AT, "--broker", "1"),
    "acks harden": AT,
}


@pytest.mark.parametrize("words", JUDGING)
def test_what_judges_a_cluster_says_first_by_which_file(cli: Cli, write: Write, tmp_path: Path, words: str) -> None:
    write(good())
    command = (*words.split(), *JUDGING[words])
    assert cli(*command).out.splitlines()[0] == "settings: none"
    (tmp_path / "rackspan.toml").write_text('unracked = "shared"\n')
    assert cli(*command).out.splitlines()[0] == "settings: rackspan.toml"
    expected = {"files": [str(tmp_path / "rackspan.toml")], "values": {"unracked": "shared"}}
    assert cli(*command, "-o", "json").document["settings"] == expected
    assert "settings" not in cli(*command, "-o", "csv").out


def test_the_values_of_the_chosen_cluster_are_in_force(
    cli: Cli, files: Callable[..., None], clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    files(
        'warehouse = "w"\nsurvive = "broker"\n[topics."orders"]\nleader.racks = ["a"]\n[clusters.two]\n'
        f'bootstrap-server = "{clusters[0].bootstrap_servers}"\nsurvive = "none"\n'
        '[clusters.two.controllers]\n3000 = "r1"\n[clusters.two.brokers]\nexcluded = [2]\n'
    )
    assert cli(*AUDIT, "--cluster", "two").document["settings"]["values"] == {
        "survive": "none",
        'topics."orders" leader.racks': ["a"],
        "controllers 3000": "r1",
        "brokers excluded": [2],
    }


def test_a_plan_of_other_settings_gets_a_warning_where_it_is_carried_out(
    cli: Cli, write: Write, tmp_path: Path
) -> None:
    write(good())
    settings = tmp_path / "rackspan.toml"
    settings.write_text('[topics."orders"]\nleader.racks = ["r2"]\n[brokers]\nexcluded = [6]\n')
    cli("reassign", "plan", *AT, "--drain", "1", "--out", "plan.json")
    (tmp_path / "restart.json").write_text(cli("restart", "plan", *AT, "-o", "json").out)
    cli("place", "create", *JUDGING["place create"], "--out", "new.json")
    commands = (
        ("plan.json", ("reassign", "apply", "--plan", "plan.json")),
        ("new.json", ("place", "create", "--plan", "new.json")),
    )
    for file, words in commands:
        assert "other settings" not in cli(*words, *AT).err, file
    settings.write_text('[topics."orders"]\nleader.racks = ["r2"]\n[brokers]\nexcluded = [5, 6]\n')
    for file, words in commands:
        assert cli(*words, *AT).err.splitlines()[0] == (
            f"warning: {file}: made by other settings ({settings}): brokers excluded was 6 and is 5,6; "
            f"plan again, or give --settings {settings}"
        )
    assert "other settings" not in cli("reassign", "undo", "--plan", "plan.json", *AT).err
    settings.unlink()
    [line] = [
        line for line in cli("reassign", "apply", "--plan", "plan.json", *AT).err.splitlines() if "settings" in line
    ]
    assert 'topics."orders" leader.racks was r2 and is not set, brokers excluded was 6 and is not set; ' in line
