from dataclasses import replace

import numpy as np
import pytest

from rackspan.errors import InvalidReassignment, UsageError
from rackspan.reassign import (
    Direction,
    PartitionReassignment,
    ReassignmentPlan,
    ReassignmentRequest,
    Step,
    plan,
    reassignment_columns,
    snapshot_after,
    snapshot_rows,
)
from tests.reassign.instances import cluster
from tests.reassign.plans import cost, targets
from tests.snapshots import of_one_topic


def test_a_plan_done_leaves_the_snapshot_it_promises() -> None:
    snapshot = cluster([[0, 2, 1], [0, 1, 3]], {0: "a", 1: "b", 2: "a", 3: "c"})
    planned = plan(snapshot)
    after = {row.partition: row for row in snapshot_after(snapshot, planned).partitions}
    for _, partition, replicas in targets(planned):
        assert after[partition].replicas == after[partition].isr == replicas
        assert after[partition].leader == replicas[0]


def test_a_drained_broker_is_gone_afterwards_unless_it_was_drained_of_some_topics_only() -> None:
    placed = [[0, 1] for _ in range(100)]
    snapshot = cluster(placed, {0: "a", 1: "b", 2: "a"})
    drained = snapshot_after(
        snapshot, plan(snapshot, request=ReassignmentRequest(drain=frozenset({0}))), frozenset({0})
    )
    assert [broker.id for broker in drained.brokers] == [1, 2]
    partly = snapshot_after(
        snapshot,
        plan(snapshot, request=ReassignmentRequest(drain=frozenset({0}), topics="topic-000000")),
        frozenset({0}),
    )
    assert [broker.id for broker in partly.brokers] == [0, 1, 2]


def test_copies_of_unknown_size_are_counted_apart() -> None:
    snapshot = cluster([[0, 2], [0, 2]], {0: "a", 1: "b", 2: "a"})
    planned = plan(snapshot)
    assert (planned.moves, cost(planned).unsized_moves, cost(planned).bytes) == (2, 0, 1024)


def test_a_step_copies_what_is_new_at_the_end_of_its_direction() -> None:
    grows = PartitionReassignment("orders", 0, (1, 2, 4, 5), (1, 2, 3))
    reordered = PartitionReassignment("orders", 1, (2, 1), (1, 2))
    step = Step.of(1, "a reason", (grows, reordered), 7)
    assert (step.number, step.reason, step.bytes, step.partitions) == (1, "a reason", 7, (grows, reordered))
    assert Step.of(1, "", ()).bytes is None
    assert (step.moves, step.copies(Direction.TARGETS), step.copies(Direction.ORIGINALS)) == (2, 2, 1)


def test_a_direction_ends_at_its_end_and_copies_what_is_not_at_the_other() -> None:
    one = PartitionReassignment("orders", 3, (1, 2, 4), (1, 2, 3, 5))
    forward, back = Direction.TARGETS, Direction.ORIGINALS
    assert (one.start(forward), one.end(forward), one.additions(forward)) == ((1, 2, 3, 5), (1, 2, 4), (4,))
    assert (one.start(back), one.end(back), one.additions(back)) == ((1, 2, 4), (1, 2, 3, 5), (3, 5))
    assert (one.name, one.topic_partition) == ("orders-3", ("orders", 3))


FIRST, SECOND = (
    Step.of(1, "", (PartitionReassignment("orders", 0, (4, 5, 1), (1, 2)),)),
    Step.of(2, "", (PartitionReassignment("payments", 0, (2, 1), (1, 2)), PartitionReassignment("orders", 1, (4,)))),
)
PLAN = ReassignmentPlan("c", {"orders": "id-1"}, (FIRST, SECOND))


def test_a_plan_counts_lists_and_reverses_its_steps() -> None:
    assert (len(PLAN), PLAN.moves, PLAN.has_undo) == (3, 3, False)
    assert replace(PLAN, steps=(FIRST,)).has_undo
    assert list(PLAN.columns()) == list(PLAN.partitions()) == [*FIRST.partitions, *SECOND.partitions]
    assert PLAN.by_partition == {one.topic_partition: one for one in PLAN.partitions()}
    assert PLAN.in_order(Direction.TARGETS) == (FIRST, SECOND)
    assert PLAN.in_order(Direction.ORIGINALS) == (SECOND, FIRST)
    assert list(replace(PLAN, steps=()).columns()) == []


