"""Bytes from rack to rack by path, topic and group.

`bytes_in` has the bytes that producers wrote to each partition of the snapshot, in the order of its rows, or UNKNOWN_SIZE.
A broker without `broker.rack` is in no known rack: whether its bytes cross racks is unknown.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rackspan.clients import GroupReads
from rackspan.clients.reads import MemberReads, Read
from rackspan.model import ClusterSnapshot
from rackspan.model.ids import NO_BROKER, RackId, TopicPartition
from rackspan.model.partitions import UNKNOWN_SIZE, Int32s, Int64s
from rackspan.model.racks import NO_RACK, RackMap, UnrackedPolicy, rack_map


class TrafficPath(StrEnum):
    """Why bytes pass between racks."""

    PRODUCE = "produce"
    REPLICATE = "replicate"
    CONSUME = "consume"
    FOLLOWER_FETCH = "follower-fetch"
    RESTORE = "restore"
    REASSIGN = "reassign"


class Basis(StrEnum):
    """Where the number of bytes comes from."""

    MEASURED = "measured"
    DERIVED = "derived"
    """It follows from the bytes in and the racks of both sides."""
    ESTIMATED = "estimated"
    """The rack of a client is not known."""


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """A flow without its bytes. A rack is None if it is not known; `group` only of consumers."""

    path: TrafficPath
    topic: str
    group: str | None
    source_rack: RackId | None
    destination_rack: RackId | None
    basis: Basis
    assumption: str

    @property
    def crosses(self) -> bool | None:
        """Whether the bytes cross racks; None if a rack is not known."""
        if self.source_rack is None or self.destination_rack is None:
            return None
        return self.source_rack != self.destination_rack


@dataclass(frozen=True, slots=True)
class TrafficFlow:
    """Bytes over one link. `size_bytes` is None if it is not known."""

    link: Link
    size_bytes: int | None


PRODUCED_ANYWHERE: Final = "producers are spread uniformly over the racks of brokers"
COPIED_ONCE: Final = "each replica copied all that its leader received"
ADDED_REPLICA: Final = "the bytes that a replica under reassignment copied within the interval are not known"
READ_ONCE: Final = "the group read each record once"
READ_ANYWHERE: Final = (
    "the group read each record once, from members that are spread uniformly over the racks of brokers"
)
READ_SHARED: Final = "the group read each record once, and members that share a partition read equal parts of it"


def produce_flows(snapshot: ClusterSnapshot, bytes_in: Int64s) -> tuple[TrafficFlow, ...]:
    """Bytes from producers to leaders: estimated, since Kafka reports no producer's rack."""
    racks = rack_map(snapshot.brokers, UnrackedPolicy.IGNORE)
    rows = snapshot.partitions
    flows = _Flows()
    no_rack = np.full(len(rows), NO_RACK, np.int32)
    for topic, _, destination, size in _summed(rows.topic, no_rack, racks.codes(rows.leader), bytes_in):
        for source, part in _spread(size, racks.racks):
            link = Link(
                TrafficPath.PRODUCE,
                str(snapshot.topics[topic].name),
                None,
                source,
                _rack(racks, destination),
                Basis.ESTIMATED,
                PRODUCED_ANYWHERE,
            )
            flows.add(link, part)
    return flows.sorted()


def replication_flows(snapshot: ClusterSnapshot, bytes_in: Int64s) -> tuple[TrafficFlow, ...]:
    """Bytes from leaders to followers. Replicas that a reassignment adds are in rows of their own, without bytes."""
    racks = rack_map(snapshot.brokers, UnrackedPolicy.IGNORE)
    rows = snapshot.partitions
    leaders = racks.codes(rows.leader)
    flows = _Flows()
    for replicas in rows.replicas.T:
        added = (rows.adding_replicas == replicas[:, None]).any(axis=1)
        follows = (replicas != NO_BROKER) & (replicas != rows.leader)
        for path, chosen, assumption in (
            (TrafficPath.REPLICATE, follows & ~added, COPIED_ONCE),
            (TrafficPath.REASSIGN, follows & added, ADDED_REPLICA),
        ):
            sizes = bytes_in if path is TrafficPath.REPLICATE else np.full_like(bytes_in, UNKNOWN_SIZE)
            columns = rows.topic[chosen], leaders[chosen], racks.codes(replicas[chosen]), sizes[chosen]
            for topic, source, destination, size in _summed(*columns):
                name = str(snapshot.topics[topic].name)
                ends = _rack(racks, source), _rack(racks, destination)
                flows.add(Link(path, name, None, *ends, Basis.DERIVED, assumption), size)
    return flows.sorted()


