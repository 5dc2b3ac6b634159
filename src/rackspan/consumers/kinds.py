"""Members and partitions grouped: topics by the subscriptions that include them, partitions by kind, members by cohort.

The optimiser works on these instead of single ones.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from rackspan.consumers.group import ConsumerGroup, GroupMember, owners
from rackspan.model.ids import RackId, TopicPartition

Audience: TypeAlias = tuple[int, ...]
"""The subscriptions, by number and ascending, that include a topic. Never empty."""


@dataclass(frozen=True, slots=True)
class Audiences:
    """The subscriptions of a group.

    `subscription[m]` numbers the subscription of member m, `sizes[s]` counts the members of subscription s, `of_topic` maps
    each subscribed topic to its audience.
    """

    subscription: Sequence[int]
    sizes: Sequence[int]
    of_topic: Mapping[str, Audience]


def group_audiences(members: Sequence[GroupMember]) -> Audiences:
    """Number the subscriptions, in the order of their first member."""
    numbers = {topics: number for number, topics in enumerate(dict.fromkeys(member.topics for member in members))}
    subscription = [numbers[member.topics] for member in members]
    of_topic: dict[str, list[int]] = {}
    for topics, number in numbers.items():
        for topic in topics:
            of_topic.setdefault(topic, []).append(number)
    sizes = Counter(subscription)
    return Audiences(
        subscription,
        [sizes[number] for number in range(len(numbers))],
        {topic: tuple(audience) for topic, audience in of_topic.items()},
    )


def partitions_by_audience(group: ConsumerGroup, audiences: Audiences) -> Counter[Audience]:
    """How many partitions each audience reads. Partitions without an audience are left out. Equal groups give one order."""
    of_topic = audiences.of_topic
    return Counter(of_topic[topic] for topic, _ in sorted(group.racks) if topic in of_topic)


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
