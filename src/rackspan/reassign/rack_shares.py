"""How many replicas of one partition each rack must and may hold, as tables over replication factors."""

from dataclasses import dataclass

import numpy as np

from rackspan.model import NO_RACK, Int32s, Int64s, count_in_row, even_shares


@dataclass(frozen=True, slots=True, eq=False)
class RackShares:
    """The most even spread, as limits. Tables of shape (largest replication factor + 1, racks + 1).

    A partition of k replicas is spread as evenly as racks allow exactly if each rack r holds between `least[k, r]` and
    `most[k, r]` of them. The last column is NO_RACK's: it holds nothing that counts, so both are 0 there.
    """

    least: Int64s
    most: Int64s

    @property
    def racks(self) -> int:
        return int(self.least.shape[1]) - 1


def rack_shares(rack_sizes: Int64s, largest_replication_factor: int) -> RackShares:
    """Floors and ceilings by water-filling: every rack takes one replica more per round until it is full.

    `rack_sizes` (racks,) is brokers per rack. Source: the rule of `audit`'s rack-spread (model.racks.even_shares).
    """
    shape = (largest_replication_factor + 1, len(rack_sizes) + 1)
    least, most = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for factor in range(1, largest_replication_factor + 1):
        least[factor, :-1], most[factor, :-1] = even_shares(rack_sizes, factor)
    return RackShares(least, most)


def position_in_run(rack_codes: Int32s) -> tuple[Int32s, Int64s]:
    """Each row's rack codes sorted, and for each the number of equal codes before it in its row. Shapes as given."""
    ordered = np.sort(rack_codes)
    column = np.broadcast_to(np.arange(ordered.shape[1], dtype=np.int64), ordered.shape)
    starts = np.ones(ordered.shape, dtype=np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return ordered, column - np.maximum.accumulate(np.where(starts, column, 0), axis=1)


def racked(rack_codes: Int32s) -> Int64s:
    """How many entries of each row count in a rack. Shape (P,)."""
    return count_in_row(rack_codes != NO_RACK)
