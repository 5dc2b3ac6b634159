from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from rackspan.errors import ReplicaPlacementException
from rackspan.model import Broker, BrokerId, RackId
from rackspan.placement import CheckedPlacer, PartitionAssignment, TopicAssignment, UsableBroker, checked, usable

BROKERS = usable(Broker(BrokerId(broker), RackId("abc"[broker % 3])) for broker in range(6))


@dataclass
class FixedPlacer:
    """A placer that returns a fixed assignment."""

    assignment: object
    configs: Mapping[str, str] | None = None
    closed: bool = False

    def configure(self, configs: Mapping[str, str]) -> None:
        self.configs = configs

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        return self.assignment  # type: ignore[return-value]

    def close(self) -> None:
        self.closed = True


def test_rows_are_values_and_the_first_replica_is_the_preferred_leader() -> None:
    assignment = TopicAssignment.of([[0, 1, 2], [1, 2, 3]])
    assert len(assignment) == 2
    assert assignment[1] == PartitionAssignment((BrokerId(1), BrokerId(2), BrokerId(3)))
    assert [row.replicas[0] for row in assignment] == [0, 1]


def test_the_order_of_replicas_is_part_of_an_assignment() -> None:
    # Kafka's TopicAssignmentTest.testConsistentEqualsAndHashCode.
    first, second = TopicAssignment.of([[0, 1, 2], [1, 2, 0]])
    assert first != second


def test_broker_ids_too_large_for_a_table_are_looked_up_all_the_same() -> None:
    brokers = usable([Broker(BrokerId(5)), Broker(BrokerId(2_000_000_000))])
    assert len(checked(TopicAssignment.of([[2_000_000_000, 5]]), 0, 1, 2, brokers)) == 1
    with pytest.raises(ReplicaPlacementException, match="put partition 0 on broker 6, which was not offered"):
        checked(TopicAssignment.of([[2_000_000_000, 6]]), 0, 1, 2, brokers)


def test_an_assignment_cannot_be_changed_after_it_was_checked() -> None:
    with pytest.raises(ValueError, match="read-only"):
        TopicAssignment.of([[0, 1]]).replicas[0, 0] = 5


def test_a_valid_assignment_is_returned_unchanged() -> None:
    assignment = TopicAssignment.of([[0, 1, 2], [1, 2, 3]])
    assert CheckedPlacer("ours", FixedPlacer(assignment)).place(0, 2, 3, BROKERS) is assignment


def test_an_empty_assignment_is_valid_for_no_partitions() -> None:
    assignment = TopicAssignment.of([])
    assert checked(assignment, 0, 0, 3, BROKERS) is assignment


def test_configs_and_close_reach_the_placer_behind_the_check() -> None:
    placer = FixedPlacer(None)
    guard = CheckedPlacer("ours", placer)
    guard.configure({"broker.rack": "a"})
    guard.close()
    assert (placer.configs, placer.closed) == ({"broker.rack": "a"}, True)


@pytest.mark.parametrize(
    ("assignment", "line"),
    [
        (None, "ours returned NoneType, not a TopicAssignment; correct the placer, or choose another"),
        ([[0, 1], [1, 2]], "ours returned list, not a TopicAssignment; correct the placer, or choose another"),
        (
            TopicAssignment([[0, 1], [1, 2]]),  # type: ignore[arg-type]
            "ours returned list, not a matrix of 32-bit broker ids; correct the placer, or choose another",
        ),
        (
            TopicAssignment(np.array([[0, 1], [1, 2]], dtype=np.float64)),
            "ours returned 2 dimensions of float64, not a matrix of 32-bit broker ids; correct the placer, or choose another",
        ),
        (
            TopicAssignment(np.array([0, 1], dtype=np.int32)),
            "ours returned 1 dimensions of int32, not a matrix of 32-bit broker ids; correct the placer, or choose another",
        ),
        (
            TopicAssignment.of([[0, 1]]),
            "ours returned 1 partition, expected 2; correct the placer, or choose another",
        ),
        (
            TopicAssignment.of([[0], [1]]),
            "ours returned 1 replica a partition, expected 2; correct the placer, or choose another",
        ),
        (
            TopicAssignment.of([[0, 1], [1, 1]]),
            "ours put partition 8 on broker 1 twice; correct the placer, or choose another",
        ),
        (
            TopicAssignment.of([[0, 1], [1, 9]]),
            "ours put partition 8 on broker 9, which was not offered; correct the placer, or choose another",
        ),
        (
            TopicAssignment.of([[-1, 1], [1, 2]]),
            "ours put partition 7 on broker -1, which was not offered; correct the placer, or choose another",
        ),
    ],
)
def test_an_invalid_assignment_is_refused_with_the_placer_and_the_partition(assignment: object, line: str) -> None:
    with pytest.raises(ReplicaPlacementException) as refusal:
        CheckedPlacer("ours", FixedPlacer(assignment)).place(7, 2, 2, BROKERS)
    assert str(refusal.value) == line
    assert refusal.value.retriable is False


def test_an_assignment_is_refused_where_no_broker_was_offered() -> None:
    with pytest.raises(ReplicaPlacementException, match="put partition 0 on broker 0, and there is no broker"):
        checked(TopicAssignment.of([[0]]), 0, 1, 1, ())


def test_rows_of_different_lengths_are_refused_where_they_are_made() -> None:
    with pytest.raises(ReplicaPlacementException) as refusal:
        TopicAssignment.of([[0, 1], [1]])
    assert (
        str(refusal.value)
        == "partition 1 of the result has 1 replica and partition 0 has 2; a placer gives all the same number"
    )


def test_whatever_a_placer_raises_is_a_placement_that_failed() -> None:
    class BrokenPlacer(FixedPlacer):
        def place(self, *_: object) -> TopicAssignment:
            raise KeyError("disk\nusage")

    with pytest.raises(ReplicaPlacementException) as refusal:
        CheckedPlacer("ours", BrokenPlacer(None)).place(0, 1, 1, BROKERS)
    assert str(refusal.value) == "ours failed with KeyError: 'disk\\nusage'; correct the placer, or choose another"


def test_a_placers_own_refusal_is_passed_on() -> None:
    class RefusingPlacer(FixedPlacer):
        def place(self, *_: object) -> TopicAssignment:
            raise ReplicaPlacementException("every disk is full; add brokers")

    with pytest.raises(ReplicaPlacementException, match=r"^every disk is full; add brokers$"):
        CheckedPlacer("ours", RefusingPlacer(None)).place(0, 1, 1, BROKERS)


def test_a_single_partition_with_another_number_of_replicas_is_refused() -> None:
    with pytest.raises(ReplicaPlacementException, match="returned 1 replica a partition, expected 2"):
        checked(TopicAssignment.of([[0]]), 0, 1, 2, BROKERS)
    assert len(checked(TopicAssignment(np.empty((0, 0), dtype=np.int32)), 0, 0, 2, BROKERS)) == 0
