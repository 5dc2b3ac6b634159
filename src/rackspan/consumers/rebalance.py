"""One rebalance of a consumer group, as the group leader decides it."""

from collections.abc import Mapping
from dataclasses import dataclass

from rackspan.consumers.assign import GroupAssignment, assign
from rackspan.consumers.group import ConsumerGroup, MemberId
from rackspan.consumers.ownership import still_read
from rackspan.consumers.rack_awareness import reason_off, without_racks
from rackspan.model.ids import TopicPartition


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
