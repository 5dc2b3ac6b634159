"""Groups of equal rows, and the distribution of a group's items over its rows.

A million partitions to repair fall into a few thousand groups. Solvers work on groups; `distribute_items` maps their
result back to rows.
"""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Int32s, Int64s

KEY_MAX = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """`of_row` (N,): the group of each row. `first` (G,): one row of each group. `size` (G,): how many rows it has."""

    of_row: Int64s
    first: Int64s
    size: Int64s

    def __len__(self) -> int:
        return len(self.first)


def group_rows(matrix: Int32s | Int64s) -> RowGroups:
    """Group the equal rows of an integer matrix (N, columns). RowGroups are numbered in order of their rows' values."""
    _, first, of_row, size = np.unique(_keys(matrix), return_index=True, return_inverse=True, return_counts=True)
    return RowGroups(of_row=of_row.astype(np.int64), first=first.astype(np.int64), size=size.astype(np.int64))


def _keys(matrix: Int32s | Int64s) -> Int64s:
    """One number a row, equal exactly for equal rows."""
    key, highest = np.zeros(len(matrix), dtype=np.int64), 0
    for column in matrix.T:
        shifted = column.astype(np.int64) - int(column.min(initial=0))
        span = int(shifted.max(initial=0)) + 1
        if (highest + 1) * span >= KEY_MAX:
            # Renumbered, keys are at most N: the keys are small again.
            key = np.unique(key, return_inverse=True)[1]
            highest = len(key)
        key = key * span + shifted
        highest = (highest + 1) * span
    return key


def distribute_items(groups: RowGroups, group_of_item: Int64s) -> Int64s:
    """The row of each item, when the items of a group go to its rows in turn. Shape as `group_of_item`.

    `group_of_item` ascends. Item j of a group of n rows goes to row j mod n. So whatever comes at most n times in a
    stretch comes at most once to a row, and every row gets its share of any stretch, rounded down or up: limits that
    hold for the group as a whole hold for each of its rows.
    """
    by_group = np.argsort(groups.of_row, kind="stable")
    starts = np.concatenate(([0], np.cumsum(groups.size)))
    item_starts = np.searchsorted(group_of_item, np.arange(len(groups)))
    nth = np.arange(len(group_of_item)) - item_starts[group_of_item]
    return np.asarray(by_group[starts[group_of_item] + nth % groups.size[group_of_item]])
