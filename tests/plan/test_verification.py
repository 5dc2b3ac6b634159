"""Kafka's own words for the same states are compared with in tests/compat/test_reassign_apply.py."""

from dataclasses import replace

from hypothesis import given

from rackspan.model import ClusterSnapshot
from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.observed import InFlight, ObservedCluster, observed
from rackspan.plan.verification import VerifiedPartition, VerifiedState, all_done, counted, verify
from rackspan.reassign import PartitionReassignment, ReassignmentPlan, Step
from tests.strategies import snapshots


def of(cluster: ObservedCluster, *moves: PartitionReassignment, **ids: str) -> list[VerifiedState]:
    return [one.state for one in verify(ReassignmentPlan(None, ids, (Step.of(1, "", moves),)), cluster)]


@given(snapshots())
def test_a_plan_of_what_is_there_is_done_but_for_what_moves(snapshot: ClusterSnapshot) -> None:
    names = [topic.name for topic in snapshot.topics]
    rows = list(snapshot.partitions)
    is_moving = [bool(row.adding_replicas or row.removing_replicas) for row in rows]
    moves = [
        PartitionReassignment(
            names[row.topic],
            row.partition,
            tuple(broker for broker in row.replicas if not (moving and broker in row.removing_replicas)),
        )
        for row, moving in zip(rows, is_moving, strict=True)
    ]
    states = of(observed(snapshot), *moves)
    assert states == [VerifiedState.IN_PROGRESS if one else VerifiedState.DONE for one in is_moving]


def test_only_the_same_list_in_the_same_order_is_done() -> None:
    cluster = ObservedCluster(None, frozenset(), {"a": "id"}, {TopicPartition("a", 0): (1, 2)})
    move = PartitionReassignment("a", 0, (1, 2), (3, 2))
    assert of(cluster, move) == [VerifiedState.DONE]
    assert of(cluster, PartitionReassignment("a", 0, (2, 1), (3, 2))) == [VerifiedState.DIFFERS]
    assert of(cluster, PartitionReassignment("a", 0, (2, 1), (1, 2))) == [VerifiedState.NOT_STARTED]
    assert of(cluster, PartitionReassignment("a", 1, (1, 2))) == [VerifiedState.DIFFERS]
    assert of(cluster, move, a="another id") == [VerifiedState.DIFFERS]


def test_a_move_to_other_replicas_differs_and_its_target_is_reported() -> None:
    moving = ObservedCluster(None, frozenset(), in_flight={TopicPartition("a", 0): InFlight((1, 2, 3), (1,), (3,))})
    (one,) = verify(ReassignmentPlan(None, {}, (Step.of(1, "", (PartitionReassignment("a", 0, (4, 2)),)),)), moving)
    assert (one.state, one.reason) == (VerifiedState.DIFFERS, "moves to 1,2")


def test_each_partition_that_is_not_as_planned_has_its_reason() -> None:
    cluster = ObservedCluster(None, frozenset(), {"a": "id"}, {TopicPartition("a", one): (1, 2) for one in (0, 1, 2)})
    moves = [
        PartitionReassignment("a", 3, (1, 2)),
        PartitionReassignment("a", 2, (2, 1), (1, 2)),
        PartitionReassignment("a", 1, (2, 3), (2, 1)),
        PartitionReassignment("a", 0, (1, 2)),
    ]
    plan = ReassignmentPlan(None, {}, (Step.of(1, "", moves),))
    found = verify(plan, cluster)
    assert [(one.reassignment.partition, one.state, one.reason) for one in found] == [
        (0, VerifiedState.DONE, None),
        (1, VerifiedState.DIFFERS, "its replicas are 1,2"),
        (2, VerifiedState.NOT_STARTED, "its replicas are 1,2"),
        (3, VerifiedState.DIFFERS, "it is not in the cluster"),
    ]
    deleted = verify(replace(plan, topic_ids={"a": "another"}), cluster)
    assert deleted[0].reason == "its topic was deleted and created again"
    assert verify(replace(plan, topic_ids={"a": "id"}), cluster)[0].state is VerifiedState.DONE
    assert list(counted(found)) == [
        (VerifiedState.DONE, 1),
        (VerifiedState.IN_PROGRESS, 0),
        (VerifiedState.NOT_STARTED, 1),
        (VerifiedState.DIFFERS, 2),
    ]


def test_a_plan_is_done_when_every_partition_is() -> None:
    moves = [PartitionReassignment("a", number, (1,)) for number in (0, 1)]
    done, other = (VerifiedPartition(moves[0], VerifiedState.DONE), VerifiedPartition(moves[1], VerifiedState.DIFFERS))
    assert all_done([])
    assert all_done([done, done])
    assert not all_done([done, other])
    assert not all_done([replace(other, state=VerifiedState.IN_PROGRESS)])


def test_a_move_to_the_replicas_of_the_plan_is_in_progress_in_any_order() -> None:
    place = TopicPartition("a", 0)
    plan = ReassignmentPlan(None, {}, (Step.of(1, "", (PartitionReassignment("a", 0, (4, 2)),)),))
    ours = ObservedCluster(None, frozenset(), in_flight={place: InFlight((2, 4, 1), (4,), (1,))})
    assert [(one.state, one.reason) for one in verify(plan, ours)] == [(VerifiedState.IN_PROGRESS, None)]
