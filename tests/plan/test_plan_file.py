import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import InvalidReassignment
from rackspan.model import ClusterSnapshot
from rackspan.plan import StepLimits, order_steps, plan_document, read_plan
from rackspan.plan.plan_file import UNSTEPPED, journal_document
from rackspan.plan.reassignment_file import reassignment_json
from rackspan.reassign import (
    Balance,
    Conflict,
    Direction,
    LoadRange,
    PartitionReassignment,
    PlanCost,
    ReassignmentPlan,
    ReassignmentRequest,
    Step,
    plan,
)
from tests.plan.plans import reassignment_plans
from tests.reassign.instances import cluster, instance
from tests.reassign.plans import originals, targets
from tests.strategies import snapshots

requests = st.builds(
    ReassignmentRequest,
    replication_factor=st.sampled_from([None, 1, 3]),
    balance=st.booleans(),
    reorder_leaders=st.booleans(),
)


@given(snapshots(), requests, st.sampled_from([1, 2, 1_000]))
def test_what_was_planned_is_what_is_read(snapshot: ClusterSnapshot, request: ReassignmentRequest, moves: int) -> None:
    planned = order_steps(snapshot, plan(snapshot, request=request), limits=StepLimits(moves=moves))
    document: dict[str, Any] = plan_document(planned)
    if not document["partitions"]:
        return
    assert read_plan(json.dumps(document)) == planned
    names = [topic.name for topic in snapshot.topics]
    current = {(str(names[row.topic]), row.partition): row.replicas for row in snapshot.partitions}
    assert all(one.undo == current[one.topic, one.partition] for one in planned.partitions())
    assert planned.cluster_id == snapshot.cluster_id


@given(reassignment_plans(), st.booleans())
def test_a_plan_that_states_no_cost_is_read_as_it_was_written(plan: ReassignmentPlan, journal: bool) -> None:
    document = journal_document(plan) if journal else plan_document(plan)
    assert read_plan(json.dumps(document)) == plan


