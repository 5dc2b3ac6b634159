"""Interchangeable tasks as groups, and flows decoded into tasks. All in columns."""

from dataclasses import dataclass

import numpy as np

from rackspan.streams.problem import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class TaskGroups:
    """Rows that are equal in every key column. `of` (n,) group of each row; `first` (G,) a row of each; `size` (G,)."""

    of: Int64s
    first: Int64s
    size: Int64s


def group_rows(*columns: Int64s | Int32s) -> TaskGroups:
    """Group rows by their key columns. Groups are in lexicographic order of the keys.

    Method: fold one column after the other into a dense code, so that codes never overflow and a column is sorted once.
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + inverse, return_inverse=True)[1]
    _, first, size = np.unique(code, return_index=True, return_counts=True)
    return TaskGroups(of=code, first=first, size=size)


def traffic_classes(traffic: Int64s, *more: Int64s | Int32s) -> TaskGroups:
    """Tasks that cost the same everywhere, and agree in `more`."""
    return group_rows(*more, *traffic.T)


def last_of_each(groups: TaskGroups, count: Int64s) -> Int64s:
    """Rows that are among the last `count[g]` of their group g, by group, then row."""
    order = np.argsort(groups.of, kind="stable")
    end = np.cumsum(groups.size)
    from_end = end[groups.of[order]] - 1 - np.arange(len(order))
    return np.asarray(order[from_end < count[groups.of[order]]])


def deal(
    rows: Int64s, pile: Int64s, destination: Int64s | Int32s, count: Int64s, piles: Int64s | Int32s
) -> tuple[Int64s, Int64s]:
    """Give out the rows of each pile to destinations: line i hands `count[i]` rows of pile `piles[i]` to `destination[i]`.

    `rows` (m,) with `pile` (m,) each row's pile. Returns (rows, destinations), aligned. Rows leave a pile in ascending order; lines
    are taken in the order given. Every pile's lines sum to its rows.
    """
    taken = rows[np.lexsort((rows, pile))]
    lines = np.argsort(piles, kind="stable")
    return taken, np.repeat(np.asarray(destination, dtype=np.int64)[lines], count[lines])
