"""Who owned a partition before the rebalance, where members contradict each other too."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rackspan.consumers.group import Group, Member, MemberId
from rackspan.model.ids import TopicPartition

Claimants = Mapping[TopicPartition, Sequence[Member]]


def newest_claimants(group: Group) -> Claimants:
    """Members that claim a partition at the newest epoch anyone claims it at; an older claim was lost since.

    Partitions that are gone and topics that the member left are nobody's.
    """
    claimants: dict[TopicPartition, list[Member]] = defaultdict(list)
    for member in group.members:
        for partition in member.owned:
            if partition in group.racks and partition.topic in member.topics:
                claimants[partition].append(member)
    return {partition: _newest(claiming) for partition, claiming in claimants.items()}


def owners(group: Group) -> Mapping[TopicPartition, MemberId]:
    """The one owner of each partition. Two claims of one epoch cancel each other: neither member can be believed."""
    return {partition: claiming[0].id for partition, claiming in newest_claimants(group).items() if len(claiming) == 1}


def _newest(claiming: Sequence[Member]) -> list[Member]:
    epoch = max(member.epoch for member in claiming)
    return [member for member in claiming if member.epoch == epoch]
