"""Reassignments with a mistake: each is one method of the controller's rules overridden."""

from dataclasses import replace

from rackspan.cluster.core.controller import Conditions, ControllerRules, PartitionChange
from rackspan.cluster.core.metadata import NO_LEADER, PartitionState


class DropsOldFirst(ControllerRules):
    """The old replicas are removed as soon as a reassignment begins; the ISR keeps those of its members that are in the target."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        return _ended_early(before, after) if change.replicas is not None and after.reassigning else after


class EndsWithTheFirst(ControllerRules):
    """It ends when one of those that were added is in sync, not all of them."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        one_is_in = bool(set(after.adding) & set(after.isr))
        return _ended_early(before, after) if after.reassigning and one_is_in else after


class EndsWithTheAdded(ControllerRules):
    """It ends when those that were added are in sync, whether those that were there and stay are or not."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        all_are_in = set(after.adding) <= set(after.isr)
        return _ended_early(before, after) if after.reassigning and all_are_in else after


def _ended_early(before: PartitionState, after: PartitionState) -> PartitionState:
    """Not where no broker of the target is in sync: that would be obvious."""
    replicas = tuple(one for one in after.replicas if one not in after.removing)
    isr = tuple(one for one in after.isr if one in replicas)
    if not isr:
        return after
    leader = after.leader if after.leader in isr else isr[0]
    return replace(
        after,
        replicas=replicas,
        isr=isr,
        elr=tuple(one for one in after.elr if one in replicas),
        adding=(),
        removing=(),
        leader=leader,
        leader_epoch=before.leader_epoch + 1,
    )


class KeepsRemovedLeader(ControllerRules):
    """A leader that is reassigned away goes on leading: nobody is elected in its place."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        gone = before.leader != NO_LEADER and before.leader not in after.replicas
        return replace(after, leader=before.leader) if gone else after


class FencesNobody(ControllerRules):
    """A replica that is reassigned away is not fenced by a new leader epoch, unless it led."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        return replace(after, leader_epoch=before.leader_epoch) if after.leader == before.leader else after


class NeverForgets(ControllerRules):
    """What was being removed is still called so when it is gone."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        ended = before.reassigning and not after.reassigning
        return replace(after, removing=before.removing) if ended else after


class CancelsForward(ControllerRules):
    """A cancelled reassignment keeps what it had added."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        cancelled = change.replicas is not None and change.adding == () and change.removing == () and before.adding
        if cancelled and change.replicas is not None:
            change = replace(change, replicas=(*change.replicas, *before.adding))
        return super().changed(before, change, conditions)


class NeverEnds(ControllerRules):
    """The last of the old replicas stays for ever."""

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        after = super().changed(before, change, conditions)
        ended = before.reassigning and not after.reassigning and change.replicas is None
        if not ended:
            return after
        replicas = (*after.replicas, *before.removing)
        return replace(after, replicas=replicas, adding=before.adding, removing=before.removing)
