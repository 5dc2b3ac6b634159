"""Replicas of new partitions from the configured placer (KIP-660), as manual assignments that Kafka takes as they are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from rackspan.errors import RackspanError, ReplicaPlacementException
from rackspan.model import Broker, BrokerId
from rackspan.placement.registry import placer_named
from rackspan.placement.replica_counts import counts_of
from rackspan.placement.usable_brokers import usable

NEW_PARTITIONS_MAX: Final = 10_000
"""Of one request, as Kafka's controller limits it (MAX_PARTITIONS_PER_BATCH). Their replicas are more bytes than their number."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The replicas of each new partition, or why there are none."""

    replicas: tuple[tuple[int, ...], ...] = ()
    error: str | None = None


def place(
    placer: str,
    configs: Mapping[str, str],
    brokers: Sequence[Broker],
    existing: Iterable[Sequence[int]],
    start_partition: int,
    partitions: int,
    replication_factor: int,
    rng: Random,
) -> Placed:
    """Place new partitions. `existing` are the replicas of the cluster's partitions, preferred leader first."""
    leaders: Counter[BrokerId] = Counter()
    replicas: Counter[BrokerId] = Counter()
    for row in existing:
        leaders.update(map(BrokerId, row[:1]))
        replicas.update(map(BrokerId, row))
    load = counts_of(sorted(broker.id for broker in brokers), leaders, replicas)
    if not 1 <= replication_factor <= len(brokers):
        return Placed(error=f"replication factor {replication_factor}: the cluster has {len(brokers)} usable brokers")
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
    return Placed(tuple(tuple(int(one) for one in partition.replicas) for partition in assignment))
