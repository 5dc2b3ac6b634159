"""Kafka's own words for the same states are compared with in tests/compat/test_reassign_apply.py."""

from hypothesis import given

from rackspan.model import ClusterSnapshot
from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.observed import InFlight, ObservedCluster, observed
from rackspan.plan.verification import VerifiedState, all_done, verify
from rackspan.reassign import PartitionReassignment, ReassignmentPlan, Step
from tests.strategies import snapshots


def of(cluster: ObservedCluster, *moves: PartitionReassignment, **ids: str) -> list[VerifiedState]:
    return [one.state for one in verify(ReassignmentPlan(None, ids, (Step.of(1, "", moves),)), cluster)]


@given(snapshots())
def test_a_plan_of_what_is_there_is_done_but_for_what_moves(snapshot: ClusterSnapshot) -> None:
    names = [topic.name for topic in snapshot.topics]
    rows = list(snapshot.partitions)
    moves = [PartitionReassignment(names[row.topic], row.partition, row.replicas) for row in rows]
    is_moving = [bool(row.adding_replicas or row.removing_replicas) for row in rows]
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
    assert all_done([]) is True


def test_whatever_moves_is_in_progress_as_in_kafka_and_its_target_is_reported() -> None:
    moving = ObservedCluster(None, frozenset(), in_flight={TopicPartition("a", 0): InFlight((1, 2, 3), (1,), (3,))})
    (one,) = verify(ReassignmentPlan(None, {}, (Step.of(1, "", (PartitionReassignment("a", 0, (4, 2)),)),)), moving)
    assert (one.state, one.reason) == (VerifiedState.IN_PROGRESS, "it moves to 1,2")
