"""From which rack each member of a group reads its partitions, now and at best.

    partition ──► its leader, unless the member names a rack and the leader's broker selects replicas by rack:
                  then an in-sync replica in that rack, if one exists (KIP-392)

Share groups fetch from leaders only: ShareFetch names no rack (KIP-932).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np

from rackspan.consumers import ConsumerGroup, GroupMember, MemberId, assign
from rackspan.model import ClusterSnapshot, RackId, TopicPartition, unpadded
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription


class ReplicaSelectors(StrEnum):
    """`replica.selector.class` of a broker, as far as it matters here."""

    LEADER = "leader"
    """Unset, or Kafka's LeaderSelector: members read from leaders, whatever rack they name."""
    RACK_AWARE = "rack-aware"
    """Kafka's RackAwareReplicaSelector."""
    OTHER = "other"
    """A class of the users' own, whose rules are not known."""
    UNKNOWN = "unknown"
    """The broker's config could not be read."""


@dataclass(frozen=True, slots=True)
class Read:
    """One partition that a member reads.

    `served_from` is the rack of the replica that serves it; None without a leader, from a broker without a rack, or if the
    selector's rules are not known. `leader` is the leader's rack, and `selector` that broker's rule; `replicas` and
    `in_sync` have the racks of all replicas and of those in sync.
    """

    partition: TopicPartition
    served_from: RackId | None
    leader: RackId | None
    selector: ReplicaSelectors
    replication_factor: int
    replicas: frozenset[RackId]
    in_sync: frozenset[RackId]


@dataclass(frozen=True, slots=True)
class MemberReads:
    """One member. `rack` is where it is: by its address if a range has it, else as it declares; None if neither says."""

    member: MemberDescription
    located: RackId | None
    reads: tuple[Read, ...]

    @property
    def rack(self) -> RackId | None:
        return self.located or self.member.rack

    @property
    def in_own_rack(self) -> int | None:
        """How many of its partitions have a replica in its rack."""
        return None if self.rack is None else sum(self.rack in read.replicas for read in self.reads)

    @property
    def across(self) -> int | None:
        """Partitions read from another rack now; None if that is not known of every one."""
        if self.rack is None or any(read.served_from is None for read in self.reads):
            return None
        return sum(read.served_from != self.rack for read in self.reads)

    @property
    def across_at_best(self) -> int | None:
        """Partitions of today's assignment that no setting could make local: none of their replicas is in the member's rack."""
        return None if self.rack is None else sum(self.rack not in read.replicas for read in self.reads)


@dataclass(frozen=True)
class GroupReads:
    """One group with members, each partition of which has been looked up in the snapshot."""

    group: GroupDescription
    members: tuple[MemberReads, ...]

    @property
    def across(self) -> int | None:
        return _total(member.across for member in self.members)

    @cached_property
    def across_at_best(self) -> int | None:
        """Partitions read across racks under the best assignment of the group, with every replica readable.

        From `consumers.assign`, whose optimum is proven, for groups of which each partition has one reader. In a share
        group a partition has many: the best rack for its leader is the one, of its replicas, that most of them are in.
        A streams group has no such figure here, since its tasks move whole: `streams audit` has it.
        """
        if self.group.kind is GroupKind.STREAMS or any(member.rack is None for member in self.members):
            return None
        if self.group.kind is GroupKind.SHARE:
            return sum(_best_for_leader(readers) for readers in self._readers().values())
        every = frozenset(read.partition.topic for member in self.members for read in member.reads)
        members = tuple(
            GroupMember(MemberId(reads.member.member_id), reads.member.topics or every, reads.rack)
            for reads in self.members
        )
        racks = {read.partition: read.replicas for member in self.members for read in member.reads}
        return assign(ConsumerGroup(members, racks)).cross_rack

    def _readers(self) -> Mapping[TopicPartition, list[tuple[RackId | None, Read]]]:
        readers: dict[TopicPartition, list[tuple[RackId | None, Read]]] = {}
        for member in self.members:
            for read in member.reads:
                readers.setdefault(read.partition, []).append((member.rack, read))
        return readers


def group_reads(
    group: GroupDescription,
    snapshot: ClusterSnapshot,
    selectors: Mapping[int, ReplicaSelectors],
    networks: ClientNetworks | None = None,
) -> GroupReads:
    """Look up what each member reads. `selectors` by broker id; a broker left out counts as unknown."""
    places = _Partitions(snapshot, selectors)
    return GroupReads(group, tuple(_member(group, member, places, networks) for member in group.members))


