"""The places of brokers in ISRs: those at the start of a batch, and those not regained since."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rackspan.model import Bools, ClusterSnapshot, Int32s, TopicPartition, any_in_row
from rackspan.model.ids import UNKNOWN_LEADER

IsrPlaces = Mapping[int, Mapping[str, tuple[int, ...]]]
"""Of each broker, by topic, the partitions of whose ISR it is."""


@dataclass(frozen=True, slots=True)
class MissingPlaces:
    """How many ISR places brokers lack: `total` of those at the start, `first` by name."""

    total: int
    count: int
    first: str


def is_up(snapshot: ClusterSnapshot, broker: int) -> bool:
    """Whether the cluster lists the broker, and not as fenced."""
    found = snapshot.broker(broker)
    return found is not None and not found.fenced


def isr_places(snapshot: ClusterSnapshot, brokers: Collection[int]) -> IsrPlaces:
    """The partitions in whose ISR each broker is now."""
    rows = snapshot.partitions
    found: dict[int, dict[str, tuple[int, ...]]] = {}
    for broker in sorted(brokers):
        held = np.flatnonzero(_names(rows.isr, broker))
        of_broker: dict[str, list[int]] = {}
        for code, partition in zip(rows.topic[held].tolist(), rows.partition[held].tolist(), strict=True):
            of_broker.setdefault(snapshot.topics[code].name, []).append(partition)
        found[broker] = {topic: tuple(partitions) for topic, partitions in of_broker.items()}
    return found


def missing_places(snapshot: ClusterSnapshot, places: IsrPlaces) -> MissingPlaces:
    """The places not regained, of partitions that still exist and still have the broker as a replica."""
    rows = snapshot.partitions
    missing = [(row, broker) for broker, held in places.items() for row in _out_of_sync(snapshot, broker, held)]
    total = sum(len(partitions) for held in places.values() for partitions in held.values())
    if not missing:
        return MissingPlaces(total, 0, "")
    row, _ = min(missing)
    return MissingPlaces(
        total, len(missing), str(TopicPartition(snapshot.topics[rows.topic[row]].name, int(rows.partition[row])))
    )


def preferred_elsewhere(snapshot: ClusterSnapshot, brokers: Collection[int]) -> tuple[TopicPartition, ...]:
    """The partitions that another broker leads, although their preferred leader is one of these and in sync."""
    rows = snapshot.partitions
    preferred = rows.replicas[:, 0]
    elsewhere = np.isin(preferred, list(brokers)) & (rows.leader != preferred) & (rows.leader != UNKNOWN_LEADER)
    elsewhere &= any_in_row(rows.isr == preferred[:, None])
    return tuple(
        TopicPartition(snapshot.topics[rows.topic[row]].name, int(rows.partition[row]))
        for row in np.flatnonzero(elsewhere).tolist()
    )


def _out_of_sync(snapshot: ClusterSnapshot, broker: int, held: Mapping[str, tuple[int, ...]]) -> Iterator[int]:
    """The rows among the held partitions that list the broker as a replica, out of sync."""
    rows = snapshot.partitions
    lagging = _names(rows.replicas, broker) & ~_names(rows.isr, broker)
    for row in np.flatnonzero(lagging).tolist():
        if int(rows.partition[row]) in held.get(snapshot.topics[rows.topic[row]].name, ()):
            yield row


def _names(matrix: Int32s, broker: int) -> Bools:
    return any_in_row(matrix == broker)