def consume_flows(snapshot: ClusterSnapshot, bytes_in: Int64s, groups: Sequence[GroupReads]) -> tuple[TrafficFlow, ...]:
    """Bytes from replicas to the members of groups that keep up with producers."""
    racks = rack_map(snapshot.brokers, UnrackedPolicy.IGNORE).racks
    sizes = _by_partition(snapshot, bytes_in)
    flows = _Flows()
    for reads in groups:
        readers = Counter(read.partition for member in reads.members for read in member.reads)
        nth = Counter[TopicPartition]()
        for member in reads.members:
            for read in member.reads:
                shared = readers[read.partition]
                part = _part(sizes[read.partition], nth[read.partition], shared)
                nth[read.partition] += 1
                for destination, share in [(member.rack, part)] if member.rack else _spread(part, racks):
                    flows.add(_read_link(reads.group.group_id, member, read, destination, shared > 1), share)
    return flows.sorted()


def _read_link(group: str, member: MemberReads, read: Read, destination: RackId | None, shared: bool) -> Link:
    follower = read.served_from is not None and read.served_from != read.leader
    path = TrafficPath.FOLLOWER_FETCH if follower else TrafficPath.CONSUME
    if member.rack is None:
        basis, assumption = Basis.ESTIMATED, READ_ANYWHERE
    elif shared:
        basis, assumption = Basis.ESTIMATED, READ_SHARED
    else:
        basis, assumption = Basis.DERIVED, READ_ONCE
    return Link(path, read.partition.topic, group, read.served_from, destination, basis, assumption)


class _Flows:
    """Sums by link. Bytes that are not known have a row of their own beside those that are."""

    def __init__(self) -> None:
        self._known = Counter[Link]()
        self._unknown: set[Link] = set()

    def add(self, link: Link, size_bytes: int | None) -> None:
        if size_bytes is None:
            self._unknown.add(link)
        else:
            self._known[link] += size_bytes

    def sorted(self) -> tuple[TrafficFlow, ...]:
        flows = [TrafficFlow(link, size) for link, size in self._known.items() if size]
        flows += [TrafficFlow(link, None) for link in self._unknown]
        return tuple(sorted(flows, key=_order))


def _order(flow: TrafficFlow) -> tuple[str, ...]:
    link = flow.link
    racks = link.source_rack or "", link.destination_rack or ""
    return (
        link.path,
        link.topic,
        link.group or "",
        *racks,
        link.assumption,
        "unknown" if flow.size_bytes is None else "",
    )


def _summed(
    topic: Int32s, source: Int32s, destination: Int32s, sizes: Int64s
) -> Iterator[tuple[int, int, int, int | None]]:
    """Sums by topic and rack codes. Unknown sizes are summed apart, to None."""
    if len(topic) == 0:
        return
    keys: npt.NDArray[Any] = np.stack([topic, source, destination, (sizes == UNKNOWN_SIZE).astype(np.int32)], axis=1)
    distinct, index = np.unique(keys, axis=0, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, index.ravel(), sizes)
    for (code, from_rack, to_rack, unknown), size in zip(distinct.tolist(), sums.tolist(), strict=True):
        yield code, from_rack, to_rack, None if unknown else size


def _spread(size_bytes: int | None, racks: Sequence[RackId]) -> list[tuple[RackId | None, int | None]]:
    """Equal parts that add up to the whole; one part in no known rack if there are no racks."""
    if not racks:
        return [(None, size_bytes)]
    return [(rack, _part(size_bytes, index, len(racks))) for index, rack in enumerate(racks)]


def _part(size_bytes: int | None, index: int, parts: int) -> int | None:
    return None if size_bytes is None else size_bytes * (index + 1) // parts - size_bytes * index // parts


def _rack(racks: RackMap, code: int) -> RackId | None:
    return None if code == NO_RACK else racks.racks[code]


def _by_partition(snapshot: ClusterSnapshot, bytes_in: Int64s) -> dict[TopicPartition, int | None]:
    rows = snapshot.partitions
    names = [str(topic.name) for topic in snapshot.topics]
    columns = rows.topic.tolist(), rows.partition.tolist(), bytes_in.tolist()
    return {
        TopicPartition(names[topic], partition): None if size == UNKNOWN_SIZE else size
        for topic, partition, size in zip(*columns, strict=True)
    }
