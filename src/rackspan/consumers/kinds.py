"""Partitions and members that are alike, counted: what the optimiser sees of a group."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rackspan.consumers.audience import Audience, Audiences
from rackspan.consumers.claims import owners
from rackspan.consumers.group import Group
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition


class Kind(NamedTuple):
    """Partitions with the same possible readers and the same racks cost everybody the same."""

    audience: Audience
    racks: frozenset[RackId]


class Cohort(NamedTuple):
    """Members with one subscription in one rack cost every partition the same."""

    subscription: int
    rack: RackId | None


@dataclass(frozen=True, slots=True)
class Kinds:
    """A group in kinds and cohorts. Members are numbers, in the order of the group.

    `cohort` gives each member's. `held` are partitions by kind and by the member that owned them, `free` those without an
    owner; every partition that has readers is in one of the two, in ascending order.
    """

    cohort: Sequence[Cohort]
    held: Mapping[tuple[Kind, int], Sequence[TopicPartition]]
    free: Mapping[Kind, Sequence[TopicPartition]]

    @property
    def kinds(self) -> list[Kind]:
        return list(dict.fromkeys([*self.free, *(kind for kind, _ in self.held)]))


def kinds(group: Group, known: Audiences) -> Kinds:
    """Sort every partition into its kind. Equal groups give equal orders."""
    number = {member.id: index for index, member in enumerate(group.members)}
    owner = owners(group)
    held: dict[tuple[Kind, int], list[TopicPartition]] = defaultdict(list)
    free: dict[Kind, list[TopicPartition]] = defaultdict(list)
    for partition in sorted(group.racks):
        if partition.topic not in known.of_topic:
            continue
        kind = Kind(known.of_topic[partition.topic], group.racks[partition])
        if partition in owner:
            held[kind, number[owner[partition]]].append(partition)
        else:
            free[kind].append(partition)
    cohort = [Cohort(one, member.rack) for one, member in zip(known.subscription, group.members, strict=True)]
    return Kinds(cohort, held, free)
