"""Replicas of new partitions from the configured placer (KIP-660), as manual assignments that Kafka takes as they are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from rackspan.errors import RackspanError, ReplicaPlacementException
from rackspan.model import Broker, BrokerId
from rackspan.placement import placer_named, usable
from rackspan.placement.replica_counts import counts_of

NEW_PARTITIONS_MAX: Final = 10_000
"""Limit of one request, that of Kafka's controller (MAX_PARTITIONS_PER_BATCH). Their replicas are more bytes than their number."""


class PlacedCounts:
    """Leaders and replicas of each broker. `partitions` are those that were added by this request."""

    def __init__(self, existing: Iterable[Sequence[int]]) -> None:
        """`existing` are the replicas of the cluster's partitions, preferred leader first."""
        self.leaders: Counter[BrokerId] = Counter()
        self.replicas: Counter[BrokerId] = Counter()
        self.partitions = 0
        self._count(existing)

    def add(self, placed: Sequence[Sequence[int]]) -> None:
        self.partitions += len(placed)
        self._count(placed)

    def _count(self, rows: Iterable[Sequence[int]]) -> None:
        for row in rows:
            self.leaders.update(map(BrokerId, row[:1]))
            self.replicas.update(map(BrokerId, row))


@dataclass(frozen=True, slots=True)
class Placed:
    """The replicas of each new partition, or why there are none."""

    replicas: tuple[tuple[int, ...], ...] = ()
    error: str | None = None


def place(
    placer: str,
    configs: Mapping[str, str],
    brokers: Sequence[Broker],
    counts: PlacedCounts,
    start_partition: int,
    partitions: int,
    replication_factor: int,
    rng: Random,
) -> Placed:
    """Place new partitions, and add them to `counts`."""
    if counts.partitions + partitions > NEW_PARTITIONS_MAX:
        return Placed(error=f"{partitions:,} partitions: one request may add {NEW_PARTITIONS_MAX:,} at most")
    if not 1 <= replication_factor <= len(brokers):
        return Placed(error=f"replication factor {replication_factor}: the cluster has {len(brokers)} usable brokers")
    load = counts_of(sorted(broker.id for broker in brokers), counts.leaders, counts.replicas)
    try:
        made = placer_named(placer, {**load.configs, **configs}, rng)
        try:
            assignment = made.place(start_partition, partitions, replication_factor, usable(brokers))
        finally:
            made.close()
    except ReplicaPlacementException as error:
        return Placed(error=str(error))
    except RackspanError as error:
        return Placed(error=f"{placer}: {error}")
    placed = tuple(tuple(int(broker) for broker in partition.replicas) for partition in assignment)
    counts.add(placed)
    return Placed(placed)
