"""Brokers into few batches: several greedy orders, and the result with the fewest batches.

Method: saturation order (Brélaz's DSATUR) on the pairs that conflict, and first fit by rack, by id and by degree; each
broker enters the first batch that the whole rule allows it. bounds.py says how far the result can be from the fewest.
"""

from collections.abc import Sequence

import numpy as np

from rackspan.model import Bools, Int32s
from rackspan.restart.search.conflicts import Conflicts


def greedy_batches(conflicts: Conflicts, racks: Int32s, bound: int) -> list[Bools]:
    """Batches as masks (n,) that hold every broker once. `racks`: the rack code of each; stops once `bound` is met."""
    size = conflicts.size
    degree = conflicts.pairs.sum(axis=1)
    orders = (np.lexsort((np.arange(size), racks)), np.lexsort((np.arange(size), -degree)), np.arange(size))
    best = _saturated(conflicts, degree)
    for order in orders:
        if len(best) <= bound:
            break
        tried = _first_fit(conflicts, order.tolist())
        best = min(best, tried, key=len)
    return best


def _first_fit(conflicts: Conflicts, order: Sequence[int]) -> list[Bools]:
    batches: list[Bools] = []
    for broker in order:
        _put(conflicts, broker, batches)
    return batches


def _put(conflicts: Conflicts, broker: int, batches: list[Bools]) -> int:
    for number, batch in enumerate(batches):
        if conflicts.fits(broker, batch):
            batch[broker] = True
            return number
    batches.append(np.zeros(conflicts.size, dtype=np.bool_))
    batches[-1][broker] = True
    return len(batches) - 1


def _saturated(conflicts: Conflicts, degree: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[Bools]:
    """Next comes the broker that conflicts with the most batches, then the one of the highest degree, then the first."""
    size = conflicts.size
    batches: list[Bools] = []
    conflicting = np.zeros((size, size), dtype=np.bool_)  # (broker, batch)
    saturation = np.zeros(size, dtype=np.int64)
    left = np.ones(size, dtype=np.bool_)
    while left.any():
        broker = int(np.argmax(np.where(left, saturation * (size + 1) + degree, -1)))
        number = _put(conflicts, broker, batches)
        left[broker] = False
        fresh = conflicts.pairs[broker] & ~conflicting[:, number]
        conflicting[:, number] |= fresh
        saturation[fresh] += 1
    return batches