def test_steps_of_one_planner_are_joined_whatever_their_width() -> None:
    topics = ("orders", "payments")
    wide, narrow = (replace(step.columns, topics=topics) for step in (FIRST, SECOND))
    narrow = replace(narrow, topic=np.array([1, 0], dtype=np.int32))
    plan = replace(PLAN, steps=(replace(FIRST, columns=wide), replace(SECOND, columns=narrow)))
    for one in (plan, replace(plan, steps=plan.steps[::-1])):
        assert one.columns().topics is topics
        assert list(one.columns()) == list(one.partitions())
    assert sorted(one.name for one in plan.columns()) == ["orders-0", "orders-1", "payments-0"]


def test_plans_have_the_same_targets_whatever_they_replace_and_cost() -> None:
    other = replace(FIRST, columns=replace(FIRST.columns, undo=FIRST.columns.undo[:, :1]), bytes=7)
    assert PLAN.same_targets(replace(PLAN, steps=(other, SECOND)))
    assert not PLAN.same_targets(replace(PLAN, steps=(FIRST,)))
    assert not PLAN.same_targets(replace(PLAN, steps=(SECOND, FIRST)))
    reordered = Step.of(1, "", (PartitionReassignment("orders", 0, (5, 4, 1), (1, 2)),))
    assert not PLAN.same_targets(replace(PLAN, steps=(reordered, SECOND)))


def test_a_plan_takes_the_name_of_a_cluster_that_is_not_another() -> None:
    assert PLAN.for_cluster("c") == PLAN
    assert replace(PLAN, cluster_id=None).for_cluster("d").cluster_id == "d"
    with pytest.raises(UsageError) as refused:
        PLAN.for_cluster("d")
    assert str(refused.value) == "--cluster-id d: the plan is for cluster c; name one of them"


def test_steps_are_equal_where_all_they_hold_is() -> None:
    assert replace(FIRST) == FIRST
    assert hash(FIRST) == hash(replace(FIRST))
    for other in (replace(FIRST, number=9), replace(FIRST, reason="x"), replace(FIRST, bytes=1), SECOND, "step"):
        assert other != FIRST


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (
            PartitionReassignment("a", 0, (1,), (2**31,)),
            "a-0 names broker 2147483648; an id is 2147483647 at most",
        ),
        (PartitionReassignment("a", -(2**31), (1,)), "a--2147483648: a partition id is 2147483647 at most"),
    ],
)
def test_an_id_that_kafka_cannot_hold_is_refused(one: PartitionReassignment, line: str) -> None:
    with pytest.raises(InvalidReassignment) as refused:
        reassignment_columns([PartitionReassignment("a", 2**31 - 1, (2**31 - 1,)), one])
    assert str(refused.value) == line


def test_a_partition_that_the_snapshot_does_not_hold_is_refused() -> None:
    snapshot = cluster([[0, 1]] * 51, {0: "a", 1: "b"})
    held = [PartitionReassignment("topic-000001", 0, (1,)), PartitionReassignment("topic-000000", 49, (1,))]
    assert snapshot_rows(snapshot, reassignment_columns(held)).tolist() == [50, 49]
    for topic, partition in (("topic-000000", 50), ("topic-000001", 1), ("other", 0)):
        missing = reassignment_columns([*held, PartitionReassignment(topic, partition, (1,))])
        with pytest.raises(InvalidReassignment) as refused:
            snapshot_rows(snapshot, missing)
        assert str(refused.value) == (f"{topic}-{partition}: the snapshot does not hold it; plan on a newer snapshot")


def test_a_replica_that_stays_in_a_failed_log_directory_is_not_in_sync_after_the_plan() -> None:
    snapshot = of_one_topic(
        {1: "a", 2: "b", 3: "c", 4: "a"}, [[3, 1, 4]], isr=[[1, 4]], more={"offline_replicas": [[3]]}
    )
    (row,) = snapshot_after(snapshot, plan(snapshot)).partitions
    assert row.replicas in ((3, 1, 2), (3, 2, 4))
    assert (3 in row.isr, len(row.isr), row.leader == 3) == (False, 2, False)
    assert row.offline_replicas == (3,)
