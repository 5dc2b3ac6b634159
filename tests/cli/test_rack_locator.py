"""--rack-locator-class and --rack-locator-properties: every verb that reads a cluster judges the located racks."""

import json
from pathlib import Path

import pytest

from rackspan.cli import main
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns, json_format

LOCATED = ["--rack-locator-class", "properties", "--rack-locator-properties", "0=x,1=x,2=y"]


@pytest.fixture(autouse=True)
def timestamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three brokers, registered in a rack each, hosts that say otherwise; a topic on the first two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "moment.json"
    path.write_text(
        json_format.write(
            ClusterSnapshot(
                brokers=tuple(Broker(BrokerId(i), RackId("abc"[i]), host=f"{'xxy'[i]}{i}.example") for i in range(3)),
                topics=(Topic(TopicName("orders")),),
                partitions=columns(topic=[0], partition=[0], leader=[0], replicas=[[0, 1]], isr=[[0, 1]]),
            )
        )
    )
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def test_audit_judges_the_located_racks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "audit", "--snapshot", "moment.json", "-o", "json")
    assert (code, json.loads(out)["summary"]["racks"]) == (0, ["a", "b", "c"])
    code, out, _ = run(capsys, "audit", "--snapshot", "moment.json", *LOCATED, "-o", "json")
    document = json.loads(out)
    assert (code, document["summary"]["racks"]) == (2, ["x", "y"])
    assert [one["reason"] for one in document["findings"] if one["severity"] == "violation"] == [
        "the loss of rack x takes it offline (x: 0,1)"
    ]


def test_outage_loses_the_located_racks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "outage", "--snapshot", "moment.json", *LOCATED, "--lose", "x", "-o", "json")
    assert code == 2
    assert json.loads(out)["losses"][0]["topics"][0]["offline"] == 1


def test_harden_counts_the_located_racks(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(
        capsys, "acks", "harden", "--snapshot", "moment.json", *LOCATED, "--min-insync-racks", "2", "-o", "json"
    )
    assert json.loads(out)["topics"][0]["outcome"] == "impossible"


def test_reassign_plan_moves_into_the_located_racks(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "reassign", "plan", "--snapshot", "moment.json", *LOCATED, "-o", "json")
    (moved,) = json.loads(out)["partitions"]
    assert code == 2
    assert 2 in moved["replicas"], "broker 2 alone is in rack y"


@pytest.mark.parametrize(
    "words", [("create", "--topic", "new", "--replication-factor", "2"), ("extend", "--topic", "orders")]
)
def test_placing_spreads_over_the_located_racks(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    command = ["place", *words, "--partitions", "4", "--snapshot", "moment.json", *LOCATED, "-o", "json"]
    code, out, err = run(capsys, *command)
    assert (code, err) == (2, "")
    assert all(2 in replicas for replicas in json.loads(out)["assignments"].values()), "broker 2 alone is in rack y"


def test_ignoring_racks_says_that_the_locator_has_no_effect(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("place", "create", "--topic", "new", "--replication-factor", "2", "--partitions", "4")
    code, _, err = run(capsys, *command, "--snapshot", "moment.json", *LOCATED, "--ignore-racks")
    assert (code, err) == (
        2,
        "warning: --ignore-racks: the racks that properties returns have no effect on the placement\n",
    )


def test_generate_spreads_over_the_located_racks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text('{"version": 1, "topics": [{"topic": "orders"}]}')
    command = ["reassign", "generate", "--topics-to-move-json-file", "topics.json", "--broker-list", "0,1,2"]
    code, out, _ = run(capsys, *command, "--snapshot", "moment.json", *LOCATED, "-o", "json")
    assert code == 2
    assert all(2 in one["replicas"] for one in json.loads(out)["proposed"]["partitions"])


def test_a_snapshot_is_written_with_the_located_racks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--rack-locator-class", "host-pattern", "--rack-locator-properties", r"pattern=^([a-z])\d"]
    assert run(capsys, "snapshot", "--snapshot", "moment.json", *words, "--out", "located.json")[0] == 0
    written = json.loads((tmp_path / "located.json").read_text())
    assert [broker["rack"] for broker in written["brokers"]] == ["x", "x", "y"]


def test_the_settings_may_name_the_locator(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "rackspan.toml").write_text(
        'rack-locator-class = "properties"\nrack-locator-properties = "0=x,1=x,2=y"\n'
    )
    code, out, _ = run(capsys, "audit", "--snapshot", "moment.json", "-o", "json")
    assert (code, json.loads(out)["summary"]["racks"]) == (2, ["x", "y"])


def test_no_racks_found_is_a_cluster_without_racks(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "audit", "--snapshot", "moment.json", "--rack-locator-class", "properties", "-o", "json")
    assert json.loads(out)["summary"]["racks"] == ["(no rack)"]


WRONG = [
    (
        ["--rack-locator-properties", "0=x"],
        "--rack-locator-properties: for no locator; name one with --rack-locator-class",
    ),
    (
        ["--rack-locator-class", "nobodys"],
        "rack locator 'nobodys': not found; there are availability-zones, command, file, host-pattern, properties, "
        "registered, or name a module:Class",
    ),
    (
        ["--rack-locator-class", "properties", "--rack-locator-properties", "0"],
        "rack.locator.properties: pair 1 is not key=value; write them as a=1,b=2",
    ),
    (
        ["--rack-locator-class", "file", "--rack-locator-properties", "path=gone"],
        "rack locator file: gone: No such file or directory; correct path",
    ),
    (
        ["--rack-locator-class", "command", "--rack-locator-properties", "command=false"],
        "rack locator command: false: exit code 1: nothing on standard error; fix the command",
    ),
]


@pytest.mark.parametrize(("words", "line"), WRONG)
@pytest.mark.parametrize("verb", [["audit"], ["outage"], ["snapshot", "--out", "new.json"], ["acks", "harden"]])
def test_a_mistake_is_one_line_whatever_the_verb(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, timestamp: Path, verb: list[str], words: list[str], line: str
) -> None:
    before = timestamp.read_bytes()
    assert run(capsys, *verb, "--snapshot", "moment.json", *words) == (1, "", f"rackspan: {line}\n")
    assert timestamp.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["moment.json"]
