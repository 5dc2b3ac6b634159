"""Partitions as columns: lists as matrices and back, rows as values, and what is found in all rows at once."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.model import partitions
from rackspan.model.partitions import (
    UNKNOWN_SIZE,
    any_in_row,
    any_outside,
    columns,
    count_in_row,
    flattened,
    lengths,
    padded,
    padded_lists,
    sorted_in_row,
    unpadded,
    unpadded_rows,
)

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5)


@given(ROWS)
def test_lists_become_a_matrix_and_lists_again(rows: list[list[int]]) -> None:
    matrix = padded_lists(rows)
    width = max(map(len, rows), default=0)
    assert matrix.shape == (len(rows), width)
    assert matrix.tolist() == [row + [-1] * (width - len(row)) for row in rows]
    assert [list(unpadded(row)) for row in matrix] == rows
    assert lengths(matrix).tolist() == [len(row) for row in rows]
    values, offsets = flattened(matrix)
    assert values.tolist() == [one for row in rows for one in row]
    assert np.diff(offsets).tolist() == [len(row) for row in rows]


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=5))
def test_rows_are_counted_as_python_counts_them(rows: list[list[bool]]) -> None:
    mask = np.array(rows, dtype=np.bool_)
    assert any_in_row(mask).tolist() == [any(row) for row in rows]
    assert count_in_row(mask).tolist() == [sum(row) for row in rows]


def test_what_is_left_out_is_empty_and_unknown() -> None:
    rows = columns(topic=[0, 0], partition=[0, 1], leader=[1, 2], replicas=[[1, 2], [2]], isr=[[1], [2]])
    first, second = rows
    assert (first.adding_replicas, first.removing_replicas, first.size_bytes) == ((), (), None)
    assert (second.replicas, second.leader, rows.size_bytes.tolist()) == ((2,), 2, [UNKNOWN_SIZE] * 2)


def test_what_is_given_stands_in_its_row() -> None:
    rows = columns(
        topic=[0, 1], partition=[0, 5], leader=[1, 2], replicas=[[1], [2]], isr=[[1], [2]],
        adding_replicas=[[3], []], removing_replicas=[[], [4]], size_bytes=[0, 7],
    )  # fmt: skip
    assert [(row.adding_replicas, row.removing_replicas, row.size_bytes) for row in rows] == [
        ((3,), (), 0),
        ((), (4,), 7),
    ]
    assert [(row.topic, row.partition) for row in rows.take(np.array([1]))] == [(1, 5)]
    with pytest.raises(ValueError, match="read-only"):
        rows.leader[0] = 9


def test_a_size_of_which_nothing_is_known_is_minus_1_in_its_column() -> None:
    rows = columns(topic=[0], partition=[0], leader=[1], replicas=[[1]], isr=[[1]])
    assert rows.size_bytes.tolist() == [-1]
    assert rows.size_bytes.dtype == np.int64
    assert rows.row(0).size_bytes is None


def test_no_partitions_are_columns_without_rows() -> None:
    rows = columns(topic=[], partition=[], leader=[], replicas=[], isr=[])
    assert (len(rows), list(rows), rows.replicas.shape) == (0, [], (0, 0))


def test_a_row_by_its_index_is_the_one_of_the_iteration() -> None:
    rows = columns(
        topic=[0, 1], partition=[4, 5], leader=[1, -1], replicas=[[1, 2], [2]], isr=[[2], []],
        adding_replicas=[[2], []], removing_replicas=[[], [2]], size_bytes=[0, -1],
    )  # fmt: skip
    assert [rows.row(0), rows.row(1)] == list(rows)
    assert rows.row(0) == partitions.Partition(0, 4, 1, (1, 2), (2,), (2,), (), 0)
    assert rows.row(1) == partitions.Partition(1, 5, -1, (2,), (), (), (2,), None)


def test_every_row_is_met_once_however_many_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "ROWS_AT_ONCE", 2)
    rows = columns(topic=[0] * 5, partition=range(5), leader=[1] * 5, replicas=[[1]] * 5, isr=[[1]] * 5)
    assert [row.partition for row in rows] == [0, 1, 2, 3, 4]


def test_every_row_of_a_matrix_is_listed_without_its_padding() -> None:
    assert unpadded_rows(np.array([[1, 2, -1], [-1, -1, -1]], dtype=np.int32)) == [(1, 2), ()]


@pytest.mark.parametrize(("ends", "rows"), [([1, 3, 5], [[1, 2], [3, 4]]), ([1, 4, 5], [[1, 2, 3], [4, -1, -1]])])
def test_a_part_of_a_list_of_values_becomes_a_matrix(ends: list[int], rows: list[list[int]]) -> None:
    values = np.array([9, 1, 2, 3, 4, 9], dtype=np.int32)
    assert padded(values, np.array(ends)).tolist() == rows


def test_lists_of_one_length_become_a_matrix_without_a_copy() -> None:
    values = np.array([1, 2, 3, 4], dtype=np.int32)
    assert np.shares_memory(values, padded(values, np.array([0, 2, 4])))


def test_a_row_is_outside_if_one_of_its_brokers_is_missing_in_the_other() -> None:
    some = np.array([[1, 2], [3, 1], [1, 3], [-1, -1]], dtype=np.int32)
    others = np.array([[2, 1, 5], [1, 4, -1], [1, -1, -1], [1, 2, 3]], dtype=np.int32)
    assert any_outside(some, others).tolist() == [False, True, True, False]


@pytest.mark.parametrize("width", [1, 2, 5, 6])
def test_a_row_of_any_order_is_sorted(width: int) -> None:
    every = np.array(list(permutations(range(width))), dtype=np.int32)
    assert np.unique(sorted_in_row(every), axis=0).tolist() == [list(range(width))]


def test_rows_too_wide_or_too_narrow_for_exchanges_are_sorted_too() -> None:
    wide = np.array([[7, 6, 5, 4, 3, 2, 1], [-1, 3, -1, 9, 8, 0, 2]], dtype=np.int32)
    assert sorted_in_row(wide).tolist() == [[1, 2, 3, 4, 5, 6, 7], [-1, -1, 0, 2, 3, 8, 9]]
    assert [column.tolist() for column in partitions.sorted_columns(wide.T)] == [
        [1, -1], [2, -1], [3, 0], [4, 2], [5, 3], [6, 8], [7, 9],
    ]  # fmt: skip
    assert sorted_in_row(np.zeros((2, 0), dtype=np.int32)).shape == (2, 0)
