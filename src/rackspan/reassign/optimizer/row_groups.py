"""Equal rows as one group, and a group's lot dealt back to its rows.

A million partitions in need are a few thousand kinds. Solvers see the kinds; `deal` hands the answer back.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rackspan.model.partitions import Int64s

KEY_MAX = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """`of_row` (N,): the group of each row. `first` (G,): one row of each group. `size` (G,): how many rows it has."""

    of_row: Int64s
    first: Int64s
    size: Int64s

    def __len__(self) -> int:
        return len(self.first)


def grouped(matrix: npt.NDArray[Any]) -> Groups:
    """Group the equal rows of an integer matrix (N, columns). Groups are numbered in order of their rows' values."""
    _, first, of_row, size = np.unique(_keys(matrix), return_index=True, return_inverse=True, return_counts=True)
    return Groups(of_row=of_row.astype(np.int64), first=first.astype(np.int64), size=size.astype(np.int64))


def _keys(matrix: npt.NDArray[Any]) -> Int64s:
    """One number a row, equal exactly for equal rows."""
    key, highest = np.zeros(len(matrix), dtype=np.int64), 0
    for column in matrix.T:
        shifted = column.astype(np.int64) - int(column.min(initial=0))
        span = int(shifted.max(initial=0)) + 1
        if (highest + 1) * span >= KEY_MAX:
            # Renumbered, keys are at most N: there is room again.
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            highest = len(key)
        key = key * span + shifted
        highest = (highest + 1) * span
    return key


def deal(groups: Groups, group_of_item: Int64s) -> Int64s:
    """The row each item goes to, when a group's items are dealt to its rows in turn. Shape as `group_of_item`.

    `group_of_item` ascends. Item j of a group of n rows goes to row j mod n. So whatever comes at most n times in a
    stretch comes at most once to a row, and every row gets its share of any stretch, rounded down or up: limits that
    hold for the group as a whole hold for each of its rows.
    """
    by_group = np.argsort(groups.of_row, kind="stable")
    starts = np.concatenate(([0], np.cumsum(groups.size)))
    item_starts = np.searchsorted(group_of_item, np.arange(len(groups)))
    place = np.arange(len(group_of_item)) - item_starts[group_of_item]
    return np.asarray(by_group[starts[group_of_item] + place % groups.size[group_of_item]])
