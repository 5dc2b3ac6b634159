import json
from typing import Any

import pytest
from hypothesis import given

from rackspan.errors import InvalidReassignment
from rackspan.model import ClusterSnapshot
from rackspan.plan import in_steps
from rackspan.plan.json_format import plan_document, undo
from rackspan.plan.written import PartitionMove, Toward
from rackspan.plan.written_format import UNSTEPPED, plan_as_read, read_plan
from rackspan.reassign import Request, plan
from tests.strategies import snapshots


@given(snapshots())
def test_what_was_planned_is_what_is_read(snapshot: ClusterSnapshot) -> None:
    planned = plan(snapshot, request=Request(balance=True))
    document = plan_document(planned, in_steps(planned))
    if not document["partitions"]:
        return
    read = read_plan(json.dumps(document))
    assert sorted((move.topic, move.partition, move.replicas) for move in read.moves()) == list(planned.targets())
    originals = {(one.topic, one.partition): one.replicas for one in undo(planned)}
    assert {move.place: move.undo for move in read.moves()} == originals
    assert sum(step.copies(Toward.TARGETS) for step in read.steps) == planned.moves
    assert read.cluster_id == snapshot.cluster_id
    assert read_plan(json.dumps(plan_as_read(read))) == read


def test_a_file_of_another_tool_is_cut_into_steps() -> None:
    entries = [{"topic": "orders", "partition": partition, "replicas": [1, 2]} for partition in range(UNSTEPPED + 1)]
    read = read_plan(json.dumps({"version": 1, "partitions": entries}))
    assert [len(step.moves) for step in read.steps] == [UNSTEPPED, 1]
    assert (read.cluster_id, read.says_undo) == (None, False)


def test_the_way_back_passes_the_steps_backwards_and_copies_what_left() -> None:
    move = PartitionMove("orders", 0, (1, 2, 4), (1, 2, 3))
    assert (move.arrivals(Toward.TARGETS), move.arrivals(Toward.ORIGINALS)) == ((4,), (3,))


GOOD = {"topic": "a", "partition": 0, "replicas": [1, 2]}
STEP = {"step": 1, "partitions": [{**GOOD, "undo": [1, 3]}]}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"steps": {}}, "the plan: steps is not a list; write the plan anew"),
        ({"steps": [1]}, "step 1 is not an object; write the plan anew"),
        ({"steps": [{"partitions": 1}]}, "step 1: partitions is not a list; write the plan anew"),
        (
            {"steps": [{"partitions": [{"topic": "a"}]}]},
            "step 1: an entry lacks topic, partition or replicas; write the plan anew",
        ),
        (
            {"steps": [{"partitions": [{**GOOD, "undo": [1, 1]}]}]},
            "step 1: undo of a-0 is no replica list; write the plan anew",
        ),
        ({"steps": [STEP, STEP]}, "a-0 is in two steps; write the plan anew"),
        (
            {"steps": [{"partitions": [{**GOOD, "replicas": [2, 1]}]}]},
            "a-0: partitions and steps name different replicas; change both, or leave out the steps",
        ),
        (
            {"partitions": [GOOD, {**GOOD, "partition": 1}], "steps": [STEP]},
            "a-1 is in no step; add it to one, or leave out the steps",
        ),
        ({"cluster_id": 7}, "cluster_id is 7, not a string; write the plan anew"),
        ({"topic_ids": []}, "topic_ids is not an object; write the plan anew"),
        ({"topic_ids": {"a": 1}}, "topic_ids holds something that is no string; write the plan anew"),
        (
            {"partitions": [{**GOOD, "log_dirs": ["any", "/data"]}]},
            'a-0: log directory /data is named; rackspan moves between brokers alone, write "any"',
        ),
        ({"partitions": []}, "Partition reassignment list cannot be empty"),
    ],
)
def test_a_plan_that_contradicts_itself_is_told_in_one_line(change: dict[str, Any], line: str) -> None:
    document = {"version": 1, "partitions": [GOOD], **change}
    with pytest.raises(InvalidReassignment) as told:
        read_plan(json.dumps(document))
    assert str(told.value) == line
