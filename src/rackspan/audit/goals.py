"""Goals: what is better when met. A goal that is missed is a warning, and only where an operator should act.

Excluded brokers have no share: the others are levelled among themselves. In order of rank: preferred leaders per broker, level above
those that no plan moves; replicas per broker at the water-fill bound; leaders per rack, the sum of its brokers' shares; bytes per
broker; and leaders that are not the preferred ones. Test: tests/audit/test_goals.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers
from rackspan.audit.findings import (
    BOOTSTRAP_SERVER,
    Finding,
    PlanCommand,
    PlanRemedy,
    Remedy,
    Severity,
    or_else,
    plan_of,
)
from rackspan.audit.loads import BrokerLoads, even_leaders, replica_bound
from rackspan.model import Bools, Int64s, even_spread, shown
from rackspan.text import count_noun, human_bytes, noun_and_ids

TOLERANCE: Final = 1.10
"""How far above the even share is still accepted: Cruise Control's default balance threshold."""

LEADER_IMBALANCE_MAX: Final = 0.10
"""Kafka's default leader.imbalance.per.broker.percentage."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal. `missed` returns in words what is uneven, or None where the goal is met."""

    name: str
    missed: Callable[[ClusterMembers, BrokerLoads], str | None]
    remedy: Remedy

    def findings(self, members: ClusterMembers, loads: BrokerLoads) -> Iterator[Finding]:
        reason = self.missed(members, loads)
        if reason is not None:
            yield Finding(self.name, Severity.WARNING, reason, str(self.remedy), plan=plan_of(self.remedy))


def _leaders_uneven(members: ClusterMembers, loads: BrokerLoads) -> str | None:
    return _above(
        members,
        loads.preferred,
        even_leaders(members, loads),
        "is preferred leader of",
        lambda most: count_noun(most, "partition"),
        lambda even: f"{even} would be even",
    )


def _replicas_uneven(members: ClusterMembers, loads: BrokerLoads) -> str | None:
    bound = replica_bound(members.open_rack_map, loads.by_replication_factor)
    return _above(
        members,
        loads.movable,
        np.full(len(loads.movable), bound),
        "holds",
        lambda most: count_noun(most, "replica"),
        lambda most: f"{count_noun(most, 'is', plural='are')} possible with racks kept",
    )


def _rack_leaders_uneven(members: ClusterMembers, loads: BrokerLoads) -> str | None:
    rack_map = members.rack_map
    racked = (rack_map.rack_codes >= 0) & ~members.excluded
    codes, count = rack_map.rack_codes[racked], len(rack_map.racks)
    led, share = (
        np.bincount(codes, of[racked], count).astype(np.int64) for of in (loads.preferred, even_leaders(members, loads))
    )
    over = led > share * TOLERANCE + 1
    if not over.any():
        return None
    worst = int(np.argmax(np.where(over, led - share, -1)))
    leads = count_noun(int(led[worst]), "partition")
    return f"rack {shown(rack_map.racks[worst])} is preferred leader of {leads}, its share is {share[worst]}"


def _bytes_uneven(members: ClusterMembers, loads: BrokerLoads) -> str | None:
    replicas, held = int(loads.movable.sum()), int(loads.movable_bytes.sum())
    if not replicas or not held:
        return None
    bound = replica_bound(members.open_rack_map, loads.by_replication_factor)
    # The bound on replicas, converted to bytes; an even placement can still exceed it by one partition.
    even = bound * held // replicas + loads.largest_partition_bytes
    return _above(
        members,
        loads.movable_bytes,
        np.full(len(loads.movable_bytes), even),
        "holds",
        human_bytes,
        lambda most: f"{human_bytes(most)} would be even",
    )


def _leaders_away(members: ClusterMembers, loads: BrokerLoads) -> str | None:
    away = loads.preferred - loads.preferred_led
    over = members.usable[:-1] & (away > loads.preferred * LEADER_IMBALANCE_MAX)
    if not over.any():
        return None
    worst = int(np.argmax(np.where(over, away, -1)))
    return (
        f"{int(away[worst])} of {count_noun(int(loads.preferred[worst]), 'partition')} with broker "
        f"{members.rack_map.broker_ids[worst]} as preferred leader {'is' if away[worst] == 1 else 'are'} not led by it{_others(over)}"
    )


