"""What is wrong with a file itself, each fault with the partition that it is about; Kafka's words: test_lint.py."""

import pytest

from rackspan.reassign.document import Fault, ListedPartition, ReassignmentDocument, faults


def found(*entries: ListedPartition) -> list[tuple[str, str | None, int | None, str]]:
    return [
        (one.constraint, one.topic, one.partition, one.reason) for one in faults(ReassignmentDocument(tuple(entries)))
    ]


GOOD = ListedPartition("a", 0, (1, 2))


@pytest.mark.parametrize(
    ("entry", "constraint", "reason"),
    [
        (ListedPartition("b", 7, ()), "plan-no-replicas", "b-7 would have no replicas"),
        (
            ListedPartition("b", 7, (1, -3, -2)),
            "plan-unknown-broker",
            "b-7 names broker -3, but an id is not negative",
        ),
        (
            ListedPartition("b", 7, (1, 2, 2, 3, 1)),
            "plan-duplicate-replica",
            "Partition replica lists may not contain duplicate entries: b-7 contains multiple entries for 1, 2",
        ),
        (
            ListedPartition("b", 7, (1, 2), ("any", "/x", "any")),
            "plan-log-dirs",
            "Size of replicas list [1, 2] is different from size of log dirs list [any, /x, any] for partition b-7",
        ),
    ],
)
def test_a_fault_of_an_entry_names_its_partition(entry: ListedPartition, constraint: str, reason: str) -> None:
    assert found(GOOD, entry) == [(constraint, "b", 7, reason)]


def test_a_partition_that_is_listed_twice_is_one_fault() -> None:
    other = ListedPartition("a", 1, (3,), ("any",))
    words = "Partition reassignment contains duplicate topic partitions: a-0"
    assert found(GOOD, other, ListedPartition("a", 0, (3,)), GOOD) == [("plan-duplicate-partition", "a", 0, words)]


def test_a_file_without_entries_is_empty_unless_they_could_not_be_read() -> None:
    assert found() == [("plan-empty", None, None, "Partition reassignment list cannot be empty")]
    malformed = Fault("plan-format", None, None, "partitions[0] is 7, not an object")
    assert list(faults(ReassignmentDocument((), (malformed,)))) == [malformed]
    assert list(faults(ReassignmentDocument((GOOD,), (malformed,)))) == [malformed]


def test_broker_0_is_a_broker_and_a_sound_file_has_no_fault() -> None:
    assert found(GOOD, ListedPartition("a", 1, (0, 1), ("any", "/x")), ListedPartition("b", 0, (5,))) == []