kafkas_files = st.lists(
    st.builds(
        lambda topic, partition, replicas: {
            "topic": topic,
            "partition": partition,
            "replicas": replicas,
            "log_dirs": ["any"] * len(replicas),
        },
        st.sampled_from(["orders", "payments", "\u00fc"]),
        st.integers(0, 5),
        st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda entry: (entry["topic"], entry["partition"]),
).map(lambda entries: sorted(entries, key=lambda entry: (entry["topic"], entry["partition"])))


@given(kafkas_files)
def test_a_file_of_kafkas_tool_is_written_as_it_was_read(entries: list[dict[str, Any]]) -> None:
    text = json.dumps({"version": 1, "partitions": entries}, separators=(",", ":"), ensure_ascii=False)
    read = read_plan(text)
    assert reassignment_json(read.partitions()) == text
    assert (read.cluster_id, read.cost, read.has_undo) == (None, None, False)
    assert read_plan(json.dumps(plan_document(read))) == read


def test_a_cost_that_is_not_stated_in_full_is_left_out() -> None:
    snapshot = instance("five percent", 1_000)
    document: dict[str, Any] = plan_document(
        order_steps(snapshot, plan(snapshot, request=ReassignmentRequest(replace_missing=True)))
    )
    for change in ({"before": 1}, {"lower_bound": "many"}, {"infeasible": [{"reason": "a"}]}):
        assert read_plan(json.dumps({**document, **change})).cost is None
    del document["replicas_bound"]
    assert read_plan(json.dumps(document)).cost is None


COST = PlanCost(
    lower_bound=2,
    gap_reason="the search stopped",
    bytes=300,
    unsized_moves=1,
    before=Balance(LoadRange(1, 9), LoadRange(2, 8)),
    after=Balance(LoadRange(3, 7), LoadRange(4, 6)),
    replicas_bound=5,
    left_out=("1 partition is moving now",),
    leaderless=2,
    infeasible=(
        Conflict("too few brokers", "add brokers", 3, refused=True),
        Conflict("too few racks", "add racks", 4),
    ),
)
COSTED = ReassignmentPlan(
    "c",
    {"orders": "id-1"},
    (
        Step.of(1, "first", (PartitionReassignment("orders", 1, (1, 2), (1, 3)),), 300),
        Step.of(2, "then", (PartitionReassignment("orders", 0, (4, 2, 3), (4, 3)),)),
    ),
    COST,
)


def test_a_plan_has_every_value_under_its_key() -> None:
    first = {"topic": "orders", "partition": 1, "replicas": [1, 2]}
    second = {"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}
    assert plan_document(COSTED) == {
        "version": 1,
        "partitions": [second, first],
        "cluster_id": "c",
        "moves": 2,
        "lower_bound": 2,
        "gap_reason": "the search stopped",
        "bytes": 300,
        "moves_of_unknown_size": 1,
        "before": {"replicas_per_broker": {"min": 1, "max": 9}, "leaders_per_broker": {"min": 2, "max": 8}},
        "after": {"replicas_per_broker": {"min": 3, "max": 7}, "leaders_per_broker": {"min": 4, "max": 6}},
        "replicas_bound": 5,
        "topic_ids": {"orders": "id-1"},
        "left_out": ["1 partition is moving now"],
        "leaderless": 2,
        "steps": [
            {"step": 1, "reason": "first", "moves": 1, "bytes": 300, "partitions": [{**first, "undo": [1, 3]}]},
            {"step": 2, "reason": "then", "moves": 1, "partitions": [{**second, "undo": [4, 3]}]},
        ],
        "infeasible": [
            {"reason": "too few brokers", "remedy": "add brokers", "partitions": 3, "refused": True},
            {"reason": "too few racks", "remedy": "add racks", "partitions": 4, "refused": False},
        ],
    }
    assert read_plan(json.dumps(plan_document(COSTED))) == COSTED
    assert read_plan(json.dumps(plan_document(COSTED))).cost == COST


def test_a_journal_holds_of_a_plan_what_a_run_has_to_know() -> None:
    document: dict[str, Any] = plan_document(COSTED)
    steps = [{key: step[key] for key in ("step", "reason", "partitions")} for step in document["steps"]]
    assert journal_document(COSTED) == {
        "partitions": document["partitions"][::-1],
        "cluster_id": "c",
        "topic_ids": {"orders": "id-1"},
        "steps": steps,
    }


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"replicas": [2**31]}, "a-0 names broker 2147483648; an id is 2147483647 at most"),
        ({"partition": 2**31}, "a-2147483648: a partition id is 2147483647 at most"),
    ],
)
def test_an_id_that_kafka_cannot_hold_is_refused(change: dict[str, Any], line: str) -> None:
    entry = {"topic": "a", "partition": 0, "replicas": [1], **change}
    with pytest.raises(InvalidReassignment) as refused:
        read_plan(json.dumps({"partitions": [entry]}))
    assert str(refused.value) == line


def test_a_plan_is_a_reassignment_file_with_its_account() -> None:
    snapshot = instance("labelled", 1_000)
    planned = order_steps(snapshot, plan(snapshot, request=ReassignmentRequest(replace_missing=True)))
    document: dict[str, Any] = plan_document(planned)
    assert list(document) == [
        "version",
        "partitions",
        "cluster_id",
        "moves",
        "lower_bound",
        "gap_reason",
        "bytes",
        "moves_of_unknown_size",
        "before",
        "after",
        "replicas_bound",
        "topic_ids",
        "left_out",
        "leaderless",
        "steps",
        "infeasible",
    ]
    assert (document["version"], document["moves"], document["lower_bound"], document["infeasible"]) == (
        1,
        1148,
        1148,
        [],
    )
    listed = [(one["topic"], one["partition"], tuple(one["replicas"])) for one in document["partitions"]]
    assert listed == targets(planned)


def test_every_step_says_what_undoes_it() -> None:
    snapshot = instance("broker lost", 1_000)
    planned = order_steps(snapshot, plan(snapshot, request=ReassignmentRequest(replace_missing=True)))
    document: dict[str, Any] = plan_document(planned)
    undone = {
        (one["topic"], one["partition"]): tuple(one["undo"]) for step in document["steps"] for one in step["partitions"]
    }
    assert undone == originals(planned)


def test_nothing_to_do_is_an_empty_list() -> None:
    document: dict[str, Any] = plan_document(plan(cluster([[0, 1], [1, 0]], {0: "a", 1: "b"})))
    assert (document["partitions"], document["moves"], document["steps"]) == ([], 0, [])


