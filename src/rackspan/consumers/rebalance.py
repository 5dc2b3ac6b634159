"""One rebalance of a consumer group, as the group leader decides it: whether racks count, and what is withheld.

That racks do not count is a value, never an error.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rackspan.consumers.assign import GroupAssignment, assign
from rackspan.consumers.group import ConsumerGroup, GroupMember, MemberId, still_read
from rackspan.model import UNNAMED_RACK, TopicPartition


def reason_off(group: ConsumerGroup) -> str | None:
    """Why racks do not count, None where they do.

    One member without a rack switches rack awareness off for all, as one client does in KIP-925: it could be assigned any
    partition, wherever that is, and the other members' partitions would move for nothing. Members are checked in the order
    of their ids, so that repeated rebalances report the same reason.
    """
    return next(_reasons(group), None)


def without_racks(group: ConsumerGroup) -> ConsumerGroup:
    """The group with all members and replicas in one rack: the goals that remain are balance and stickiness."""
    members = tuple(replace(member, rack=UNNAMED_RACK) for member in group.members)
    return ConsumerGroup(members, dict.fromkeys(group.racks, frozenset({UNNAMED_RACK})))


def members_without_local_replicas(group: ConsumerGroup) -> tuple[GroupMember, ...]:
    """Members in a rack where no partition of the group has a replica: perhaps a mistyped client.rack."""
    populated = frozenset[object]().union(*group.racks.values())
    return tuple(member for member in group.members if member.rack not in populated)


def unknown_topics(group: ConsumerGroup) -> tuple[str, ...]:
    """Subscribed topics that are not in the cluster's metadata, or that have no partitions."""
    known = {topic for topic, _ in group.racks}
    return tuple(sorted(frozenset[str]().union(*(member.topics for member in group.members)) - known))


def _reasons(group: ConsumerGroup) -> Iterator[str]:
    for member in sorted(group.members, key=lambda member: member.id):
        if member.fault is not None:
            yield f"consumer {member.id} {member.fault}"
        elif member.rack is None:
            yield f"consumer {member.id} has no client.rack"
    if group.racks and not any(group.racks.values()):
        yield "no partition has a replica on a broker with broker.rack"


@dataclass(frozen=True, slots=True)
class RebalanceDecision:
    """What one rebalance assigns, and the assignment that the group reaches after it.

    `assigned` has the partitions that each member reads from now on. `target` is the assignment that the group reaches once
    no partition is `withheld` any more; a withheld partition is still read by its previous owner. `epoch` marks the owners
    of this assignment. `off_reason` says why racks did not count, None where they did.
    """

    assigned: Mapping[MemberId, tuple[TopicPartition, ...]]
    target: GroupAssignment
    withheld: frozenset[TopicPartition]
    epoch: int
    off_reason: str | None


def decide_rebalance(group: ConsumerGroup, now_ms: int) -> RebalanceDecision:
    """Assign the partitions of a group. `now_ms` is the leader's clock in milliseconds; it only orders epochs."""
    off_reason = reason_off(group)
    target = assign(group if off_reason is None else without_racks(group))
    withheld = still_read(group, target.partitions)
    assigned = {
        member: tuple(partition for partition in partitions if partition not in withheld)
        for member, partitions in target.partitions.items()
    }
    return RebalanceDecision(assigned, target, withheld, _next_epoch(group, now_ms), off_reason)


def _next_epoch(group: ConsumerGroup, now_ms: int) -> int:
    """Above the epoch of every member, whatever the clock says; the clock puts it above those of absent members too."""
    return max([now_ms, *(member.epoch + 1 for member in group.members)])
