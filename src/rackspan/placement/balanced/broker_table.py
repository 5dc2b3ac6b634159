"""The brokers a topic can go to, as columns: what `balanced` knows of each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.placement.balanced.settings import BalancedSettings
from rackspan.placement.balanced.water_fill import Float64s
from rackspan.placement.kafka.java_random import utf16
from rackspan.placement.usable_brokers import UsableBroker


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


def fleet_of(brokers: Sequence[UsableBroker], by_rack: bool, settings: BalancedSettings) -> Fleet:
    """The brokers as columns; without `by_rack` they are all in one rack. At least one of them is live."""
    racks = {rack: code for code, rack in enumerate(sorted({broker.rack for broker in brokers}, key=utf16))}
    codes = {broker.id: racks[broker.rack] if by_rack else 0 for broker in brokers}
    ordered = sorted(brokers, key=lambda broker: (codes[broker.id], broker.id))
    ids = [int(broker.id) for broker in ordered]
    weight = np.array([settings.weights.get(one, 1.0) for one in ids])
    new = np.array([one in settings.new for one in ids])
    fenced = np.array([broker.fenced for broker in ordered])
    return Fleet(
        ids=np.array(ids, dtype=np.int32),
        rack=np.array([codes[broker.id] for broker in ordered], dtype=np.int64),
        weight=weight,
        leaders=_felt(_column(settings.leaders, ids), weight, new, settings.new_preference),
        replicas=_felt(_column(settings.replicas, ids), weight, new, settings.new_preference),
        rank=_ranks(ids, fenced, settings),
        may_lead=~fenced,
    )


def _column(values: Mapping[int, int], ids: Sequence[int]) -> Float64s:
    return np.array([values.get(one, 0) for one in ids], dtype=np.float64)


def _felt(held: Float64s, weight: Float64s, new: Bools, preference: float) -> Float64s:
    """Loads as placement feels them: new brokers lag behind the others' mean level by `preference` of the truth."""
    if not new.any() or new.all():
        return held
    mean = held[~new].sum() / weight[~new].sum()
    lag = np.maximum(mean * weight - held, 0)
    return np.asarray(np.where(new, held + (1 - preference) * lag, held))


def _ranks(ids: Sequence[int], fenced: Bools, settings: BalancedSettings) -> Int64s:
    """Healthy 0, near capacity 1, fenced 2, draining 3, both 4: what the operator said outranks what may pass.

    Where every live broker is draining somebody has to lead all the same, so there they come before fenced ones.
    """
    draining = np.array([one in settings.draining for one in ids])
    near = np.array([one in settings.near_capacity for one in ids])
    last_resort = 1 if not (~fenced & ~draining).any() else 3
    ranks = np.where(fenced, 2, np.where(near, 1, 0))
    return np.asarray(np.where(draining, np.where(fenced, 4, last_resort), ranks))