def test_a_file_of_another_tool_is_cut_into_steps() -> None:
    entries = [{"topic": "orders", "partition": partition, "replicas": [1, 2]} for partition in range(UNSTEPPED + 1)]
    read = read_plan(json.dumps({"version": 1, "partitions": entries}))
    assert [(step.number, len(step.partitions), step.reason) for step in read.steps] == [
        (1, UNSTEPPED, "in the order of the file"),
        (2, 1, "in the order of the file"),
    ]
    assert (read.cluster_id, read.has_undo) == (None, False)


def test_the_way_back_passes_the_steps_backwards_and_copies_what_left() -> None:
    move = PartitionReassignment("orders", 0, (1, 2, 4), (1, 2, 3))
    assert (move.additions(Direction.TARGETS), move.additions(Direction.ORIGINALS)) == ((4,), (3,))


GOOD = {"topic": "a", "partition": 0, "replicas": [1, 2]}
STEP = {"step": 1, "partitions": [{**GOOD, "undo": [1, 3]}]}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"steps": {}}, "plan: steps is {}, not a list; write the plan again"),
        ({"steps": [1]}, "plan: steps[0] is 1, not an object; write the plan again"),
        ({"steps": [{"partitions": 1}]}, "steps[0]: partitions is 1, not a list; write the plan again"),
        (
            {"steps": [{"step": 3, "partitions": [{"topic": "a"}]}]},
            "step 3: partitions[0]: partition is missing; write the plan again",
        ),
        *(
            ({"steps": [{"partitions": [{**GOOD, key: value}]}]}, f"a-0: {key}{why}; write the plan again")
            for key in ("replicas", "undo")
            for value, why in (
                (None, " is null, not a list"),
                ("12", ' is "12", not a list'),
                ({"1": 2}, ' is {"1": 2}, not a list'),
                ([True], "[0] is true, not a whole number"),
                ([1, -1], "[1] is -1, outside 0 to 2147483647"),
                (["1"], '[0] is "1", not a whole number'),
            )
        ),
        (
            {"steps": [{"partitions": [{**GOOD, "undo": [1, 1]}]}]},
            "a-0: undo names a broker twice; write the plan again",
        ),
        ({"steps": [STEP, STEP]}, "a-0 is in two steps; write the plan again"),
        (
            {"steps": [{"partitions": [{**GOOD, "replicas": [2, 1]}]}]},
            "a-0: partitions and steps name different replicas; change both, or leave out the steps",
        ),
        (
            {"partitions": [GOOD, {**GOOD, "partition": 1}], "steps": [STEP]},
            "a-1 is in no step; add it to one, or leave out the steps",
        ),
        ({"cluster_id": 7}, "plan: cluster_id is 7, not a string; write the plan again"),
        ({"topic_ids": []}, "plan: topic_ids is [], not an object; write the plan again"),
        ({"topic_ids": {"a": 1}}, "plan: topic_ids: a is 1, not a string; write the plan again"),
        (
            {"partitions": [{**GOOD, "log_dirs": ["any", "/data"]}]},
            'a-0: log directory /data is named; rackspan moves between brokers alone, write "any"',
        ),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused_in_one_line(change: dict[str, Any], line: str) -> None:
    document = {"version": 1, "partitions": [GOOD], **change}
    with pytest.raises(InvalidReassignment) as refused:
        read_plan(json.dumps(document))
    assert str(refused.value) == line


def test_a_plan_without_partitions_is_read_as_one_without_steps() -> None:
    plan = read_plan(json.dumps({"version": 1, "partitions": []}))
    assert (len(plan), plan.steps) == (0, ())


@pytest.mark.parametrize(("size", "known"), [(300, 300), ("300", None), (1.5, None), (True, None), (None, None)])
def test_a_step_whose_bytes_are_no_whole_number_has_a_size_that_is_not_known(size: object, known: int | None) -> None:
    (step,) = read_plan(json.dumps({"partitions": [GOOD], "steps": [{**STEP, "bytes": size}]})).steps
    assert (step.number, step.reason, step.bytes) == (1, "", known)
