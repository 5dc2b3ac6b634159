"""What the cooperative protocol makes wait (KIP-429)."""

from collections.abc import Mapping

from rackspan.consumers.claims import newest_claimants
from rackspan.consumers.group import Group, MemberId
from rackspan.model.ids import TopicPartition

Partitions = Mapping[MemberId, tuple[TopicPartition, ...]]


def withheld(group: Group, wanted: Partitions) -> frozenset[TopicPartition]:
    """Partitions that another member than the wanted one still reads.

    They are given to nobody now. Their holders see them gone, stop reading and rejoin; the next rebalance finds them free.
    Members that gave up everything before they joined hold nothing, so both protocols can meet in one group.
    """
    holders = {
        partition: {member.id for member in claiming if member.holds}
        for partition, claiming in newest_claimants(group).items()
    }
    return frozenset(
        partition
        for member, partitions in wanted.items()
        for partition in partitions
        if holders.get(partition, set()) - {member}
    )


def handed_out(wanted: Partitions, waiting: frozenset[TopicPartition]) -> Partitions:
    """What members are told now."""
    return {member: tuple(one for one in partitions if one not in waiting) for member, partitions in wanted.items()}
