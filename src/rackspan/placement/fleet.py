"""The brokers a topic can go to, as columns: what `balanced` knows of each of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.placement.water_fill import Float64s


@dataclass(frozen=True, eq=False)
class Fleet:
    """One entry a broker, ordered by rack, then id. Shape (B,) each.

    `rack`: codes 0..R-1, every one of them in use. `weight`: capacity share, above 0. `leaders`, `replicas`: what it
    carries already. `rank`: 0 is served first, a higher rank only where lower ones are full or the spread over racks
    leaves no choice. `may_lead`: whether it may be a preferred leader.
    """

    ids: Int32s
    rack: Int64s
    weight: Float64s
    leaders: Float64s
    replicas: Float64s
    rank: Int64s
    may_lead: Bools

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rack_sizes(self) -> Int64s:
        """Brokers in each rack. Shape (R,)."""
        return np.bincount(self.rack)

    def by_rack(self, units: Int64s) -> Int64s:
        """Sums of a per-broker column over racks. Shape (R,)."""
        return np.bincount(self.rack, weights=units, minlength=len(self.rack_sizes)).astype(np.int64)

    def shelved(self, held: Float64s, partitions: int) -> Float64s:
        """`held`, with each rank standing on a shelf above all that lower ranks could rise to by `partitions` more."""
        highest = float(np.max((held + partitions) / self.weight))
        return np.asarray(held + self.rank * (2.0 + 2.0 * highest) * self.weight)
