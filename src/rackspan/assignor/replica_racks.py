"""The racks in which a partition can be read, from a client's cluster metadata."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rackspan.model.ids import BrokerId, RackId, TopicPartition


class Replicas(NamedTuple):
    """The brokers of one partition. `leader` is −1 where there is none."""

    leader: BrokerId
    all: tuple[BrokerId, ...]


def racks_of_brokers(named: Iterable[tuple[int, str | None]]) -> dict[BrokerId, RackId]:
    """Rack by broker, without the brokers that have none: no client is near them."""
    return {BrokerId(broker): RackId(rack) for broker, rack in named if rack}


def readable_in(
    replicas: Mapping[TopicPartition, Replicas], racks: Mapping[BrokerId, RackId], *, followers: bool
) -> dict[TopicPartition, frozenset[RackId]]:
    """The racks in which a consumer can read each partition from a broker of its own rack.

    With `followers` the racks of all replicas: brokers with RackAwareReplicaSelector direct consumers to the nearest
    (KIP-392). Without it only the leader's rack, and no rack while there is no leader.
    """
    interned: dict[frozenset[RackId], frozenset[RackId]] = {}
    readable = {}
    for partition, held in replicas.items():
        brokers = held.all if followers else (held.leader,)
        local = frozenset(racks[broker] for broker in brokers if broker in racks)
        # One object for equal sets: a group may have a million partitions over a few racks.
        readable[partition] = interned.setdefault(local, local)
    return readable
