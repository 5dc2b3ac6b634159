"""What brokers carry before anything is placed, as placers are told of it and as a placement is measured against it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit.batch import snapshot_batch
from rackspan.audit.loads import loads
from rackspan.audit.policy import RackPolicy
from rackspan.model.ids import BrokerId
from rackspan.model.partitions import Int64s
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.placement.balanced.broker_quotas import replica_quotas
from rackspan.placement.balanced.broker_table import fleet_of
from rackspan.placement.balanced.settings import LEADERS_CONFIG, REPLICAS_CONFIG, BalancedSettings
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.usable_brokers import UsableBroker


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """Per broker, ascending by `ids`: partitions it is the preferred leader of, and replicas. Shape (B,) each.

    Preferred leaders, not those of the moment: a broker that was restarted an hour ago leads nothing and is not idle.
    """

    ids: Int64s
    leaders: Int64s
    replicas: Int64s

    @property
    def configs(self) -> dict[str, str]:
        """The same as configs, the only way in which a placer learns of it (KIP-660)."""
        return {LEADERS_CONFIG: _listed(self.ids, self.leaders), REPLICAS_CONFIG: _listed(self.ids, self.replicas)}

    def plus(self, placed: TopicAssignment) -> "Carried":
        """With a topic more, all of whose brokers are known."""
        rows = np.searchsorted(self.ids, placed.replicas)
        return Carried(
            ids=self.ids,
            leaders=self.leaders + np.bincount(rows[:, :1].ravel(), minlength=len(self.ids)),
            replicas=self.replicas + np.bincount(rows.ravel(), minlength=len(self.ids)),
        )

    def on(self, brokers: Sequence[UsableBroker]) -> "Carried":
        """Of these brokers alone."""
        chosen = np.isin(self.ids, [broker.id for broker in brokers])
        return Carried(self.ids[chosen], self.leaders[chosen], self.replicas[chosen])


def carried(snapshot: ClusterSnapshot) -> Carried:
    """What the brokers of a snapshot carry; reassignments under way are counted where they lead."""
    seen = snapshot_batch(snapshot, RackPolicy())
    summed = loads(seen)
    ids = seen.members.rack_map.broker_ids.astype(np.int64)
    return Carried(ids, summed.preferred.astype(np.int64), summed.replicas.astype(np.int64))


def counted(ids: Sequence[BrokerId], leaders: Mapping[BrokerId, int], replicas: Mapping[BrokerId, int]) -> Carried:
    """Of ascending `ids`, from counts by broker; a broker that is not counted carries nothing."""
    return Carried(
        np.array(ids, dtype=np.int64),
        *(np.array([count.get(broker, 0) for broker in ids], dtype=np.int64) for count in (leaders, replicas)),
    )


def nothing_carried(brokers: Sequence[UsableBroker]) -> Carried:
    ids = np.array(sorted(broker.id for broker in brokers), dtype=np.int64)
    return Carried(ids, np.zeros_like(ids), np.zeros_like(ids))


def least_fullest(
    before: Carried, brokers: Sequence[UsableBroker], by_rack: bool, partitions: int, replication_factor: int
) -> int:
    """The fewest replicas that the fullest of `brokers` can hold once a topic more is spread evenly over racks.

    Method: the water-filling that `balanced` uses for replicas, leaders not considered; no maximum can be smaller
    (water_fill.py). Without load it is `audit.loads.replica_bound`. Liveness and weights are not considered either.
    """
    alike = [UsableBroker(broker.id, broker.rack, fenced=False) for broker in brokers]
    held = dict(zip(before.ids.tolist(), before.replicas.tolist(), strict=True))
    fleet = fleet_of(alike, by_rack, BalancedSettings(replicas=held))
    none = np.zeros(len(fleet), dtype=np.int64)
    units = replica_quotas(fleet, partitions, replication_factor, none, none, np.arange(len(fleet)))
    return int((fleet.replicas.astype(np.int64) + units).max())


def _listed(ids: Int64s, counts: Int64s) -> str:
    return ",".join(f"{broker}:{count}" for broker, count in zip(ids.tolist(), counts.tolist(), strict=True))
