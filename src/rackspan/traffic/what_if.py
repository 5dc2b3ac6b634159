"""What groups would read, and producers write, with other settings, as the same values as today's: flows of both compare.

A member whose rack is not known counts as spread evenly over the racks, as in the flows of today.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rackspan.clients import GroupReads, Measured, ReplicaSelectors
from rackspan.clients.reads import MemberReads, read_again
from rackspan.consumers import ConsumerGroup, GroupMember, MemberId, assign
from rackspan.model import UNKNOWN_SIZE, ClusterSnapshot, Int64s, RackId, TopicPartition
from rackspan.model.group import GroupKind
from rackspan.traffic.flows import Link, TrafficFlow, TrafficPath, places_of
from rackspan.traffic.measured import CountedBytes

if TYPE_CHECKING:
    # Executors of Spark have nothing of what `streams` imports.
    from rackspan.streams.live import StreamsGroup
    from rackspan.streams.problem import ProcessId, TaskId


def reading_at_home(reads: GroupReads, snapshot: ClusterSnapshot, members: Collection[str] | None = None) -> GroupReads:
    """These members, by id, or all of them name the rack they are in, before brokers that select replicas by rack.

    Share groups stay as they are, since their members read from leaders only.
    """
    if reads.group.kind is GroupKind.SHARE:
        return reads
    racks = sorted({broker.rack for broker in snapshot.brokers if broker.rack})
    named = tuple(
        part
        for member in reads.members
        for part in (_in_racks(member, racks) if members is None or member.member.member_id in members else (member,))
    )
    return read_again(replace(reads, members=named), snapshot, selecting_by_rack(snapshot))


def selecting_by_rack(snapshot: ClusterSnapshot) -> dict[int, ReplicaSelectors]:
    """The replica selectors of brokers all of which have Kafka's RackAwareReplicaSelector."""
    return {int(broker.id): ReplicaSelectors.RACK_AWARE for broker in snapshot.brokers}


def reading_as_measured(reads: GroupReads, measured: Measured, counted: CountedBytes) -> GroupReads:
    """Members whose bytes gateways counted, all of them within one rack, read as if they named that rack.

    A gateway may write a rack into their fetches, which the group's coordinator does not see.
    """
    return replace(reads, members=tuple(_as_measured(member, measured, counted) for member in reads.members))


def _as_measured(member: MemberReads, measured: Measured, counted: CountedBytes) -> MemberReads:
    described = member.member
    of_topics = [
        found
        for topic in {read.partition.topic for read in member.reads}
        if (found := measured.get((described.member_id, topic))) is not None
    ]
    reached = {
        flow.destination_rack
        for flow, size in counted.items()
        if size and flow.client_id == described.client_id and flow.path is not TrafficPath.PRODUCE
    }
    if not of_topics or not all(found.is_in_rack for found in of_topics) or len(reached) != 1:
        return member
    rack = RackId(reached.pop())
    at_home = tuple(replace(read, served_from=rack if rack in read.in_sync else read.leader) for read in member.reads)
    return replace(member, member=replace(described, rack=rack), reads=at_home)


def reading_best_assigned(reads: GroupReads) -> GroupReads:
    """The balanced assignment that has the most partitions with a replica in their reader's rack.

    Of groups whose members' racks are known and whose partitions have one reader each; others stay as they are. Which replica
    serves a partition stays that of its reader today: `read_again` looks it up.
    """
    kind = reads.group.kind
    if kind in (GroupKind.SHARE, GroupKind.STREAMS) or any(member.rack is None for member in reads.members):
        return reads
    by_partition = {read.partition: read for member in reads.members for read in member.reads}
    every = frozenset(partition.topic for partition in by_partition)
    members = tuple(
        GroupMember(MemberId(member.member.member_id), member.member.topics or every, member.rack)
        for member in reads.members
    )
    racks = {partition: read.replicas for partition, read in by_partition.items()}
    best = assign(ConsumerGroup(members, racks)).partitions
    owners = {partition: str(member) for member, partitions in best.items() for partition in partitions}
    return reading_as_assigned(reads, owners)


def reading_as_assigned(reads: GroupReads, owners: Mapping[TopicPartition, str]) -> GroupReads:
    """The same partitions, each read by the member that `owners` has for it."""
    given: dict[str, list[TopicPartition]] = {}
    for partition, member in sorted(owners.items()):
        given.setdefault(member, []).append(partition)
    by_partition = {read.partition: read for member in reads.members for read in member.reads}
    return replace(
        reads,
        members=tuple(
            replace(
                member,
                reads=tuple(by_partition[partition] for partition in given.get(member.member.member_id, ())),
            )
            for member in reads.members
        ),
    )


def reading_by_tasks(
    reads: GroupReads, running: "StreamsGroup", process_of: "Mapping[TaskId, ProcessId]"
) -> GroupReads | None:
    """The source partitions of each active task, read by the first member of the process that `process_of` has for it.

    None if partitions and members of `reads` are not those of `running`.
    """
    first_of = {process.process_id: process.threads[0].client_id for process in running.processes}
    member_of = {member.member.client_id: member.member.member_id for member in reads.members}
    read = {each.partition for member in reads.members for each in member.reads}
    sources = {partition: task for task in process_of for partition in running.sources[task]}
    if sources.keys() != read or len(member_of) != len(reads.members) or not member_of.keys() >= set(first_of.values()):
        return None
    return reading_as_assigned(
        reads, {partition: member_of[first_of[process_of[task]]] for partition, task in sources.items()}
    )


def produced_with_leaders_of(
    produced: Sequence[TrafficFlow], bytes_in: Int64s, before: ClusterSnapshot, after: ClusterSnapshot
) -> Iterator[TrafficFlow]:
    """What producers write once leaders are where `after` has them: to the racks of the new leaders.

    Both snapshots have the same rows. Producers write to a partition from the racks from which they write to those that are led in
    the same rack today.
    """
    racks_before, racks_after = (_leader_racks(snapshot) for snapshot in (before, after))
    names = [str(topic.name) for topic in before.topics]
    moved: dict[tuple[str, RackId | None], Counter[RackId | None]] = {}
    for topic, size, source, destination in zip(
        before.partitions.topic.tolist(), bytes_in.tolist(), racks_before, racks_after, strict=True
    ):
        parts = moved.setdefault((names[topic], source), Counter())
        parts[destination] += 0 if size == UNKNOWN_SIZE else size
    sums = Counter[Link]()
    for flow in produced:
        size_bytes, link = flow.size_bytes, flow.link
        parts = moved.get((link.topic, link.destination_rack), Counter())
        whole = sum(parts.values())
        if size_bytes is None or not whole:
            yield flow
            continue
        passed = 0
        for rack, part in sorted(parts.items(), key=str):
            share = size_bytes * (passed + part) // whole - size_bytes * passed // whole
            passed += part
            sums[replace(link, destination_rack=rack)] += share
    yield from (TrafficFlow(link, size) for link, size in sums.items() if size)


def _leader_racks(snapshot: ClusterSnapshot) -> list[RackId | None]:
    rack_of = {int(broker.id): broker.rack for broker in snapshot.brokers}
    return [rack_of.get(leader) for leader in snapshot.partitions.leader.tolist()]


def _in_racks(member: MemberReads, racks: Sequence[RackId]) -> list[MemberReads]:
    """The member in its rack, or one in each rack that it may be in, which reads an equal part."""
    return [
        replace(member, located=rack, member=replace(member.member, rack=rack)) for rack in places_of(member, racks)
    ] or [member]
