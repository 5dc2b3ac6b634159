"""Kafka's own words for the same states are compared with in tests/compat/test_reassign_apply.py."""

from hypothesis import given

from rackspan.model import ClusterSnapshot
from rackspan.plan.execution.observed import InFlight, ObservedCluster, observed
from rackspan.plan.verification import Verdict, all_done, verdicts
from rackspan.plan.written import PartitionMove, WrittenPlan, WrittenStep
from tests.strategies import snapshots


def of(seen: ObservedCluster, *moves: PartitionMove, **ids: str) -> list[Verdict]:
    return [one.verdict for one in verdicts(WrittenPlan(None, ids, (WrittenStep(1, "", moves),)), seen)]


@given(snapshots())
def test_a_plan_of_what_is_there_is_done_but_for_what_moves(snapshot: ClusterSnapshot) -> None:
    names = [topic.name for topic in snapshot.topics]
    rows = list(snapshot.partitions)
    moves = [PartitionMove(names[row.topic], row.partition, row.replicas) for row in rows]
    is_moving = [bool(row.adding_replicas or row.removing_replicas) for row in rows]
    found = of(observed(snapshot), *moves)
    assert found == [Verdict.IN_PROGRESS if one else Verdict.DONE for one in is_moving]


def test_only_the_same_list_in_the_same_order_is_done() -> None:
    seen = ObservedCluster(None, frozenset(), {"a": "id"}, {("a", 0): (1, 2)})
    move = PartitionMove("a", 0, (1, 2), (3, 2))
    assert of(seen, move) == [Verdict.DONE]
    assert of(seen, PartitionMove("a", 0, (2, 1), (3, 2))) == [Verdict.DIFFERS]
    assert of(seen, PartitionMove("a", 0, (2, 1), (1, 2))) == [Verdict.NOT_STARTED]
    assert of(seen, PartitionMove("a", 1, (1, 2))) == [Verdict.DIFFERS]
    assert of(seen, move, a="another id") == [Verdict.DIFFERS]
    assert all_done([]) is True


def test_whatever_moves_is_in_progress_as_kafka_says_and_where_to_is_told() -> None:
    moving = ObservedCluster(None, frozenset(), in_flight={("a", 0): InFlight((1, 2, 3), (1,), (3,))})
    (one,) = verdicts(WrittenPlan(None, {}, (WrittenStep(1, "", (PartitionMove("a", 0, (4, 2)),)),)), moving)
    assert (one.verdict, one.reason) == (Verdict.IN_PROGRESS, "it moves to 1,2")
