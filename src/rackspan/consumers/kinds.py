"""Partitions grouped by kind and members grouped by cohort: the optimiser works on these instead of single ones."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rackspan.consumers.audience import Audience, Audiences
from rackspan.consumers.group import ConsumerGroup
from rackspan.consumers.ownership import owners
from rackspan.model.ids import RackId, TopicPartition


class PartitionKind(NamedTuple):
    """Partitions with the same possible readers and the same racks; each costs the same for every reader."""

    audience: Audience
    racks: frozenset[RackId]


class Cohort(NamedTuple):
    """Members with one subscription in one rack; every partition costs the same for each of them."""

    subscription: int
    rack: RackId | None


@dataclass(frozen=True, slots=True)
class GroupKinds:
    """A group as kinds and cohorts. Members are numbers, in the order of the group.

    `cohort[m]` is member m's. `owned` has partitions by kind and the member that owned them, `unowned` those without an
    owner; every partition that has readers is in one of the two, in ascending order.
    """

    cohort: Sequence[Cohort]
    owned: Mapping[tuple[PartitionKind, int], Sequence[TopicPartition]]
    unowned: Mapping[PartitionKind, Sequence[TopicPartition]]

    @property
    def kinds(self) -> list[PartitionKind]:
        return list(dict.fromkeys([*self.unowned, *(kind for kind, _ in self.owned)]))


def group_kinds(group: ConsumerGroup, audiences: Audiences) -> GroupKinds:
    """Sort every partition into its kind. Equal groups give equal orders."""
    number = {member.id: index for index, member in enumerate(group.members)}
    owner = owners(group)
    owned: dict[tuple[PartitionKind, int], list[TopicPartition]] = defaultdict(list)
    unowned: dict[PartitionKind, list[TopicPartition]] = defaultdict(list)
    for partition in sorted(group.racks):
        if partition.topic not in audiences.of_topic:
            continue
        kind = PartitionKind(audiences.of_topic[partition.topic], group.racks[partition])
        if partition in owner:
            owned[kind, number[owner[partition]]].append(partition)
        else:
            unowned[kind].append(partition)
    pairs = zip(audiences.subscription, group.members, strict=True)
    return GroupKinds([Cohort(subscription, member.rack) for subscription, member in pairs], owned, unowned)
