"""One rebalance, as the leader of a group decides it."""

from dataclasses import dataclass

from rackspan.consumers.assign import GroupAssignment, assign
from rackspan.consumers.awareness import reason_off, without_racks
from rackspan.consumers.cooperative import Partitions, handed_out, withheld
from rackspan.consumers.group import Group
from rackspan.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Decision:
    """`told` is what every member reads from now on, `aim` what the group comes to once nothing is `waiting` for its holder.

    `off` says why racks were left out; None where they counted. Claims made from this assignment carry `epoch`.
    """

    told: Partitions
    aim: GroupAssignment
    waiting: frozenset[TopicPartition]
    epoch: int
    off: str | None


def lead(group: Group, now_ms: int) -> Decision:
    """Decide a rebalance. `now_ms`, the leader's clock in milliseconds, only helps to tell newer claims from older ones."""
    off = reason_off(group)
    aim = assign(group if off is None else without_racks(group))
    waiting = withheld(group, aim.partitions)
    return Decision(handed_out(aim.partitions, waiting), aim, waiting, _next_epoch(group, now_ms), off)


def _next_epoch(group: Group, now_ms: int) -> int:
    """Above every epoch seen, whatever the clock says; by the clock, above those of members that are absent too."""
    return max([now_ms, *(member.epoch + 1 for member in group.members)])
