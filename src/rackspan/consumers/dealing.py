"""From numbers to partitions: who gets which of those that cost the same."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import TypeVar

from rackspan.consumers.kinds import Cohort, Kind, Kinds
from rackspan.consumers.placement_flow import PlacementFlow
from rackspan.model.ids import TopicPartition

Receiver = TypeVar("Receiver")


def dealt(group: Kinds, flow: PlacementFlow) -> dict[int, list[TopicPartition]]:
    """Partitions of each member, by its number. A member keeps its first ones; the others are dealt in turn."""
    hands: dict[int, list[TopicPartition]] = defaultdict(list)
    for (kind, member), held in group.held.items():
        hands[member] += held[: flow.kept.get((kind, member), 0)]
    for cohort, arrived in _by_cohort(group, flow).items():
        wanted = {member: flow.taken[member] for member, its in enumerate(group.cohort) if its == cohort}
        for member, hand in in_turn(sorted(arrived), wanted).items():
            hands[member] += hand
    return hands


def in_turn(
    partitions: Iterable[TopicPartition], wanted: Mapping[Receiver, int]
) -> dict[Receiver, list[TopicPartition]]:
    """One to each receiver in turn until it has as many as it wants. What is wanted is what there is."""
    waiting = deque(receiver for receiver, units in wanted.items() if units)
    hands: dict[Receiver, list[TopicPartition]] = {receiver: [] for receiver in wanted}
    for partition in partitions:
        receiver = waiting.popleft()
        hands[receiver].append(partition)
        if len(hands[receiver]) < wanted[receiver]:
            waiting.append(receiver)
    return hands


def _by_cohort(group: Kinds, flow: PlacementFlow) -> dict[Cohort, list[TopicPartition]]:
    pools: dict[Kind, list[TopicPartition]] = {kind: list(group.free.get(kind, ())) for kind in group.kinds}
    for (kind, member), held in group.held.items():
        pools[kind] += held[flow.kept.get((kind, member), 0) :]
    sent: dict[Kind, dict[Cohort, int]] = defaultdict(dict)
    for (kind, cohort), units in flow.sent.items():
        sent[kind][cohort] = units
    arrived: dict[Cohort, list[TopicPartition]] = defaultdict(list)
    for kind, pool in pools.items():
        for cohort, hand in in_turn(sorted(pool), sent[kind]).items():
            arrived[cohort] += hand
    return arrived
