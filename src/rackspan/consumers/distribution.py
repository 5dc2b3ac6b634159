"""Partitions for the counts of an assignment flow: which of the partitions that cost the same goes to which member."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import TypeVar

from rackspan.consumers.assignment_flow import AssignmentFlow
from rackspan.consumers.kinds import Cohort, GroupKinds, PartitionKind
from rackspan.model.ids import TopicPartition

Receiver = TypeVar("Receiver")


def distribute_partitions(group: GroupKinds, flow: AssignmentFlow) -> dict[int, list[TopicPartition]]:
    """Partitions by member number. A member keeps the first of those it owned; the others are distributed round-robin."""
    assigned: dict[int, list[TopicPartition]] = defaultdict(list)
    for (kind, member), owned in group.owned.items():
        assigned[member] += owned[: flow.kept.get((kind, member), 0)]
    for cohort, partitions in _by_cohort(group, flow).items():
        counts = {member: flow.received[member] for member, of_member in enumerate(group.cohort) if of_member == cohort}
        for member, received in round_robin(sorted(partitions), counts).items():
            assigned[member] += received
    return assigned


def round_robin(
    partitions: Iterable[TopicPartition], counts: Mapping[Receiver, int]
) -> dict[Receiver, list[TopicPartition]]:
    """One partition to each receiver in turn, until each has its count. The counts sum to the number of partitions."""
    waiting = deque(receiver for receiver, count in counts.items() if count)
    received: dict[Receiver, list[TopicPartition]] = {receiver: [] for receiver in counts}
    for partition in partitions:
        receiver = waiting.popleft()
        received[receiver].append(partition)
        if len(received[receiver]) < counts[receiver]:
            waiting.append(receiver)
    return received


def _by_cohort(group: GroupKinds, flow: AssignmentFlow) -> dict[Cohort, list[TopicPartition]]:
    """The partitions that the flow sends to each cohort: those without an owner, and those their owner does not keep."""
    pools: dict[PartitionKind, list[TopicPartition]] = {kind: list(group.unowned.get(kind, ())) for kind in group.kinds}
    for (kind, member), owned in group.owned.items():
        pools[kind] += owned[flow.kept.get((kind, member), 0) :]
    counts: dict[PartitionKind, dict[Cohort, int]] = defaultdict(dict)
    for (kind, cohort), count in flow.sent.items():
        counts[kind][cohort] = count
    by_cohort: dict[Cohort, list[TopicPartition]] = defaultdict(list)
    for kind, pool in pools.items():
        for cohort, received in round_robin(sorted(pool), counts[kind]).items():
            by_cohort[cohort] += received
    return by_cohort
