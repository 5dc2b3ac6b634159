"""In which racks a partition can be read, from what a client knows of the cluster."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rackspan.model import BrokerId, RackId
from rackspan.model.ids import TopicPartition


class Replicas(NamedTuple):
    """Where a partition is. `leader` is −1 where there is none."""

    leader: BrokerId
    all: tuple[BrokerId, ...]


def racks_of_brokers(named: Iterable[tuple[int, str | None]]) -> dict[BrokerId, RackId]:
    """Rack by broker, brokers without one left out: no client is near them."""
    return {BrokerId(broker): RackId(rack) for broker, rack in named if rack}


def readable_in(
    replicas: Mapping[TopicPartition, Replicas], racks: Mapping[BrokerId, RackId], *, followers: bool
) -> dict[TopicPartition, frozenset[RackId]]:
    """The racks that partitions can be read from without leaving them.

    With `followers` those of all replicas: brokers with RackAwareReplicaSelector send consumers to the nearest (KIP-392).
    Without, the leader's alone, which is none while there is no leader.
    """
    interned: dict[frozenset[RackId], frozenset[RackId]] = {}
    found = {}
    for partition, where in replicas.items():
        brokers = where.all if followers else (where.leader,)
        its = frozenset(racks[broker] for broker in brokers if broker in racks)
        found[partition] = interned.setdefault(its, its)
    return found
