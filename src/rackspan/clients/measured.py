"""Measured reads: the bytes that a gateway counted for each member and topic, by the racks that they left.

A gateway counts by client id. So bytes are a member's only if no other member has its client id; else nothing is known.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rackspan.clients.reads import GroupReads, MemberReads
from rackspan.model.group import GroupDescription, GroupKind
from rackspan.model.ids import RackId

ReadBytes: TypeAlias = Mapping[tuple[str, str], Mapping[tuple[str, str], int]]
"""By client id and topic: bytes by the racks that they left and reached. A rack that is not known is empty."""

Measured: TypeAlias = "Mapping[tuple[str, str], TopicBytes]"
"""By member id and topic. A topic of which nothing passed is not in it."""


@dataclass(frozen=True, slots=True)
class TopicBytes:
    """What one member received of one topic. `unknown` are bytes of which one rack is not known."""

    in_rack: int
    across: int
    unknown: int

    @property
    def is_in_rack(self) -> bool:
        return not self.across and not self.unknown


def measured_reads(reads: GroupReads, every_group: Sequence[GroupDescription], counted: ReadBytes) -> Measured:
    """The bytes of each member of a group; none in a share group, whose fetches are not counted.

    `every_group` are all groups of the cluster: members of any of them may share a client id.
    """
    if reads.group.kind is GroupKind.SHARE:
        return {}
    members = Counter(member.client_id for group in every_group for member in group.members)
    return {
        (reader.member.member_id, topic): _topic_bytes(reader, counted[reader.member.client_id, topic])
        for reader in reads.members
        if members[reader.member.client_id] == 1
        for topic in dict.fromkeys(read.partition.topic for read in reader.reads)
        if sum(counted.get((reader.member.client_id, topic), {}).values())
    }


def _topic_bytes(reader: MemberReads, counted: Mapping[tuple[str, str], int]) -> TopicBytes:
    """A member is where its address or its config says, and else where the gateway says."""
    sums = Counter[bool | None]()
    for (from_rack, to_rack), size_bytes in counted.items():
        rack = reader.rack or RackId(to_rack)
        sums[from_rack == rack if from_rack and rack else None] += size_bytes
    return TopicBytes(sums[True], sums[False], sums[None])
