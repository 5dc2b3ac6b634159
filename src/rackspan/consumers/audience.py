"""Members grouped by subscription, and topics grouped by the subscriptions that include them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rackspan.consumers.group import ConsumerGroup, GroupMember

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
