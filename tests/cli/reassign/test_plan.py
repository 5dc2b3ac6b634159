import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rackspan.cli.reassign import plan
from rackspan.errors import RackspanError
from rackspan.model import ClusterSnapshot
from rackspan.sources import snapshot_file
from tests.reassign.instances import cluster, instance
from tests.snapshots import of_one_topic

CLEAN = cluster([[0, 1], [1, 0]], {0: "a", 1: "b"})


def run(tmp_path: Path, snapshot: ClusterSnapshot, *words: str) -> tuple[int, Any]:
    """Exit code and what stands on standard output, parsed."""
    file = tmp_path / "snapshot.json"
    snapshot_file.write(snapshot, file)
    result = CliRunner().invoke(plan.app, [*words, "--snapshot", str(file), "-o", "json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.stdout)


def test_a_cluster_in_need_gets_a_plan_and_exit_code_2(tmp_path: Path) -> None:
    code, document = run(tmp_path, instance("five percent", 1_000), "plan")
    assert (code, document["moves"], document["lower_bound"]) == (2, 30, 30)


def test_a_clean_cluster_needs_no_plan(tmp_path: Path) -> None:
    code, document = run(tmp_path, CLEAN, "plan")
    assert (code, document["partitions"]) == (0, [])


def test_what_cannot_be_is_an_error_with_its_reason(tmp_path: Path) -> None:
    code, document = run(tmp_path, CLEAN, "plan", "--replication-factor", "3")
    assert code == 1
    assert (
        document["infeasible"][0]["reason"]
        == "1 topic (topic-000000) has replication factor 3, 2 brokers left to hold replicas"
    )


@pytest.mark.slow
def test_the_file_written_is_the_one_lint_finds_clean(tmp_path: Path) -> None:
    snapshot, file = instance("labelled", 1_000), tmp_path / "plan.json"
    assert run(tmp_path, snapshot, "plan", "--out", str(file))[0] == 2
    code, document = run(tmp_path, snapshot, "lint", "--reassignment-json-file", str(file))
    assert (code, document["summary"]["violations"]) == (0, 0)


@pytest.mark.parametrize("options", [["--drain", "3"], ["--replication-factor", "2"], ["--drain", "3", "--balance"]])
def test_lint_takes_what_plan_was_given_and_is_clean(tmp_path: Path, options: list[str]) -> None:
    snapshot, file = cluster([[1, 2], [1, 3]], {1: "a", 2: "b", 3: "c", 4: "c"}), tmp_path / "plan.json"
    run(tmp_path, snapshot, "plan", *options, "--out", str(file))
    code, document = run(tmp_path, snapshot, "lint", *options, "--reassignment-json-file", str(file))
    assert (code, document["findings"]) == (0, [])


def test_moves_of_unknown_size_print_as_unknown(tmp_path: Path) -> None:
    file, placed = tmp_path / "snapshot.json", cluster([[0, 2]], {0: "a", 2: "a", 1: "b"})
    unsized = replace(placed.partitions, size_bytes=np.full(1, -1, dtype=np.int64))
    snapshot_file.write(replace(placed, partitions=unsized), file)
    printed = CliRunner().invoke(plan.app, ["plan", "--snapshot", str(file)]).stdout
    assert "1 move, an unknown number of bytes, 1 partition" in printed
    assert " 0 bytes" not in printed


def test_a_plan_that_breaks_a_rule_exits_2(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "topic-000000", "partition": 0, "replicas": [0, 7]}]}')
    code, document = run(tmp_path, CLEAN, "lint", "--reassignment-json-file", str(file))
    assert code == 2
    assert "Unknown broker id 7" in [one["reason"] for one in document["findings"]]


