"""A consumer group at one rebalance: its members, the racks in which each partition can be read, and who owned and still reads it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NewType

from rackspan.errors import InvalidProblem
from rackspan.model.ids import RackId, TopicPartition

MemberId = NewType("MemberId", str)

PROTOCOL: Final = "rackspan-rack-aware"
"""The name of our assignor in the group protocol: the coordinator selects it when all members offer it."""

NO_EPOCH: Final = -1
"""The assignment epoch of a member that was never assigned anything."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One consumer, as described by the data it sent when it joined.

    `owned` is its last assignment, made at assignment epoch `epoch`. `still_reads` is true for a member that reads its
    `owned` partitions during the rebalance (the cooperative protocol, KIP-429) and false for one that revoked them before
    it joined (eager). `fault` says why its data could not be read, None where it could.
    """

    id: MemberId
    topics: frozenset[str]
    rack: RackId | None = None
    owned: frozenset[TopicPartition] = frozenset()
    epoch: int = NO_EPOCH
    still_reads: bool = False
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """Members, and every partition of their topics with the racks in which it can be read.

    Partitions of topics without a subscriber are in no assignment. Errors: InvalidProblem when two members have one id.
    """

    members: tuple[GroupMember, ...]
    racks: Mapping[TopicPartition, frozenset[RackId]]

    def __post_init__(self) -> None:
        ids = [member.id for member in self.members]
        if len(set(ids)) < len(ids):
            twice = next(member for member in ids if ids.count(member) > 1)
            raise InvalidProblem(f"member {twice!r} is listed twice; member ids are unique in a group, so list it once")

    def crosses_racks(self, partition: TopicPartition, member: GroupMember) -> bool:
        """Whether the member reads the partition from another rack."""
        return member.rack not in self.racks[partition]


def owners(group: ConsumerGroup) -> Mapping[TopicPartition, MemberId]:
    """The one owner of each partition. Two claims of one epoch cancel each other: neither is more credible."""
    return {partition: members[0].id for partition, members in _newest_claimants(group).items() if len(members) == 1}


def still_read(group: ConsumerGroup, target: Mapping[MemberId, Sequence[TopicPartition]]) -> frozenset[TopicPartition]:
    """Partitions that a member other than their `target` still reads (the cooperative protocol, KIP-429).

    They are assigned to no member in this rebalance. Their readers see them revoked, stop reading and rejoin; in the next
    rebalance they are free. Members that revoked everything before they joined (eager) read nothing, so both protocols can
    be used in one group.
    """
    readers = {
        partition: {member.id for member in members if member.still_reads}
        for partition, members in _newest_claimants(group).items()
    }
    return frozenset(
        partition
        for member, partitions in target.items()
        for partition in partitions
        if readers.get(partition, set()) - {member}
    )


def _newest_claimants(group: ConsumerGroup) -> Mapping[TopicPartition, Sequence[GroupMember]]:
    """Members that claim a partition at the newest epoch of any claim on it: an older claim has been lost since.

    Partitions that no longer exist, and those of topics that the member no longer subscribes to, have no claimant.
    """
    claimants: dict[TopicPartition, list[GroupMember]] = defaultdict(list)
    for member in group.members:
        for partition in member.owned:
            if partition in group.racks and partition.topic in member.topics:
                claimants[partition].append(member)
    return {partition: _newest(members) for partition, members in claimants.items()}


def _newest(claimants: Sequence[GroupMember]) -> list[GroupMember]:
    epoch = max(member.epoch for member in claimants)
    return [member for member in claimants if member.epoch == epoch]
