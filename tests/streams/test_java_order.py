"""Hash codes and orders as a JVM gave them (TaskId.hashCode, UUID.hashCode, HashSet, PriorityQueue of OpenJDK 17)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.streams.java_order import hash_order, heap_order, process_hash, task_hash


@pytest.mark.parametrize(("task", "code"), [("0_1", 29822), ("3_7", 32891), ("ab__3_7", 35996)])
def test_a_task_hashes_as_in_java(task: str, code: int) -> None:
    assert task_hash(task) == code


def test_a_process_hashes_as_in_java() -> None:
    assert process_hash("8b2c1f00-1234-4abc-9def-000000000007") == 83318203
    # One half alone is negative in Java, which is still a hash of 32 bits.
    assert process_hash("80000000-0000-4000-0000-000000000001") == 0x80000000 ^ 0x00004001


def test_a_copied_set_of_twelve_has_more_buckets_than_one_filled_one_by_one() -> None:
    hashes = [17, *range(1, 12)]
    assert hash_order(hashes)[:2] == [0, 1]
    assert hash_order(hashes, copied=True)[-1] == 0


def test_a_table_that_was_fuller_keeps_its_size() -> None:
    assert hash_order([17, 2]) == [0, 1]
    assert hash_order([17, 2], fullest=13) == [1, 0]


def test_a_heap_returns_the_least_first_and_equals_in_heap_order() -> None:
    assert heap_order([(2,), (1,), (3,)]) == [1, 0, 2]
    assert heap_order([(1,), (1,), (1,), (1,)]) == [0, 3, 2, 1]
    assert heap_order([]) == []


@given(st.lists(st.tuples(st.integers(0, 9)), max_size=40))
def test_a_heap_returns_every_position_once_by_ascending_key(keys: list[tuple[int]]) -> None:
    order = heap_order(keys)
    assert sorted(order) == list(range(len(keys)))
    assert [keys[at] for at in order] == sorted(keys)
