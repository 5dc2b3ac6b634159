"""Who owned a partition before the rebalance, and who still reads it; members may contradict each other."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rackspan.consumers.group import ConsumerGroup, GroupMember, MemberId
from rackspan.model.ids import TopicPartition


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
