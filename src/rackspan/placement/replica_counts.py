"""How many leaders and replicas each broker has before a placement: input of placers, and measure of the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit import RackPolicy, snapshot_batch
from rackspan.audit.loads import loads
from rackspan.model import BrokerId, ClusterSnapshot, Int64s
from rackspan.placement.balanced.broker_quotas import replica_quotas
from rackspan.placement.balanced.broker_table import broker_table
from rackspan.placement.balanced.settings import (
    LEADERS_CONFIG,
    REPLICAS_CONFIG,
    TOPIC_LEADERS_CONFIG,
    TOPIC_REPLICAS_CONFIG,
    BalancedSettings,
)
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.usable_brokers import UsableBroker


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaCounts:
    """Per broker, ascending by `ids`: partitions it is the preferred leader of, and replicas. Shape (B,) each.

    Preferred leaders, not current ones: a broker that was restarted an hour ago leads nothing now, yet has its load.
    """

    ids: Int64s
    leaders: Int64s
    replicas: Int64s

    @property
    def configs(self) -> dict[str, str]:
        """The counts as configs, the only way to pass them to a placer (KIP-660)."""
        return {LEADERS_CONFIG: _listed(self.ids, self.leaders), REPLICAS_CONFIG: _listed(self.ids, self.replicas)}

    @property
    def topic_configs(self) -> dict[str, str]:
        """The counts of one topic as configs, for a placer that adds partitions to it."""
        return {
            TOPIC_LEADERS_CONFIG: _listed(self.ids, self.leaders),
            TOPIC_REPLICAS_CONFIG: _listed(self.ids, self.replicas),
        }

    def plus(self, placed: TopicAssignment) -> "ReplicaCounts":
        """The counts with one topic more, whose brokers are all in `ids`."""
        rows = np.searchsorted(self.ids, placed.replicas)
        return ReplicaCounts(
            ids=self.ids,
            leaders=self.leaders + np.bincount(rows[:, :1].ravel(), minlength=len(self.ids)),
            replicas=self.replicas + np.bincount(rows.ravel(), minlength=len(self.ids)),
        )

    def on(self, brokers: Sequence[UsableBroker]) -> "ReplicaCounts":
        """The counts of these brokers alone."""
        chosen = np.isin(self.ids, [broker.id for broker in brokers])
        return ReplicaCounts(self.ids[chosen], self.leaders[chosen], self.replicas[chosen])


def replica_counts(snapshot: ClusterSnapshot) -> ReplicaCounts:
    """The counts of a snapshot's brokers; a reassignment under way counts at its target."""
    batch = snapshot_batch(snapshot, RackPolicy())
    summed = loads(batch)
    ids = batch.members.rack_map.broker_ids.astype(np.int64)
    return ReplicaCounts(ids, summed.preferred.astype(np.int64), summed.replicas.astype(np.int64))


def counts_of(
    ids: Sequence[BrokerId], leaders: Mapping[BrokerId, int], replicas: Mapping[BrokerId, int]
) -> ReplicaCounts:
    """The counts of ascending `ids`, from counts by broker id; a broker without an entry has none."""
    return ReplicaCounts(
        np.array(ids, dtype=np.int64),
        *(np.array([count.get(broker, 0) for broker in ids], dtype=np.int64) for count in (leaders, replicas)),
    )


def no_replicas(brokers: Sequence[UsableBroker]) -> ReplicaCounts:
    """Counts of zero for these brokers."""
    ids = np.array(sorted(broker.id for broker in brokers), dtype=np.int64)
    return ReplicaCounts(ids, np.zeros_like(ids), np.zeros_like(ids))


def least_maximum(
    before: ReplicaCounts, brokers: Sequence[UsableBroker], by_rack: bool, partitions: int, replication_factor: int
) -> int:
    """The least possible maximum of replicas on one of `brokers` once a topic more is spread evenly over racks.

    By the water-filling that `balanced` uses for replicas, leaders not considered; no maximum can be smaller
    (balanced/water_fill.py). Without load it is `audit.loads.replica_bound`. Liveness and weights are not considered either.
    """
    alike = [UsableBroker(broker.id, broker.rack, fenced=False) for broker in brokers]
    held = dict(zip(before.ids.tolist(), before.replicas.tolist(), strict=True))
    table = broker_table(alike, by_rack, BalancedSettings(replicas=held, level_cluster=True))
    none = np.zeros(len(table), dtype=np.int64)
    units = replica_quotas(table, partitions, replication_factor, none, none, np.arange(len(table)))
    return int((table.replicas.astype(np.int64) + units).max())


def _listed(ids: Int64s, counts: Int64s) -> str:
    return ",".join(f"{broker}:{count}" for broker, count in zip(ids.tolist(), counts.tolist(), strict=True))
