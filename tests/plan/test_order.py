from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidReassignment, UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.plan import StepLimits, order_steps
from rackspan.reassign import (
    PartitionReassignment,
    ReassignmentPlan,
    ReassignmentRequest,
    Step,
    lint,
    plan,
    snapshot_rows,
)
from tests.reassign.instances import cluster, instance
from tests.reassign.plans import cost, targets
from tests.strategies import policies, snapshots

limits = st.one_of(st.none(), st.integers(1, 4))
caps = st.builds(
    StepLimits, moves=limits, bytes=st.sampled_from([None, 1, 2**41]), moves_per_broker=limits, partitions=limits
)


def _received(step: Step) -> Counter[int]:
    """Copies that each broker receives."""
    return Counter(broker for one in step.partitions for broker in set(one.replicas) - set(one.undo))


def partitions(step: Step) -> list[int]:
    return [one.partition for one in step.partitions]


@given(snapshots(), policies(), caps, st.sampled_from([None, 2, 3]))
def test_every_reassignment_is_in_one_step_and_no_step_exceeds_a_cap(
    snapshot: ClusterSnapshot, policy: RackPolicy, caps: StepLimits, factor: int | None
) -> None:
    planned = plan(snapshot, policy, ReassignmentRequest(replication_factor=factor, balance=True))
    ordered = order_steps(snapshot, planned, policy, caps)
    assert sorted(targets(ordered)) == targets(planned)
    assert [step.number for step in ordered.steps] == list(range(1, len(ordered.steps) + 1))
    assert (ordered.moves, ordered.cost) == (planned.moves, planned.cost)
    assert sum(step.bytes or 0 for step in ordered.steps) == cost(planned).bytes
    current = {(str(snapshot.topics[row.topic].name), row.partition): row.replicas for row in snapshot.partitions}
    for step in ordered.steps:
        if len(step.partitions) > 1:
            assert caps.moves is None or step.moves <= caps.moves
            assert caps.bytes is None or (step.bytes or 0) <= caps.bytes
            assert caps.partitions is None or len(step.partitions) <= caps.partitions
        assert all(one.undo == current[one.topic, one.partition] for one in step.partitions)
        received = _received(step)
        assert caps.moves_per_broker is None or max(received.values(), default=0) <= caps.moves_per_broker


def test_partitions_that_refuse_writes_move_before_those_that_only_stand_badly() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker), RackId(rack)) for broker, rack in racks.items()),
        topics=(Topic(TopicName("orders"), config={"min.insync.replicas": "2"}),),
        partitions=columns(
            topic=[0, 0, 0],
            partition=[0, 1, 2],
            leader=[1, 1, 1],
            replicas=[[1, 2], [1, 2], [1, 9]],
            isr=[[1, 2], [1], [1]],
            size_bytes=[1, 100, 50],
        ),
    )
    planned = plan(snapshot, request=ReassignmentRequest(reorder_leaders=False, replace_missing=True))
    steps = order_steps(snapshot, planned).steps
    assert [partitions(step) for step in steps] == [[2, 1], [0]]
    assert steps[0].reason == "acks=all is refused or unsafe now"
    assert [step.bytes for step in steps] == [150, 1]


def test_what_moving_puts_at_risk_comes_after_all_other_copies() -> None:
    """While a replica moves within three racks, two of four replicas are in one: a minimum of 2 forces no second rack."""
    racks = {1: "a", 2: "b", 3: "c", 4: "a"}
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker), RackId(rack)) for broker, rack in racks.items()),
        topics=tuple(Topic(TopicName(f"min-{least}"), config={"min.insync.replicas": f"{least}"}) for least in (2, 3)),
        partitions=columns(
            topic=[0, 1],
            partition=[0, 0],
            leader=[1, 1],
            replicas=[[1, 2, 3], [1, 2, 3]],
            isr=[[1, 2, 3], [1, 2, 3]],
            size_bytes=[1, 100],
        ),
    )
    policy = RackPolicy(min_insync_racks=2)
    planned = plan(snapshot, policy, ReassignmentRequest(drain=frozenset({1}), reorder_leaders=False))
    steps = order_steps(snapshot, planned, policy).steps
    assert [(step.partitions[0].name, step.reason) for step in steps] == [
        ("min-3-0", "at no risk now"),
        ("min-2-0", "safe before and after; during the move acks=all may be acknowledged with one rack too few"),
    ]
    found = [one.constraint for one in lint(snapshot, policy, planned)]
    assert found.count("plan-intermediate-forces-racks") == 1