@pytest.mark.parametrize("verb", [["plan", "--balance"], ["plan", "--keep-leaders", "--replace-missing-brokers"]])
def test_the_page_ends_with_the_verdict(tmp_path: Path, verb: list[str]) -> None:
    file = tmp_path / "snapshot.json"
    snapshot_file.write(instance("broker lost", 1_000), file)
    page = CliRunner().invoke(plan.app, [*verb, "--snapshot", str(file)]).stdout
    assert page.rstrip().splitlines()[-1].split(" ")[0].isdigit()
    assert "step" in page


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["plan", "--drain", "x"], "--drain x: 'x' is not a broker id; list ids such as 3,4"),
        (["plan", "--drain", "9"], "broker 9: the cluster does not list it, and no partition has a replica on it"),
        (["plan", "--drain", "0,1"], "every broker would be drained: at least one has to hold the replicas; drain fewer"),
        (["plan", "--replace", "1,"], "--replace 1,: '' is not a broker id; list ids such as 3,4"),
        (["plan", "--topic", "x"], "--topic 'x': no topic has such a name; list them with rackspan audit"),
        (["plan", "--topic", "["], "--topic '[': not a regular expression: unterminated character set at position 0; write one such as orders-.*"),
        (["plan", "--replication-factor", "0"], "replication factor 0: a partition has 1 replica or more; name 1 to 2147483647"),
        (["plan", "--moves-per-step", "0"], "at most 0 moves in a step: nothing could move; allow 1 or more"),
        (["plan", "--moves-per-broker", "0"], "at most 0 moves per broker in a step: nothing could move; allow 1 or more"),
        (["plan", "--allow-fewer-racks"], "--allow-fewer-racks: nothing in the request can cost safety; leave it out, or give --drain, --replace or --replication-factor"),
        (["plan", "--out", "/nowhere/plan.json"], "/nowhere/plan.json: cannot be written: No such file or directory; choose another --out"),
        (["lint", "--reassignment-json-file", "/nowhere"], "/nowhere: cannot be read: No such file or directory; name a reassignment file"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_in_one_line(tmp_path: Path, words: list[str], line: str) -> None:
    with pytest.raises(RackspanError) as refused:
        run(tmp_path, CLEAN, *words)
    assert str(refused.value) == line


def test_a_lint_that_drains_every_broker_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "topic-000000", "partition": 0, "replicas": [1, 0]}]}')
    with pytest.raises(RackspanError, match=r"^every broker would be drained: at least one .*; drain fewer$"):
        run(tmp_path, CLEAN, "lint", "--reassignment-json-file", str(file), "--drain", "0,1")


def test_a_drain_that_costs_safety_exits_1_and_its_flag_makes_it_for_plan_and_lint_alike(tmp_path: Path) -> None:
    snapshot = cluster([[0, 1], [1, 0]], {0: "a", 1: "b", 2: "b"})
    drain = ("--drain", "0")
    code, document = run(tmp_path, snapshot, "plan", *drain)
    (conflict,) = document["infeasible"]
    assert (code, document["moves"], conflict["refused"]) == (1, 0, True)
    code, document = run(tmp_path, snapshot, "plan", *drain, "--allow-fewer-racks")
    assert (code, document["moves"], document["infeasible"]) == (2, 2, [])
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    words = ("lint", "--reassignment-json-file", str(file), *drain)
    code, found = run(tmp_path, snapshot, *words)
    assert (code, {one["constraint"] for one in found["findings"]}) == (2, {"plan-less-safe"})
    code, found = run(tmp_path, snapshot, *words, "--allow-fewer-racks")
    assert (code, found["findings"]) == (0, [])


def test_a_move_that_waits_for_a_fenced_broker_is_named(tmp_path: Path) -> None:
    """Replicas in four racks, one of them down: with three racks required, the last copy of rack a may not go before it is back."""
    racks = {0: "a", 1: "b", 2: "c", 3: "d", 4: "c"}
    snapshot = of_one_topic(racks, [[0, 1, 2, 3]], isr=[[0, 2, 3]], fenced={1}, config={"min.insync.replicas": "1"})
    policy = ("--min-insync-racks", "3", "--drain", "0", "--allow-fewer-racks")
    code, document = run(tmp_path, snapshot, "plan", *policy)
    assert (code, document["moves"]) == (2, 1)
    printed = CliRunner().invoke(plan.app, ["plan", *policy, "--snapshot", str(tmp_path / "snapshot.json")])
    waits = "broker 1 is fenced and keeps replicas of 1 partition to move: their moves end once it is back in sync"
    assert waits in " ".join(printed.output.split())
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    _, found = run(tmp_path, snapshot, "lint", "--reassignment-json-file", str(file), *policy)
    assert "plan-fenced-broker" in [one["constraint"] for one in found["findings"]]