def read_again(reads: GroupReads, snapshot: ClusterSnapshot, selectors: Mapping[int, ReplicaSelectors]) -> GroupReads:
    """The same members with the same partitions in another snapshot, or before brokers with other selectors."""
    places = _Partitions(snapshot, selectors)
    return replace(
        reads,
        members=tuple(
            replace(member, reads=_reads(reads.group, member.member, [each.partition for each in member.reads], places))
            for member in reads.members
        ),
    )


def _member(
    group: GroupDescription, member: MemberDescription, places: "_Partitions", networks: ClientNetworks | None
) -> MemberReads:
    partitions = member.partitions if member.streams is None else _source_partitions(group, member)
    return MemberReads(
        member,
        networks.rack_of(member.host) if networks is not None else None,
        _reads(group, member, partitions, places),
    )


def _reads(
    group: GroupDescription, member: MemberDescription, partitions: Iterable[TopicPartition], places: "_Partitions"
) -> tuple[Read, ...]:
    fetch_rack = None if group.kind is GroupKind.SHARE else member.rack
    return tuple(read for partition in partitions if (read := places.read(partition, fetch_rack)) is not None)


def _source_partitions(group: GroupDescription, member: MemberDescription) -> list[TopicPartition]:
    """What the active tasks of a streams member read: the task's partition of every source, whether it has so many or not."""
    tasks = {} if member.streams is None else member.streams.active
    return sorted(
        {
            TopicPartition(topic, partition)
            for name, partitions in tasks.items()
            if name in group.topology
            for topic in group.topology[name].sources
            for partition in partitions
        }
    )


class _Partitions:
    """The racks of single partitions in a snapshot, and who serves a reader."""

    def __init__(self, snapshot: ClusterSnapshot, selectors: Mapping[int, ReplicaSelectors]) -> None:
        self._rows = snapshot.partitions
        self._first = np.searchsorted(self._rows.topic, np.arange(len(snapshot.topics) + 1))
        self._code = {str(topic.name): code for code, topic in enumerate(snapshot.topics)}
        self._rack = {int(broker.id): broker.rack for broker in snapshot.brokers}
        self._selectors = selectors

    def read(self, partition: TopicPartition, fetch_rack: RackId | None) -> Read | None:
        """A read by a client that names `fetch_rack`; None for a partition that the snapshot does not have."""
        row = self._row(partition)
        if row is None:
            return None
        leader = int(self._rows.leader[row])
        replicas = unpadded(self._rows.replicas[row])
        in_sync = self._racks(unpadded(self._rows.isr[row]))
        leader_rack = self._rack.get(leader)
        selector = self._selectors.get(leader, ReplicaSelectors.UNKNOWN)
        served_from: RackId | None = None
        if selector is ReplicaSelectors.RACK_AWARE and fetch_rack in in_sync:
            served_from = fetch_rack
        elif selector in _KNOWN or fetch_rack in (None, leader_rack):
            served_from = leader_rack
        return Read(
            partition,
            served_from,
            leader=leader_rack,
            selector=selector,
            replication_factor=len(replicas),
            replicas=self._racks(replicas),
            in_sync=in_sync,
        )

    def _row(self, partition: TopicPartition) -> int | None:
        code = self._code.get(partition.topic)
        if code is None:
            return None
        first, end = self._first[code : code + 2]
        row = int(first + np.searchsorted(self._rows.partition[first:end], partition.partition))
        return row if row < end and self._rows.partition[row] == partition.partition else None

    def _racks(self, brokers: Sequence[int]) -> frozenset[RackId]:
        return frozenset(rack for broker in brokers if (rack := self._rack.get(int(broker))))


_KNOWN: Final = (ReplicaSelectors.LEADER, ReplicaSelectors.RACK_AWARE)


def _best_for_leader(readers: Sequence[tuple[RackId | None, Read]]) -> int:
    """Members that would still read across racks with the leader where most of them are."""
    racks = Counter(rack for rack, _ in readers)
    return len(readers) - max((racks[rack] for rack in readers[0][1].replicas), default=0)


def _total(counts: Iterator[int | None]) -> int | None:
    """The sum, None if one is None."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
