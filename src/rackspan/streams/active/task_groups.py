"""Groups of interchangeable tasks, and single tasks for the counts of a flow. All in columns."""

from dataclasses import dataclass

import numpy as np

from rackspan.streams.problem import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class TaskGroups:
    """Rows grouped by equal keys. `of` (n,) group of each row; `first` (G,) first row of each group; `size` (G,) its rows."""

    of: Int64s
    first: Int64s
    size: Int64s


def group_rows(*columns: Int64s | Int32s) -> TaskGroups:
    """Group rows by their key columns. Groups are in lexicographic order of the keys.

    Method: combine one column after the other into a dense code, so that codes never overflow and a column is sorted once.
    Bound: two sorts a column. Test: tests/streams/active/test_task_groups.py.
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, inverse = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + inverse, return_inverse=True)[1]
    _, first, size = np.unique(code, return_index=True, return_counts=True)
    return TaskGroups(of=code, first=first, size=size)


def traffic_classes(traffic: Int64s, *more: Int64s | Int32s) -> TaskGroups:
    """Tasks grouped by equal traffic in every rack and equal `more` columns."""
    return group_rows(*more, *traffic.T)


def last_of_each(groups: TaskGroups, count: Int64s) -> Int64s:
    """The last `count[g]` rows of each group g, by group, then row."""
    order = np.argsort(groups.of, kind="stable")
    end = np.cumsum(groups.size)
    from_end = end[groups.of[order]] - 1 - np.arange(len(order))
    return np.asarray(order[from_end < count[groups.of[order]]])


def distribute(
    rows: Int64s, source: Int64s, destination: Int64s | Int32s, count: Int64s, line_source: Int64s | Int32s
) -> tuple[Int64s, Int64s]:
    """Distribute rows over destinations: line i sends `count[i]` rows of source `line_source[i]` to `destination[i]`.

    `source` (m,) is the source of each of `rows` (m,). Returns (rows, destinations), aligned. The rows of a source are used
    in ascending order, its lines in the order given; the counts of its lines sum to the number of its rows.
    """
    ordered = rows[np.lexsort((rows, source))]
    lines = np.argsort(line_source, kind="stable")
    return ordered, np.repeat(np.asarray(destination, dtype=np.int64)[lines], count[lines])
