import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.model.partitions import (
    UNKNOWN_SIZE,
    any_in_row,
    columns,
    count_in_row,
    flattened,
    lengths,
    padded_lists,
    unpadded,
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
