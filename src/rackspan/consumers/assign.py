"""The partition assignment of a group: balanced, then rack-local, then sticky, each proven."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from rackspan.consumers.assignment_flow import AssignmentFlow, cheapest_assignment
from rackspan.consumers.group import ConsumerGroup, MemberId, owners
from rackspan.consumers.kinds import (
    Cohort,
    GroupKinds,
    PartitionKind,
    group_audiences,
    group_kinds,
    partitions_by_audience,
)
from rackspan.consumers.shares import Shares, balanced_shares
from rackspan.errors import UnprovenResult
from rackspan.model.ids import TopicPartition
from rackspan.text import count_noun

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


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """Every member's partitions in ascending order, and what they cost.

    Loads are as balanced as subscriptions permit. `cross_rack` is the least number of partitions that a balanced assignment
    reads from another rack; `moved` is the least number, among those assignments, that change their owner.
    """

    partitions: Mapping[MemberId, tuple[TopicPartition, ...]]
    cross_rack: int
    moved: int


def assign(group: ConsumerGroup) -> GroupAssignment:
    """Give each partition to a member of the group.

    Constraints: every partition of a subscribed topic has one member, and that member subscribes to its topic.
    Goals: 1. loads as even as subscriptions permit (shares.py); 2. the fewest partitions without a replica in their
    member's rack; 3. the fewest partitions taken from the member that owned them.
    Method: the balanced assignments are described exactly by the prices of a first flow; a second one, over kinds of
    partitions and cohorts of members instead of single ones, finds the cheapest of them (assignment_flow.py). Partitions
    that cost the same are distributed round-robin, so that topics mix. The costs of the assignment are
    counted again and compared with both certificates. Deterministic; the order of members and partitions does not matter.
    Bound: the two flows of shares.py and assignment_flow.py, whose sizes do not depend on the number of partitions.
    Source: KIP-881 (motivation), KIP-925 (costs and flow). Proven by tests/consumers/test_assign.py, which tries all
    assignments, and test_second_solver.py, which solves larger groups with a constraint solver.
    Errors: UnprovenResult, a bug.
    """
    ordered = replace(group, members=tuple(sorted(group.members, key=lambda member: member.id)))
    audiences = group_audiences(ordered.members)
    partitions = partitions_by_audience(ordered, audiences)
    if not partitions:
        return GroupAssignment({member.id: () for member in ordered.members}, 0, 0)
    kinds, shares = group_kinds(ordered, audiences), balanced_shares(partitions, audiences.sizes)
    flow = cheapest_assignment(kinds, shares)
    assignment = _with_costs(ordered, distribute_partitions(kinds, flow))
    _refuse_unproven(assignment, shares, flow)
    return assignment


def _with_costs(group: ConsumerGroup, partitions: Mapping[int, list[TopicPartition]]) -> GroupAssignment:
    """The assignment of partitions by member number, its costs counted from the group itself."""
    owner = owners(group)
    pairs = [
        (member, partition) for index, member in enumerate(group.members) for partition in partitions.get(index, ())
    ]
    return GroupAssignment(
        {member.id: tuple(sorted(partitions.get(index, ()))) for index, member in enumerate(group.members)},
        cross_rack=sum(group.crosses_racks(partition, member) for member, partition in pairs),
        moved=sum(owner.get(partition, member.id) != member.id for member, partition in pairs),
    )


def _refuse_unproven(assignment: GroupAssignment, shares: Shares, flow: AssignmentFlow) -> None:
    """The counted costs must equal the bounds of both certificates."""
    loads = [len(partitions) for partitions in assignment.partitions.values()]
    if shares.price(loads) != shares.proof.lower_bound:
        raise UnprovenResult(f"loads of {min(loads)} to {max(loads)} are not as even as proven; report this as a bug")
    if flow.price(assignment.cross_rack, assignment.moved) != flow.lower_bound:
        costs = (
            f"{count_noun(assignment.cross_rack, 'cross-rack partition')} and {count_noun(assignment.moved, 'move')}"
        )
        raise UnprovenResult(f"{costs} do not match their proof; report this as a bug")
