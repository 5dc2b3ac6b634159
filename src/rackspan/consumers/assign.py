"""The assignment itself: balanced, then rack-local, then sticky, and proven so."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rackspan.consumers.audience import audiences, partitions_by_audience
from rackspan.consumers.claims import owners
from rackspan.consumers.dealing import dealt
from rackspan.consumers.group import Group, Member, MemberId
from rackspan.consumers.kinds import kinds
from rackspan.consumers.placement_flow import PlacementFlow, cheapest
from rackspan.consumers.shares import Shares, balanced_shares
from rackspan.errors import UnprovenResponse
from rackspan.model.ids import TopicPartition

Owned = Mapping[MemberId, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """Every member's partitions in ascending order, and what they cost.

    Balanced as subscriptions permit. No balanced assignment reads fewer than `cross_rack` partitions from another rack, and
    none of those that read so few moves fewer than `moved` away from the members that owned them.
    """

    partitions: Owned
    cross_rack: int
    moved: int


def assign(group: Group) -> GroupAssignment:
    """Give each partition to a member of the group.

    Constraints: every partition of a subscribed topic has one member, and that member subscribes to its topic.
    Goals: 1. loads as even as subscriptions permit (shares.py); 2. the fewest partitions without a replica in their
    member's rack; 3. the fewest partitions taken from the member that owned them.
    Method: the balanced assignments are described exactly by the prices of a first flow; a second one, over kinds of
    partitions and cohorts of members instead of single ones, finds the cheapest of them (placement_flow.py). Concrete
    partitions are dealt in turn within each flow, so that topics mix. The result is counted again and held against both
    certificates. Deterministic; the order of members and partitions does not matter.
    Source: KIP-881 (the wish), KIP-925 (cost and flow). Errors: UnprovenResponse, a bug.
    """
    ordered = replace(group, members=tuple(sorted(group.members, key=lambda member: member.id)))
    known = audiences(ordered.members)
    shared = partitions_by_audience(ordered, known)
    if not shared:
        return GroupAssignment({member.id: () for member in ordered.members}, 0, 0)
    sorted_out, shares = kinds(ordered, known), balanced_shares(shared, known.sizes)
    flow = cheapest(sorted_out, shares)
    answer = _counted(ordered, dealt(sorted_out, flow))
    _refuse_unproven(answer, shares, flow)
    return answer


def _counted(group: Group, given: Mapping[int, list[TopicPartition]]) -> GroupAssignment:
    before = owners(group)
    pairs = [(member, one) for index, member in enumerate(group.members) for one in given.get(index, ())]
    return GroupAssignment(
        {member.id: tuple(sorted(given.get(index, ()))) for index, member in enumerate(group.members)},
        cross_rack=sum(group.crosses_racks(one, member) for member, one in pairs),
        moved=sum(_was_moved(before.get(one), member) for member, one in pairs),
    )


def _was_moved(before: MemberId | None, member: Member) -> bool:
    return before is not None and before != member.id


def _refuse_unproven(answer: GroupAssignment, shares: Shares, flow: PlacementFlow) -> None:
    """Counted anew, the answer must cost what both certificates say it must."""
    loads = [len(partitions) for partitions in answer.partitions.values()]
    if shares.price(loads) != shares.proof.lower_bound:
        raise UnprovenResponse(f"loads of {min(loads)} to {max(loads)} are not as even as proven; report this as a bug")
    if flow.price(answer.cross_rack, answer.moved) != flow.lower_bound:
        found = f"{answer.cross_rack} cross-rack partitions and {answer.moved} moves"
        raise UnprovenResponse(f"{found} do not match their proof; report this as a bug")