def test_steps_of_a_drain_and_of_balance_have_the_reason_of_their_own_partitions() -> None:
    snapshot = cluster([[1, 2], [3, 2], [3, 2], [3, 2]], {1: "a", 2: "b", 3: "a", 4: "b"})
    request = ReassignmentRequest(drain=frozenset({1}), balance=True, reorder_leaders=False)
    planned = plan(snapshot, RackPolicy(), request)
    first, second = order_steps(snapshot, planned, request=request).steps
    assert (first.reason, [one.undo for one in first.partitions]) == ("requested by --drain", [(1, 2)])
    assert second.reason == "for balance"
    assert {one.undo for one in second.partitions} == {(3, 2)}


def test_what_copies_nothing_comes_last() -> None:
    snapshot = instance("five percent", 1_000)
    steps = order_steps(snapshot, plan(snapshot)).steps
    assert [step.moves for step in steps[-1:]] == [0]
    assert all(step.moves for step in steps[:-1])


def test_small_partitions_move_first_and_steps_are_filled() -> None:
    snapshot = instance("labelled", 1_000)
    planned = order_steps(
        snapshot,
        plan(snapshot, request=ReassignmentRequest(reorder_leaders=False)),
        limits=StepLimits(moves=100),
    )
    assert len(planned.steps) <= -(-planned.moves // 99)
    copied = [
        snapshot.partitions.size_bytes[snapshot_rows(snapshot, step.columns)] * step.columns.additions
        for step in planned.steps
    ]
    assert all(np.all(np.diff(sizes) >= 0) for sizes in copied)


@pytest.mark.slow
def test_a_large_plan_with_tight_caps_takes_few_more_steps_than_its_busiest_broker_needs() -> None:
    snapshot = instance("labelled", 10_000)
    planned = order_steps(snapshot, plan(snapshot), limits=StepLimits(moves=200, moves_per_broker=5))
    received = [_received(step) for step in planned.steps]
    assert max(step.moves for step in planned.steps) <= 200
    assert max(max(one.values(), default=0) for one in received) <= 5
    copying = sum(step.moves > 0 for step in planned.steps)
    assert copying <= 1.2 * max(sum(received, Counter[int]()).values()) / 5


def test_a_partition_above_every_cap_moves_alone() -> None:
    snapshot = cluster([[0, 2]] * 3, {0: "a", 2: "a", 1: "b"})
    planned = plan(snapshot, request=ReassignmentRequest(reorder_leaders=False))
    steps = order_steps(snapshot, planned, limits=StepLimits(bytes=1)).steps
    assert [partitions(step) for step in steps] == [[0], [1], [2]]


def moves_of(*sizes: int) -> tuple[ClusterSnapshot, ReassignmentPlan]:
    """One partition of each size, which moves a replica from broker 2 to broker 1."""
    snapshot = cluster([[0, 2]] * len(sizes), {0: "a", 1: "b", 2: "a"})
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, size_bytes=np.array(sizes, dtype=np.int64)))
    moves = [PartitionReassignment("topic-000000", number, (0, 1), (0, 2)) for number in range(len(sizes))]
    return snapshot, ReassignmentPlan(None, {}, (Step.of(1, "", moves),))


def test_a_step_holds_as_many_bytes_as_it_may_and_no_more() -> None:
    steps = order_steps(*moves_of(40, 40, 40, 41, 41, 120), limits=StepLimits(bytes=120)).steps
    assert [(partitions(step), step.bytes) for step in steps] == [([0, 1, 2], 120), ([3, 4], 82), ([5], 120)]


def test_a_copy_of_unknown_size_counts_as_no_bytes() -> None:
    (step,) = order_steps(*moves_of(5, -1, -1), limits=StepLimits(bytes=5)).steps
    assert (partitions(step), step.bytes, step.moves) == ([1, 2, 0], 5, 3)


def test_a_step_holds_as_many_reassignments_as_it_may_and_no_more() -> None:
    steps = order_steps(*moves_of(1, 1, 1, 1, 1), limits=StepLimits(partitions=2)).steps
    assert [(step.number, partitions(step)) for step in steps] == [(1, [0, 1]), (2, [2, 3]), (3, [4])]


def test_an_ordered_plan_can_be_ordered_again() -> None:
    snapshot = instance("five percent", 1_000)
    once = order_steps(snapshot, plan(snapshot), limits=StepLimits(moves=7))
    assert order_steps(snapshot, once, limits=StepLimits(moves=7)) == once


def test_a_plan_for_another_snapshot_is_refused() -> None:
    snapshot = instance("five percent", 1_000)
    with pytest.raises(InvalidReassignment, match="the snapshot does not hold it; plan on a newer snapshot"):
        order_steps(cluster([[0, 1]], {0: "a", 1: "b"}), plan(snapshot))


@pytest.mark.parametrize("name", ["moves", "bytes", "moves_per_broker", "partitions"])
def test_a_cap_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="nothing could move; allow 1 or more"):
        StepLimits(**{name: 0})


def test_an_empty_plan_has_no_steps() -> None:
    snapshot = cluster([[0, 1]], {0: "a", 1: "b"}, ())
    assert order_steps(snapshot, plan(snapshot)).steps == ()
