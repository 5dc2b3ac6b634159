"""Replica lists after a change: an added replica takes the position of the one it replaces."""

import numpy as np

from rackspan.model import NO_BROKER, Bools, Int32s, Int64s


def with_changes(held: Int32s, leaving: Bools, row: Int64s, broker: Int32s | Int64s) -> Int32s:
    """`held` (P, width) without what `leaving` marks or is −1 already, with addition `broker[i]` at `row[i]`.

    The result is (P, enough), padded on the right. An addition takes the first free position, so that the order of those
    that stay, and with it the preferred leader, is kept where it can be.
    """
    order = np.argsort(row, kind="stable")
    row, broker = row[order], broker[order]
    nth = np.arange(len(row)) - np.searchsorted(row, row)
    extra = int(nth.max(initial=-1)) + 1
    free_first = np.pad(np.where(leaving, NO_BROKER, held), ((0, 0), (0, extra)), constant_values=NO_BROKER)
    positions = np.sort(
        np.where(free_first[row] == NO_BROKER, np.arange(free_first.shape[1]), free_first.shape[1]), axis=1
    )
    free_first[row, positions[np.arange(len(row)), nth]] = broker
    return compacted(free_first)


def in_order_of(held: Int32s, targets: Int32s) -> Int32s:
    """`targets` (P, width) with the replicas that `held` (P, width) has in its order, new ones in the positions of those that left."""
    stays = np.zeros(held.shape, dtype=np.bool_)
    new = targets >= 0
    for column in targets.T:
        stays |= held == column[:, None]
    for column in held.T:
        new &= targets != column[:, None]
    row, column = np.nonzero(new)
    return with_changes(held, ~stays, row, targets[row, column])


def compacted(matrix: Int32s) -> Int32s:
    """Padding moved to the right of each row, columns of nothing but padding cut off. The order of the rest is kept."""
    absent = matrix == NO_BROKER
    gaps = (absent[:, :-1] & ~absent[:, 1:]).any(axis=1)
    result = matrix.copy()
    order = np.argsort(absent[gaps], kind="stable")
    result[gaps] = np.take_along_axis(matrix[gaps], order, axis=1)
    width = int((result != NO_BROKER).sum(axis=1).max(initial=1))
    return np.ascontiguousarray(result[:, :width])


def led_by(targets: Int32s, rows: Int64s, leader: Int64s) -> Int32s:
    """`targets` with `leader[i]`, one of the row's replicas, first in `rows[i]`; the others keep their order."""
    chosen = targets[rows]
    rest = np.argsort(chosen != leader[:, None], kind="stable")
    result = targets.copy()
    result[rows] = np.take_along_axis(chosen, rest, axis=1)
    return result
