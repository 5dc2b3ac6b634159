"""rackspan acks harden, as it is typed."""

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from rackspan.cli import main
from rackspan.client import requests
from rackspan.client.cluster import ClusterConnection
from rackspan.cluster import EmbeddedCluster
from rackspan.model import json_format
from tests.snapshots import of_one_topic


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two brokers in each of three racks; orders has 2/2/1 replicas and requires 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    racks = {broker: "abc"[broker % 3] for broker in range(6)}
    path = tmp_path / "moment.json"
    path.write_text(json_format.write(of_one_topic(racks, [[0, 3, 1, 4, 2]], config={"min.insync.replicas": "2"})))
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_topic_to_raise_is_something_to_act_on(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "acks", "harden", "--snapshot", snapshot, "--min-insync-racks", 2, "-o", "json")
    document = json.loads(out)
    assert code == 2
    assert document["summary"]["outcomes"] == {"raise": 1}
    (topic,) = document["topics"]
    assert (topic["topic"], topic["current"], topic["least"], topic["losses"]) == ("orders", 2, 3, [])
    assert document["commands"] == [
        "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name orders"
        " --add-config min.insync.replicas=3"
    ]


def test_a_value_that_a_lost_rack_brings_a_topic_under_is_named_before_it_is_set(
    snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, err = run(capsys, "acks", "harden", "--snapshot", snapshot, "--min-insync-racks", 3)
    assert err.startswith("warning: topic orders, once the value is set: the loss of rack a or b or c leaves too few")
    assert run(capsys, "acks", "harden", "--snapshot", snapshot, "--min-insync-racks", 2)[2] == ""


def test_a_value_that_is_not_in_the_snapshot_is_shown_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "moment.json"
    path.write_text(json_format.write(of_one_topic({1: "a", 2: "b", 3: "c"}, [[1, 2, 3]])))
    code, out, _ = run(capsys, "acks", "harden", "--snapshot", path, "--min-insync-racks", 2)
    words = " ".join(out.split())
    assert code == 2
    assert "is not in the snapshot, and is judged as 1" in words
    assert "min.insync.replicas now unknown needed 2" in words
    assert "kafka-configs.sh" not in words


def test_a_person_reads_the_same(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "acks", "harden", "--snapshot", snapshot, "--min-insync-racks", 2)
    assert code == 2
    assert "topics: 1 to raise" in out
    assert (
        "By Kafka's own tool:\n"
        "  kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name orders"
        " --add-config min.insync.replicas=3\n"
    ) in out


def test_a_price_is_shown_rack_by_rack(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "acks", "harden", "--snapshot", snapshot, "--min-insync-racks", 3, "-o", "json")
    (topic,) = json.loads(out)["topics"]
    assert topic["losses"][0] == {
        "rack": "a",
        "stopped_by_value": 0,
        "stopped_by_both": 1,
        "words": "if rack a is lost, 1 of 1 partition refuses acks=all: 1 under min.insync.racks too",
    }
    assert topic["better"] == [
        {"replication_factor": 6, "spread": [2, 2, 2], "least": 5, "survives_broker": True, "survives_rack": False}
    ]


def test_without_required_racks_it_names_the_option(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "acks", "harden", "--snapshot", snapshot)
    assert (code, out) == (
        0,
        "settings: none\nno topic requires more than 1 rack; set the number with --min-insync-racks N\n",
    )


def test_a_topic_may_require_less_in_the_settings(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snapshot.parent / "rackspan.toml").write_text('min-insync-racks = 2\n[topics."orders"]\nmin.insync.racks = 1\n')
    code, out, _ = run(capsys, "acks", "harden", "--snapshot", snapshot, "-o", "json")
    assert (code, json.loads(out)["topics"][0]["outcome"]) == (0, "nothing-asked")


WRONG = [
    (
        ["--snapshot", "moment.json", "--apply"],
        "--apply: a snapshot cannot be changed; name the cluster with --bootstrap-server HOST:PORT or --cluster NAME",
    ),
    ([], "no cluster named: give --bootstrap-server HOST:PORT, --cluster NAME or --snapshot FILE"),
    (["--snapshot", "moment.json", "--bootstrap-server", "h:1"], "--bootstrap-server and --snapshot: name one of them"),
    (
        ["--snapshot", "moment.json", "--topic", "ord("],
        "--topic 'ord(': not a regular expression: missing ), unterminated subpattern at position 3; write one such as orders-.*",
    ),
    (
        ["--snapshot", "moment.json", "--topic", "ord"],
        "--topic 'ord': matches none of 1 topic by its whole name (did you mean 'orders'?)",
    ),
    (
        ["--snapshot", "gone.json"],
        "gone.json: no such file or folder; take a snapshot with rackspan snapshot --out gone.json",
    ),
]


@pytest.mark.parametrize(("words", "line"), WRONG)
def test_a_mistake_is_one_line_and_exit_1(
    snapshot: Path, capsys: pytest.CaptureFixture[str], words: list[str], line: str
) -> None:
    before = snapshot.read_bytes()
    code, out, err = run(capsys, "acks", "harden", *words)
    assert (code, out, err) == (1, "", f"rackspan: {line}\n")
    assert snapshot.read_bytes() == before


@pytest.mark.slow
def test_a_value_that_stops_what_continues_now_is_not_set_and_its_remedy_leads_to_one_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    odd = {"version": 1, "partitions": [{"topic": "orders", "partition": 2, "replicas": [1, 4, 2, 3]}]}
    (tmp_path / "odd.json").write_text(json.dumps(odd))
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        replicas = [[1, 2, 3], [4, 5, 6], [1, 2, 3]]
        cluster.create_topic("orders", replicas=replicas, config={"min.insync.replicas": "1"})
        live = ("--bootstrap-server", cluster.bootstrap_servers)
        ended = run(
            capsys, "reassign", "apply", *live, "--plan", "odd.json", "--cluster-id", cluster.cluster_id, "--apply"
        )
        assert ended[0] == 0, ended
        apply = ("acks", "harden", *live, "--min-insync-racks", "2", "--topic", "orders", "--apply", "-o", "json")
        code, out, err = run(capsys, *apply)
        document = json.loads(out)
        command = f"rackspan reassign plan {' '.join(live)} --min-insync-racks 2 --topic orders --replication-factor 3"
        assert (code, document["applied"], document["commands"]) == (1, [], [])
        (refused,) = [line for line in err.splitlines() if "not set" in line]
        assert "stop acks=all after a loss on 3 of 3 partitions" in refused
        assert command in refused
        assert run(capsys, *command.split()[1:], "--out", "plan.json")[0] == 2
        assert run(capsys, "reassign", "apply", *live, "--plan", "plan.json", "--apply")[0] == 0
        code, out, _ = run(capsys, *apply)
        assert (code, json.loads(out)["applied"]) == (0, [{"topic": "orders", "min.insync.replicas": 2}])


def test_a_value_that_could_not_be_read_is_not_lowered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker that describes configs ends its connection once, as when it restarts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    described, readings = requests.topic_configs, count(1)

    async def interrupted_once(connection: ClusterConnection, topics: Sequence[str]) -> requests.DescribedConfigs[str]:
        if next(readings) == 1:
            raise ConnectionResetError("the broker closed the connection")
        return await described(connection, topics)

    monkeypatch.setattr(requests, "topic_configs", interrupted_once)
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("orders", 3, 3, config={"min.insync.replicas": "3"})
        apply = (
            "acks",
            "harden",
            "--bootstrap-server",
            cluster.bootstrap_servers,
            "--min-insync-racks",
            "2",
            "--apply",
        )
        code, out, err = run(capsys, *apply, "-o", "json")
        document = json.loads(out)
        assert (code, document["applied"], document["topics"][0]["current"]) == (0, [], 3)
        assert (
            "topic orders: not set: its min.insync.replicas could not be read, and may be above 2; harden again" in err
        )


def test_the_address_of_a_cluster_stands_in_the_commands_of_every_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("orders", 3, 3, config={"min.insync.replicas": "1"})
        address = cluster.bootstrap_servers
        (tmp_path / "rackspan.toml").write_text(f'[clusters.prd]\nbootstrap-server = "{address}"\n')
        for words in (
            ("audit", "--bootstrap-server", address),
            ("audit", "--cluster", "prd"),
            ("advise", "--bootstrap-server", address, "--seconds", "1"),
            ("acks", "harden", "--bootstrap-server", address, "--min-insync-racks", "2"),
        ):
            _, out, _ = run(capsys, *words, "-o", "json")
            assert f"kafka-configs.sh --bootstrap-server {address} --alter" in out, words
            assert "HOST:PORT" not in out, words
