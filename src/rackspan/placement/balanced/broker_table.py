"""The brokers a topic can be placed on, as columns: rack, weight, load and rank of each."""

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
class BrokerTable:
    """One entry a broker, ordered by rack, then id. Shape (B,) each.

    `rack`: codes 0..R-1, all of them in use. `weight`: capacity share, above 0. `leaders`, `replicas`: what it holds
    already; `topic_leaders`, `topic_replicas`: what of that belongs to this topic. `rank`: 0 is used first, a higher rank only where lower ones are full or the spread over racks leaves no
    choice. `may_lead`: whether it may be a preferred leader. `level_cluster`: whether all that brokers hold is levelled,
    rather than what they hold of this topic.
    """

    ids: Int32s
    rack: Int64s
    weight: Float64s
    leaders: Float64s
    replicas: Float64s
    topic_leaders: Float64s
    topic_replicas: Float64s
    rank: Int64s
    may_lead: Bools
    level_cluster: bool

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rack_sizes(self) -> Int64s:
        """Brokers in each rack. Shape (R,)."""
        return np.bincount(self.rack)

    def by_rack(self, units: Int64s) -> Int64s:
        """Sums of a per-broker column over racks. Shape (R,)."""
        return np.bincount(self.rack, weights=units, minlength=len(self.rack_sizes)).astype(np.int64)

    def raised_by_rank(self, held: Float64s, partitions: int) -> Float64s:
        """`held`, raised for each rank above every level that lower ranks can reach with `partitions` more."""
        highest = float(np.max((held + partitions) / self.weight))
        return np.asarray(held + self.rank * (2.0 + 2.0 * highest) * self.weight)


def broker_table(brokers: Sequence[UsableBroker], by_rack: bool, settings: BalancedSettings) -> BrokerTable:
    """The brokers as columns; without `by_rack` they are all in one rack. At least one of them is live."""
    racks = {rack: code for code, rack in enumerate(sorted({broker.rack for broker in brokers}, key=utf16))}
    codes = {broker.id: racks[broker.rack] if by_rack else 0 for broker in brokers}
    ordered = sorted(brokers, key=lambda broker: (codes[broker.id], broker.id))
    ids = [int(broker.id) for broker in ordered]
    weight = np.array([settings.weights.get(broker, 1.0) for broker in ids])
    new = np.array([broker in settings.new for broker in ids])
    fenced = np.array([broker.fenced for broker in ordered])
    return BrokerTable(
        ids=np.array(ids, dtype=np.int32),
        rack=np.array([codes[broker.id] for broker in ordered], dtype=np.int64),
        weight=weight,
        leaders=_with_lag_of_new_brokers(_column(settings.leaders, ids), weight, new, settings.new_preference),
        replicas=_with_lag_of_new_brokers(_column(settings.replicas, ids), weight, new, settings.new_preference),
        topic_leaders=_column(settings.topic_leaders, ids),
        topic_replicas=_column(settings.topic_replicas, ids),
        rank=_ranks(ids, fenced, settings),
        may_lead=~fenced,
        level_cluster=settings.level_cluster,
    )


def _column(values: Mapping[int, int], ids: Sequence[int]) -> Float64s:
    return np.array([values.get(broker, 0) for broker in ids], dtype=np.float64)


def _with_lag_of_new_brokers(held: Float64s, weight: Float64s, new: Bools, preference: float) -> Float64s:
    """The loads for placement: new brokers lag behind the others' mean level by `preference` times their true lag."""
    if not new.any() or new.all():
        return held
    mean = held[~new].sum() / weight[~new].sum()
    lag = np.maximum(mean * weight - held, 0)
    return np.asarray(np.where(new, held + (1 - preference) * lag, held))


def _ranks(ids: Sequence[int], fenced: Bools, settings: BalancedSettings) -> Int64s:
    """Healthy 0, near capacity 1, fenced 2, draining 3, both 4: the operator's wish weighs more than a temporary state.

    Where every live broker is draining, one of them has to lead all the same, so there they come before fenced ones.
    """
    draining = np.array([broker in settings.draining for broker in ids])
    near = np.array([broker in settings.near_capacity for broker in ids])
    last_resort = 1 if not (~fenced & ~draining).any() else 3
    ranks = np.where(fenced, 2, np.where(near, 1, 0))
    return np.asarray(np.where(draining, np.where(fenced, 4, last_resort), ranks))