def test_a_refusal_stands_on_the_page_once(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    snapshot_file.write(cluster([[0, 1, 2]], {0: "a", 1: "b", 2: "c", 3: "b"}), file)
    result = CliRunner().invoke(plan.app, ["plan", "--drain", "0", "--snapshot", str(file)])
    assert (result.exit_code, result.output.count("refused: ")) == (1, 1)
    assert result.stdout.splitlines()[-1] == "nothing is planned"


@pytest.mark.parametrize("verb", ["plan", "lint"])
@pytest.mark.parametrize(
    ("racks", "warned"),
    [
        ({1: "a", 2: "b", 3: None, 4: None}, "no rack is set on brokers 3,4, and others have one"),
        ({1: "a", 2: "b", 3: "c", 4: "c"}, None),
        ({1: None, 2: None, 3: None, 4: None}, None),
    ],
)
def test_partial_racks_are_warned_of_with_the_brokers(
    tmp_path: Path, verb: str, racks: dict[int, str | None], warned: str | None
) -> None:
    """KIP-36 has the tools alert the user that a broker is not configured as the others are."""
    snapshot, file = tmp_path / "snapshot.json", tmp_path / "plan.json"
    snapshot_file.write(cluster([[1, 2], [2, 1]], racks), snapshot)
    file.write_text('{"version": 1, "partitions": [{"topic": "topic-000000", "partition": 0, "replicas": [2, 1]}]}')
    words = ["--reassignment-json-file", str(file)] if verb == "lint" else []
    result = CliRunner().invoke(plan.app, [verb, *words, "--snapshot", str(snapshot)])
    warnings = [line for line in " ".join(result.stderr.split()).split("warning: ") if "no rack is set" in line]
    if warned is None:
        assert warnings == []
    else:
        assert warnings == [f"{warned}: they count by --unracked shared; set broker.rack and restart them first"]


@pytest.mark.parametrize(
    ("partial", "warned"), [(("topics pay: on disk but not shown to this user",), True), ((), False)]
)
def test_a_plan_without_moves_warns_that_what_could_not_be_read_may_have_to_move(
    tmp_path: Path, partial: tuple[str, ...], warned: bool
) -> None:
    file = tmp_path / "snapshot.json"
    snapshot_file.write(replace(CLEAN, partial=partial), file)
    lines = CliRunner().invoke(plan.app, ["plan", "--snapshot", str(file)]).stderr.splitlines()
    assert ("warning: what could not be read may have to move too" in lines) == warned


UNSAFE = cluster([[0, 1], [1, 0], [0]], {0: "a", 1: "b"})
"""A topic whose partition 2 has one replica, which no plan for all topics gives another one."""


def test_a_plan_names_the_topics_that_stay_unsafe_with_it(tmp_path: Path) -> None:
    _, document = run(tmp_path, UNSAFE, "plan")
    (left,) = document["left_unsafe"]
    assert (left["topic"], left["partition"], left["constraint"]) == ("topic-000000", 2, "survives-rack-loss")
    assert left["remedy"] == (
        f"rackspan reassign plan --snapshot {tmp_path / 'snapshot.json'} --topic topic-000000 --replication-factor 2"
    )
    assert run(tmp_path, CLEAN, "plan")[1]["left_unsafe"] == []


def test_the_remedy_that_is_named_leaves_nothing_unsafe(tmp_path: Path) -> None:
    options = ("--topic", "topic-000000", "--replication-factor", "2")
    code, document = run(tmp_path, UNSAFE, "plan", *options)
    assert (code, document["moves"], document["left_unsafe"]) == (2, 1, [])


@pytest.mark.parametrize("options", [["--drain", "2"], ["--balance"], ["--replication-factor", "1"]])
def test_a_plan_for_something_else_names_none(tmp_path: Path, options: list[str]) -> None:
    three = cluster([[0, 1], [1, 0], [0]], {0: "a", 1: "b", 2: "b"})
    assert run(tmp_path, three, "plan", *options)[1]["left_unsafe"] == []
