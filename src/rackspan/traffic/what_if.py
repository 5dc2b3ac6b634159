"""What groups would read with other settings, as the same values as today's: flows of both compare.

A member whose rack is not known counts as spread evenly over the racks, as in the flows of today.
"""

from collections.abc import Sequence
from dataclasses import replace

from rackspan.clients import GroupReads
from rackspan.clients.reads import MemberReads, Read
from rackspan.consumers import ConsumerGroup, GroupMember, assign
from rackspan.consumers.group import MemberId
from rackspan.model.group import GroupKind
from rackspan.model.ids import RackId
from rackspan.traffic.flows import places_of


def reading_at_home(reads: GroupReads, racks: Sequence[RackId]) -> GroupReads:
    """Every member names its rack and every broker selects replicas by rack: an in-sync replica there serves it.

    Share groups stay as they are, since their members read from leaders only.
    """
    if reads.group.kind is GroupKind.SHARE:
        return reads
    return replace(
        reads, members=tuple(_at_home(part) for member in reads.members for part in _in_racks(member, racks))
    )


def reading_best_assigned(reads: GroupReads) -> GroupReads:
    """The balanced assignment that has the most partitions with a replica in their reader's rack.

    Of groups whose members' racks are known and whose partitions have one reader each; others stay as they are.
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
    return replace(
        reads,
        members=tuple(
            replace(
                member, reads=tuple(by_partition[partition] for partition in best[MemberId(member.member.member_id)])
            )
            for member in reads.members
        ),
    )


def reading_where_replicas_are(reads: GroupReads, topic: str, racks: frozenset[RackId]) -> GroupReads:
    """A topic with an in-sync replica in each of these racks."""
    return replace(
        reads,
        members=tuple(
            replace(
                member,
                reads=tuple(
                    replace(read, replicas=racks, in_sync=racks) if read.partition.topic == topic else read
                    for read in member.reads
                ),
            )
            for member in reads.members
        ),
    )


def _in_racks(member: MemberReads, racks: Sequence[RackId]) -> list[MemberReads]:
    """The member in its rack, or one in each rack that it may be in, which reads an equal part."""
    return [replace(member, located=rack) for rack in places_of(member, racks)] or [member]


def _at_home(member: MemberReads) -> MemberReads:
    return replace(member, reads=tuple(_served_at_home(read, member.rack) for read in member.reads))


def _served_at_home(read: Read, rack: RackId | None) -> Read:
    return replace(read, served_from=rack if rack in read.in_sync else read.leader)
