"""Members and topics by subscription: members that subscribe alike are alike, and so are topics with the same readers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rackspan.consumers.group import Group, Member

Audience: TypeAlias = tuple[int, ...]
"""The subscriptions, by number and ascending, that include a topic. Never empty."""


@dataclass(frozen=True, slots=True)
class Audiences:
    """`subscription` numbers the subscription of each member, `sizes` counts its members, `of_topic` says who reads a topic."""

    subscription: Sequence[int]
    sizes: Sequence[int]
    of_topic: Mapping[str, Audience]


def audiences(members: Sequence[Member]) -> Audiences:
    """Subscriptions are numbered in the order of their first member."""
    numbers = {topics: number for number, topics in enumerate(dict.fromkeys(member.topics for member in members))}
    subscription = [numbers[member.topics] for member in members]
    of_topic: dict[str, list[int]] = {}
    for topics, number in numbers.items():
        for topic in topics:
            of_topic.setdefault(topic, []).append(number)
    counts = Counter(subscription)
    return Audiences(
        subscription, [counts[number] for number in range(len(numbers))], {t: tuple(a) for t, a in of_topic.items()}
    )


def partitions_by_audience(group: Group, known: Audiences) -> Counter[Audience]:
    """How many partitions each audience shares, those without one left out. In one order for equal groups."""
    return Counter(known.of_topic[topic] for topic, _ in sorted(group.racks) if topic in known.of_topic)
