"""Bytes from rack to rack by path, topic and group.

Volumes are in the order of the snapshot's rows: bytes that producers wrote to each partition, and that each replica copied.
A broker without `broker.rack` is in no known rack: whether its bytes cross racks is unknown.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from rackspan.clients import GroupReads
from rackspan.clients.likely_rack import likely_rack
from rackspan.clients.reads import MemberReads, Read
from rackspan.model import (
    NO_BROKER,
    NO_RACK,
    UNKNOWN_SIZE,
    ClusterSnapshot,
    Int32s,
    Int64s,
    RackId,
    RackMap,
    TopicPartition,
    UnrackedPolicy,
    rack_map,
)
from rackspan.traffic.logs import Volumes
from rackspan.traffic.progress import NOTHING_COMMITTED, GroupProgress


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
    DERIVED_LOWER_BOUND = "derived-lower-bound"
    """At least as much passed: brokers counted it, beside what they do not count apart."""
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
WRITTEN_BY_LEADER: Final = "internal topics are written by the brokers that lead them"
COPIED_ONCE: Final = "each replica copied all that its leader received"
RECORDS_AS_OTHERS: Final = "records are as large as those of the topic's other partitions"
"""Added to the others if bytes follow from the number of records."""

OWN_LOG: Final = "the replica's log grew by as much"
READ_ONCE: Final = "the group read each record once"
READ_COMMITTED: Final = "the group read what it committed"
READ_ANYWHERE: Final = (
    "the group read each record once, from members that are spread uniformly over the racks of brokers"
)
RACK_MISSPELT: Final = "a client.rack that no broker has means the rack most like it"
READ_MISSPELT: Final = f"the group read each record once; {RACK_MISSPELT}"
READ_SHARED: Final = "the group read each record once, and members that share a partition read equal parts of it"


def produce_flows(snapshot: ClusterSnapshot, volumes: Volumes) -> tuple[TrafficFlow, ...]:
    """Bytes from producers to leaders: estimated, since Kafka reports no producer's rack.

    Partitions of internal topics are written by the broker that leads them: the coordinator of groups or transactions.
    """
    racks = rack_map(snapshot.brokers, UnrackedPolicy.IGNORE)
    rows = snapshot.partitions
    flows = FlowSums()
    leaders = racks.codes(rows.leader)
    for chosen, assumption in (
        (~volumes.guessed, PRODUCED_ANYWHERE),
        (volumes.guessed, _by_records(PRODUCED_ANYWHERE)),
    ):
        # Whatever their source, bytes are summed by leader first.
        columns = rows.topic[chosen], leaders[chosen], leaders[chosen], volumes.bytes_in[chosen]
        for topic, _, destination, size in _summed(*columns):
            name, internal = str(snapshot.topics[topic].name), snapshot.topics[topic].internal
            leader = _rack(racks, destination)
            if internal:
                flows.add(Link(TrafficPath.PRODUCE, name, None, leader, leader, Basis.DERIVED, WRITTEN_BY_LEADER), size)
                continue
            for source, part in _spread(size, racks.racks):
                flows.add(Link(TrafficPath.PRODUCE, name, None, source, leader, Basis.ESTIMATED, assumption), part)
    return flows.sorted()


def replication_flows(snapshot: ClusterSnapshot, volumes: Volumes) -> tuple[TrafficFlow, ...]:
    """Bytes from leaders to followers. Those of replicas that a reassignment adds are in rows of their own."""
    racks = rack_map(snapshot.brokers, UnrackedPolicy.IGNORE)
    rows = snapshot.partitions
    leaders = racks.codes(rows.leader)
    flows = FlowSums()
    of_replicas = rows.replicas.T, volumes.copied.T, volumes.from_own_log.T, volumes.added.T
    for replicas, sizes, own, added in zip(*of_replicas, strict=True):
        follows = (replicas != NO_BROKER) & (replicas != rows.leader)
        for path, of_path in ((TrafficPath.REPLICATE, ~added), (TrafficPath.REASSIGN, added)):
            for basis, assumption, of_basis in (
                (Basis.DERIVED, OWN_LOG, own),
                (Basis.DERIVED, COPIED_ONCE, ~own & ~volumes.guessed),
                (Basis.ESTIMATED, _by_records(COPIED_ONCE), ~own & volumes.guessed),
            ):
                chosen = follows & of_path & of_basis
                columns = rows.topic[chosen], leaders[chosen], racks.codes(replicas[chosen]), sizes[chosen]
                for topic, source, destination, size in _summed(*columns):
                    name = str(snapshot.topics[topic].name)
                    ends = _rack(racks, source), _rack(racks, destination)
                    flows.add(Link(path, name, None, *ends, basis, assumption), size)
    return flows.sorted()


def consume_flows(
    snapshot: ClusterSnapshot,
    volumes: Volumes,
    groups: Sequence[GroupReads],
    progress: GroupProgress = NOTHING_COMMITTED,
) -> tuple[TrafficFlow, ...]:
    """Bytes from replicas to the members of groups: those between committed offsets, else all that the partitions received."""
    racks = rack_map(snapshot.brokers, UnrackedPolicy.IGNORE).racks
    sizes = _by_partition(snapshot, volumes)
    flows = FlowSums()
    for reads in groups:
        readers = Counter(read.partition for member in reads.members for read in member.reads)
        nth = Counter[TopicPartition]()
        committed = progress.get(reads.group.group_id, {})
        for member in reads.members:
            for read in member.reads:
                shared = readers[read.partition]
                size, guessed = sizes[read.partition]
                if read.partition in committed:
                    size = committed[read.partition]
                part = _part(size, nth[read.partition], shared)
                nth[read.partition] += 1
                for destination, share in _spread(part, places_of(member, racks)):
                    link = _read_link(reads.group.group_id, member, read, destination, shared > 1)
                    if read.partition in committed:
                        link = replace(link, assumption=link.assumption.replace(READ_ONCE, READ_COMMITTED))
                    if guessed:
                        link = replace(link, basis=Basis.ESTIMATED, assumption=_by_records(link.assumption))
                    flows.add(link, share)
    return flows.sorted()


def places_of(member: MemberReads, racks: Sequence[RackId]) -> Sequence[RackId]:
    """The rack that a member is in, or those that it may be in. A client.rack of no broker means the likely one, if there is one."""
    if member.rack is None:
        return racks
    if member.located is not None or member.rack in racks:
        return (member.rack,)
    return (likely_rack(member.rack, racks) or member.rack,)


def _read_link(group: str, member: MemberReads, read: Read, destination: RackId | None, shared: bool) -> Link:
    follower = read.served_from is not None and read.served_from != read.leader
    path = TrafficPath.FOLLOWER_FETCH if follower else TrafficPath.CONSUME
    if member.rack is None:
        basis, assumption = Basis.ESTIMATED, READ_ANYWHERE
    elif destination != member.rack:
        basis, assumption = Basis.ESTIMATED, READ_MISSPELT
    elif shared:
        basis, assumption = Basis.ESTIMATED, READ_SHARED
    else:
        basis, assumption = Basis.DERIVED, READ_ONCE
    return Link(path, read.partition.topic, group, read.served_from, destination, basis, assumption)


class FlowSums:
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


def _order(flow: TrafficFlow) -> tuple[tuple[str, ...], bool]:
    link = flow.link
    racks = link.source_rack or "", link.destination_rack or ""
    return (link.path, link.topic, link.group or "", *racks, link.assumption), flow.size_bytes is None


def _summed(
    topic: Int32s, source: Int32s, destination: Int32s, sizes: Int64s
) -> Iterator[tuple[int, int, int, int | None]]:
    """Sums by topic and rack codes. Unknown sizes are summed apart, to None."""
    keys = np.stack([topic, source, destination, (sizes == UNKNOWN_SIZE).astype(np.int32)], axis=1)
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


def _by_records(assumption: str) -> str:
    return f"{assumption}; {RECORDS_AS_OTHERS}"


def _by_partition(snapshot: ClusterSnapshot, volumes: Volumes) -> dict[TopicPartition, tuple[int | None, bool]]:
    """Bytes in, None if not known, and whether they are guessed."""
    rows = snapshot.partitions
    names = [str(topic.name) for topic in snapshot.topics]
    columns = rows.topic.tolist(), rows.partition.tolist(), volumes.bytes_in.tolist(), volumes.guessed.tolist()
    return {
        TopicPartition(names[topic], partition): (None if size == UNKNOWN_SIZE else size, guessed)
        for topic, partition, size, guessed in zip(*columns, strict=True)
    }
