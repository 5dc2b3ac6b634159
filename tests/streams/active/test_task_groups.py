import numpy as np

from rackspan.streams.active.task_groups import distribute, group_rows, last_of_each


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_rows_equal_in_every_column_are_one_group_in_order_of_their_keys() -> None:
    groups = group_rows(ints(1, 0, 1, 0, 1), ints(5, 5, 4, 5, 5))
    assert groups.of.tolist() == [2, 0, 1, 0, 2]
    assert groups.size.tolist() == [2, 1, 2]
    assert groups.first.tolist() == [1, 2, 0]


def test_the_last_rows_of_a_group_are_as_many_as_its_count() -> None:
    groups = group_rows(ints(0, 1, 0, 0, 1))
    assert last_of_each(groups, ints(2, 1)).tolist() == [2, 3, 4]
    assert last_of_each(groups, ints(0, 0)).tolist() == []


def test_rows_of_a_source_are_distributed_line_by_line_in_ascending_order() -> None:
    rows, targets = distribute(ints(9, 3, 7, 1), ints(0, 0, 1, 1), ints(10, 11, 12), ints(1, 2, 1), ints(0, 1, 0))
    assert list(zip(rows.tolist(), targets.tolist(), strict=True)) == [(3, 10), (9, 12), (1, 11), (7, 11)]
