"""The one way in which a partition's state changes: a requested change in, the next state out.

Source: Kafka's PartitionChangeBuilder and PartitionReassignmentReplicas; KIP-455 (reassignment), KIP-966 (ELR), with two
differences of ours: an ELR that may count racks, and no fallback to the last known leader, whose log may have
lost its end.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum

from rackspan.acks import RackBits, Thresholds
from rackspan.acks.min_insync_racks import missed_threshold
from rackspan.cluster.core.metadata import NO_LEADER, PartitionState
from rackspan.cluster.core.settings import Elr
from rackspan.model.ids import BrokerId


class Election(Enum):
    """How far an election may go."""

    ONLINE = "online"
    """Keep a leader that may lead; else the first replica of the ISR or ELR that may."""
    PREFERRED = "preferred"
    """The first replica, if it may lead; else as online."""
    UNCLEAN = "unclean"
    """As online; if no such replica may lead, the first that is alive. Records that it lacks are lost."""


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A requested change; None keeps the value. Brokers in `shut_down_uncleanly` may have lost the end of their logs."""

    isr: tuple[BrokerId, ...] | None = None
    replicas: tuple[BrokerId, ...] | None = None
    adding: tuple[BrokerId, ...] | None = None
    removing: tuple[BrokerId, ...] | None = None
    election: Election = Election.ONLINE
    shut_down_uncleanly: Collection[BrokerId] = ()


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a change. A broker may lead if it is registered, not fenced and not shutting down."""

    may_lead: Callable[[BrokerId], bool]
    racks: RackBits
    required: Thresholds
    elr: Elr


def changed(before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
    """The next state; `before` itself if nothing changes.

    Constraints: the leader is in the ISR and may lead, or there is none. ISR, ELR, adding and removing are replicas; ISR
    and ELR are disjoint. A replica outside ISR and ELR leads by unclean election alone. While the ISR misses a
    threshold, members that left it cleanly stay in the ELR. Both epochs never go back.
    Goals: keep the leader; else the ISR before the ELR; then the order of the replicas.
    Method: finish a reassignment whose target is in sync, elect, then compute the ELR.
    Bound: O(replicas squared). Test: tests/cluster/core/controller/test_partition_change.py.
    """
    target = _reassigned(_requested(before, change, conditions))
    elected = _elected(before, target, change, conditions)
    after = _with_elr(before, elected, change, conditions)
    return before if after == before else _numbered(before, after)


def _requested(before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
    isr = before.isr if change.isr is None else change.isr
    if not isr and conditions.elr is Elr.OFF:
        # Without an ELR the last member stays, so that a replica is left to elect.
        isr = before.isr
    replicas = before.replicas if change.replicas is None else change.replicas
    return replace(
        before,
        replicas=replicas,
        isr=tuple(member for member in isr if member in replicas),
        adding=before.adding if change.adding is None else change.adding,
        removing=before.removing if change.removing is None else change.removing,
    )


def _reassigned(target: PartitionState) -> PartitionState:
    """The end of a reassignment: every replica that stays is in sync, those that were there before it too."""
    isr, replicas = _without(target.isr, target.removing), _without(target.replicas, target.removing)
    if not target.reassigning or not isr or not set(replicas) <= set(isr):
        return target
    return replace(target, replicas=replicas, isr=isr, adding=(), removing=())


def _elected(
    before: PartitionState, target: PartitionState, change: PartitionChange, conditions: Conditions
) -> PartitionState:
    leader = _leader(before, target, change, conditions)
    # Only a leader from outside the ISR is in sync with itself.
    isr = target.isr if leader in target.isr or leader == NO_LEADER else (leader,)
    return replace(target, leader=leader, isr=isr)


def _leader(
    before: PartitionState, target: PartitionState, change: PartitionChange, conditions: Conditions
) -> BrokerId:
    candidates = [broker for broker in target.replicas if conditions.may_lead(broker)]
    clean = _clean(candidates, before, target, change, conditions)
    if change.election is not Election.PREFERRED and before.leader in clean:
        return before.leader
    if change.election is Election.PREFERRED and target.preferred_leader not in clean and before.leader in clean:
        return before.leader
    unclean = candidates if change.election is Election.UNCLEAN else []
    return next(iter([*clean, *unclean]), NO_LEADER)


def _clean(
    candidates: list[BrokerId],
    before: PartitionState,
    target: PartitionState,
    change: PartitionChange,
    conditions: Conditions,
) -> list[BrokerId]:
    """The replicas that may lead without losing an acknowledged record: the ISR, or the ELR if no member of the ISR may lead.

    A leader from the ELR begins with an ISR of itself alone; the others have to catch up again.
    """
    in_sync = [broker for broker in candidates if broker in target.isr]
    eligible = () if in_sync else _candidates_of_elr(before, target.isr, target, change, conditions)
    return in_sync or [broker for broker in candidates if broker in eligible]


def _candidates_of_elr(
    before: PartitionState,
    isr: tuple[BrokerId, ...],
    target: PartitionState,
    change: PartitionChange,
    conditions: Conditions,
) -> tuple[BrokerId, ...]:
    """The members that left the ISR since it last met its thresholds. They have all records below the high watermark, which
    has not moved since.

    `isr` may be the one before the election, which can only shrink it.
    """
    if conditions.elr is Elr.OFF or (isr and _met(isr, target, conditions)):
        return ()
    left = dict.fromkeys((*before.elr, *before.isr))
    excluded = {*isr, *change.shut_down_uncleanly}
    return tuple(broker for broker in left if broker not in excluded and broker in target.replicas)


def _with_elr(
    before: PartitionState, target: PartitionState, change: PartitionChange, conditions: Conditions
) -> PartitionState:
    if change.election is Election.UNCLEAN and _lost(before, target):
        return replace(target, elr=())
    return replace(target, elr=_candidates_of_elr(before, target.isr, target, change, conditions))


def _lost(before: PartitionState, target: PartitionState) -> bool:
    """Whether the leader came from outside ISR and ELR: records of the others beyond its log are void."""
    return target.leader not in (NO_LEADER, before.leader, *before.isr, *before.elr)


def _met(isr: Collection[BrokerId], target: PartitionState, conditions: Conditions) -> bool:
    required = conditions.required.of_partition(len(target.replicas))
    if conditions.elr is Elr.KAFKA:
        return len(isr) >= required.min_insync_replicas
    return missed_threshold(isr, conditions.racks, required) is None


def _numbered(before: PartitionState, after: PartitionState) -> PartitionState:
    """The next epochs, and at which partition epoch each replica was last in the ISR.

    Removing a replica raises the leader epoch too, so that its fetches are refused from then on.
    """
    new_leadership = after.leader != before.leader or not set(before.replicas) <= set(after.replicas)
    return replace(
        after,
        leader_epoch=before.leader_epoch + new_leadership,
        partition_epoch=before.partition_epoch + 1,
        left_isr=_left_isr(before, after),
    )


def _left_isr(before: PartitionState, after: PartitionState) -> tuple[tuple[BrokerId, int], ...]:
    last_in = dict(before.left_isr) | dict.fromkeys(before.isr, before.partition_epoch)
    return tuple((broker, last_in[broker]) for broker in _without(after.replicas, after.isr) if broker in last_in)


def _without(brokers: tuple[BrokerId, ...], removed: Collection[BrokerId]) -> tuple[BrokerId, ...]:
    return tuple(broker for broker in brokers if broker not in removed)