BY_SIZE: Final = "no plan is made by bytes: write one yourself and check it with rackspan reassign lint"
"""No plan of rackspan chooses brokers by bytes before replicas are even."""

GOALS: Final = (
    Goal("leader-balance", _leaders_uneven, PlanRemedy(PlanCommand())),
    Goal("replica-balance", _replicas_uneven, PlanRemedy(PlanCommand(balance=True))),
    Goal("rack-leader-balance", _rack_leaders_uneven, PlanRemedy(PlanCommand())),
    Goal("byte-balance", _bytes_uneven, BY_SIZE),
    Goal(
        "preferred-leader",
        _leaders_away,
        f"kafka-leader-election.sh {BOOTSTRAP_SERVER} --election-type preferred --all-topic-partitions",
    ),
)


def goal_findings(members: ClusterMembers, loads: BrokerLoads) -> Iterator[Finding]:
    """A warning for each goal that is missed."""
    return (finding for goal in GOALS for finding in goal.findings(members, loads))


def excluded_broker_findings(members: ClusterMembers, loads: BrokerLoads) -> Iterator[Finding]:
    """A warning for each excluded broker that still holds replicas."""
    for index in np.flatnonzero(members.excluded & (loads.replicas > 0)).tolist():
        broker = int(members.rack_map.broker_ids[index])
        held = count_noun(int(loads.replicas[index]), "replica")
        why = (
            f"all log directories of broker {broker} are cordoned"
            if broker in members.cordoned
            else f"broker {broker} is excluded"
        )
        emptied = _emptied(members, loads, broker, int(members.rack_map.rack_codes[index]))
        remedy = or_else(emptied, _ending(broker, cordoned=broker in members.cordoned))
        yield Finding(
            constraint="excluded-broker",
            severity=Severity.WARNING,
            reason=f"{why}: it gets nothing new, and holds {held}",
            remedy=str(remedy),
            plan=plan_of(remedy),
        )


def _emptied(members: ClusterMembers, loads: BrokerLoads, broker: int, rack: int) -> Remedy:
    """How an excluded broker comes to hold nothing; its rack has to keep enough brokers for the widest spread."""
    code_of = {name: code for code, name in enumerate(members.open_rack_map.racks)}
    sizes = members.open_rack_map.sizes
    left = np.array([sizes[code_of[name]] if name in code_of else 0 for name in members.rack_map.racks])
    widest = max(0, len(loads.by_replication_factor) - 1)
    if rack >= 0 and even_spread(left[left > 0], widest) != even_spread(members.rack_map.sizes, widest):
        return f"add brokers to rack {shown(members.rack_map.racks[rack])}"
    drain = PlanCommand(drain=(broker,))
    if not members.spread_without((broker,), widest):
        fenced = sorted(members.listed - members.alive - members.excluded_ids)
        return f"bring back {noun_and_ids('broker', fenced)}; then {drain}"
    return PlanRemedy(drain)


def _ending(broker: int, *, cordoned: bool) -> str:
    """How it gets replicas again."""
    if cordoned:
        return (
            f"uncordon it: kafka-configs.sh {BOOTSTRAP_SERVER} --alter --entity-type brokers "
            f"--entity-name {broker} --delete-config cordoned.log.dirs"
        )
    return "end the exclusion when it is back in service"


def _above(
    members: ClusterMembers,
    held: Int64s,
    even: Int64s,
    verb: str,
    load: Callable[[int], str],
    expected: Callable[[int], str],
) -> str | None:
    """The broker farthest above its even share, and both loads in words; None where no broker is above it."""
    over = (held > even * TOLERANCE + 1) & ~members.excluded
    if not over.any():
        return None
    worst = int(np.argmax(np.where(over, held - even, -1)))
    broker = members.rack_map.broker_ids[worst]
    return f"broker {broker} {verb} {load(int(held[worst]))}, {expected(int(even[worst]))}{_others(over)}"


def _others(over: Bools) -> str:
    others = int(np.count_nonzero(over)) - 1
    return f"; likewise {count_noun(others, 'other broker')}" if others else ""
