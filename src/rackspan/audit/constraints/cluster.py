"""Constraints on brokers and controllers: no broker without a rack, none fenced, no rack with the controller quorum."""

import re
from collections.abc import Iterator, Sequence, Set
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers
from rackspan.audit.constraints.wording import down_list
from rackspan.audit.findings import UNREGISTER, Finding, PlanCommand, Severity
from rackspan.audit.loads import BrokerLoads
from rackspan.audit.policy import RackPolicy, Survive
from rackspan.audit.quorum import QuorumAfter, quorum_without
from rackspan.model import UNNAMED_RACK, Broker, ClusterSnapshot, UnrackedPolicy, shown
from rackspan.model.rack_names import ZONES, AlikeRacks
from rackspan.text import count_noun, noun_and_ids

ACCEPT_QUORUM: Final = 'or require less: survive = "{weaker}" in rackspan.toml'

RACK_NAMES_ALIKE: Final = "rack-names-alike"
WHERE_TO_CORRECT: Final = "rackspan audit says where to correct them"

COUNTED_AS: Final = {
    UnrackedPolicy.SHARED: "all such brokers count as one unnamed rack",
    UnrackedPolicy.OWN: "it counts as a rack of its own",
    UnrackedPolicy.IGNORE: "it counts in no rack",
}


def unracked_brokers(members: ClusterMembers) -> Iterator[Finding]:
    """Brokers without `broker.rack`: a violation where others have one, a warning where none has."""
    rackless = [broker for broker in members.brokers if broker.rack is None]
    policy = members.policy.unracked
    mixed = len(rackless) < len(members.brokers)
    for broker in rackless:
        yield Finding(
            constraint="unracked-broker",
            severity=Severity.VIOLATION if mixed and policy is not UnrackedPolicy.IGNORE else Severity.WARNING,
            reason=f"broker {broker.id} has no rack: {COUNTED_AS[policy]}",
            remedy=f"set broker.rack on broker {broker.id} and restart it",
        )


def partial_racks(brokers: Sequence[Broker], policy: UnrackedPolicy) -> Iterator[str]:
    """A warning for commands that place replicas by racks that only some brokers have (KIP-36)."""
    rackless = [broker.id for broker in brokers if broker.rack is None]
    if rackless and len(rackless) < len(brokers):
        yield (
            f"no rack is set on {noun_and_ids('broker', rackless)}, and others have one: they count by --unracked {policy}; "
            "set broker.rack and restart them first"
        )


def alike_racks(snapshot: ClusterSnapshot, policy: RackPolicy) -> Iterator[str]:
    """A warning for commands that count racks: what a finding of `rack_names_alike` says of them, or on whose word there is none."""
    members = ClusterMembers(snapshot.brokers, snapshot.controllers, policy)
    for group in members.racks_alike:
        yield f"{count_apart(group)}; {WHERE_TO_CORRECT}"
    yield from declared_different(members)


def count_apart(group: AlikeRacks) -> str:
    """`racks 'a', 'A' count as 2, and their names differ by case only`."""
    return f"{group}, and {group.difference}"


def declared_different(members: ClusterMembers) -> Iterator[str]:
    """On whose word racks whose names are alike are different."""
    for group in members.racks_declared_different:
        yield f"{group} on the word of {members.policy.different_racks_by}"


def rack_names_alike(members: ClusterMembers) -> Iterator[Finding]:
    """Racks whose names may be names of fewer racks: one rack that reads as several survives any loss."""
    for group in members.racks_alike:
        brokers = [int(broker.id) for broker in members.brokers if broker.rack in group.others]
        voters = [voter for voter, rack in members.voter_racks.items() if rack in group.others and voter not in brokers]
        name = f"{group.kept[0]!a}" if group.same else f"as the other racks are named, such as {group.kept[0]!a},"
        parts = [
            *(
                [
                    f"set broker.rack {'to ' if group.same else ''}{name} on {noun_and_ids('broker', brokers)} and restart"
                ]
                if brokers
                else []
            ),
            *([f"name the rack of {noun_and_ids('controller', voters)} {name} in rackspan.toml"] if voters else []),
        ]
        ways = ["; ".join(parts)]
        if group.difference == ZONES:
            ways.append("read all of them as ids or as names by --rack-locator-class availability-zones")
        different = sorted(members.policy.different_racks | set(group.names))
        ways.append(
            f"where they are different racks, write above all tables of rackspan.toml: racks.different = {_toml(different)}"
        )
        yield Finding(
            constraint=RACK_NAMES_ALIKE,
            severity=Severity.VIOLATION,
            reason=f"{count_apart(group)}: what survives the loss of one may not survive the loss of all",
            remedy=", or ".join(ways),
        )


def _toml(names: Sequence[str]) -> str:
    """An array of TOML that can be copied from a terminal: what is not ASCII is escaped."""
    escaped = (
        re.sub(r"[^ -~]", lambda found: f"\\U{ord(found[0]):08X}", re.sub(r'(["\\])', r"\\\1", name)) for name in names
    )
    return "[" + ", ".join(f'"{name}"' for name in escaped) + "]"


def controller_quorum_spread(members: ClusterMembers) -> Iterator[Finding]:
    """No loss that the quorum has to survive may leave it without a majority: of a rack, or of one voter."""
    of_rack, now = members.policy.requires(Survive.RACK), quorum_without(members, set())
    if now is None:
        if members.policy.require_controllers:
            yield _quorum_violation(
                "no controller is in the snapshot, and the policy requires them: whether a majority is left after a loss is not known",
                "take the snapshot again as a user who may DESCRIBE the cluster, or leave out require-controllers",
            )
        return
    if not now.holds:
        are = f"{noun_and_ids('controller', now.dead)} {_are(now.dead)} down"
        yield _quorum_violation(
            f"{are}, {now.surviving} of {count_noun(now.voters, 'voter')} left is no majority: no leader is elected and no ISR changes",
            _bring_back(now),
        )
        return
    one_less_fails = 2 * (now.surviving - 1) <= now.voters
    if members.policy.requires(Survive.BROKER) and one_less_fails:
        yield _quorum_violation(
            f"the quorum has {count_noun(now.voters, 'voter')}{_of_them_down(now)}: without one{' more' if now.dead else ''} "
            "of them no leader is elected and no ISR changes",
            f"{_bring_back(now)}, {ACCEPT_QUORUM.format(weaker='none')}"
            if now.dead
            else f"run three controllers, {ACCEPT_QUORUM.format(weaker='none')}",
        )
    for rack in members.failure_racks if of_rack else ():
        after = quorum_without(members, {rack})
        if after is not None and not after.holds:
            held = tuple(voter for voter, of in members.voter_racks.items() if of == rack)
            enough = 2 * (after.voters - len(held)) > after.voters
            which = f" ({','.join(map(str, held))})" if held else ""
            yield _quorum_violation(
                f"rack {shown(rack)} holds {len(held)} of {count_noun(after.voters, 'voter')}{which}"
                f"{_of_them_down(after)}: without it no leader is elected and no ISR changes",
                f"{_bring_back(after) if enough else _spread(after.voters)}, "
                f"{ACCEPT_QUORUM.format(weaker='none' if one_less_fails else 'broker')}",
            )
    if of_rack:
        yield from _unknown_racks(members, now)


def _unknown_racks(members: ClusterMembers, now: QuorumAfter) -> Iterator[Finding]:
    """Voters without a known rack, where it would decide, or where all brokers run on one machine."""
    unknown = now.unknown_rack
    after_each = [quorum_without(members, {rack}) for rack in members.failure_racks] or [quorum_without(members, set())]
    decide = any(outcome is not None and outcome.holds and not outcome.certain for outcome in after_each)
    if unknown and (decide or members.on_one_machine):
        ids, lines = ",".join(map(str, unknown)), ", ".join(f'{voter} = "RACK"' for voter in unknown)
        whose = "the rack of controller {} is" if len(unknown) == 1 else "the racks of controllers {} are"
        why = (
            "a rack may hold so many voters that its loss leaves no majority"
            if decide
            else "all brokers run on one host, so rack names mean nothing here"
        )
        yield Finding(
            constraint="controller-quorum-spread",
            severity=Severity.VIOLATION if decide else Severity.WARNING,
            reason=f"{whose.format(ids)} not known: {why}",
            remedy=f"name them in rackspan.toml, a line each under [controllers]: {lines}",
        )


def _quorum_violation(reason: str, remedy: str) -> Finding:
    return Finding("controller-quorum-spread", Severity.VIOLATION, reason, remedy)


def _spread(voters: int) -> str:
    """What leaves a majority without any one rack. Of one, two or four voters no three racks do."""
    of_three = -(-voters // 3)
    enough = 2 * (voters - of_three) > voters
    which = "spread the controllers" if enough else "run three or five controllers, spread"
    return f"{which} evenly over at least three racks"


def _of_them_down(quorum: QuorumAfter) -> str:
    return f", and {noun_and_ids('controller', quorum.dead)} {_are(quorum.dead)} down" if quorum.dead else ""


def _bring_back(quorum: QuorumAfter) -> str:
    return f"bring back {noun_and_ids('controller', quorum.dead)}"


def _are(ids: Sequence[int]) -> str:
    return "is" if len(ids) == 1 else "are"


def dead_controllers(members: ClusterMembers) -> Iterator[Finding]:
    """Voters that do not follow the quorum's leader. One in the process of a fenced broker is reported with that."""
    fenced = {int(broker.id) for broker in members.brokers if broker.fenced}
    now = quorum_without(members, set())
    # Without a majority the quorum cannot be changed.
    may_leave = now is not None and now.holds
    for voter in members.dead_voters - fenced:
        rack = members.voter_racks[voter]
        gone = f"; if controller {voter} is gone for good: take it out of the quorum" if may_leave else ""
        where = f" (rack {shown(rack)})" if rack else ""
        yield Finding(
            constraint="dead-controller",
            severity=Severity.WARNING,
            reason=f"controller {voter}{where} is down or far behind the quorum's leader: it counts as lost already",
            remedy=f"bring back {down_list(members, [voter], 'controller')}{gone}",
        )


def fenced_brokers(members: ClusterMembers, without_replicas: Set[int]) -> Iterator[Finding]:
    """Brokers that are registered and fenced: stopped, or not started yet. They neither lead nor follow.

    Kafka keeps a registration until it is removed, also of a broker that was scaled away, or whose process is only a controller now.
    """
    for broker in members.brokers:
        if broker.fenced:
            empty = broker.id in without_replicas
            stale = "; it holds no replica, so that it may be a registration that was left behind" if empty else ""
            unregister = f"; if it is no broker any more: {UNREGISTER} --id {broker.id}" if empty else ""
            yield Finding(
                constraint="fenced-broker",
                severity=Severity.WARNING,
                reason=f"broker {broker.id} (rack {shown(broker.rack or UNNAMED_RACK)}) is fenced: it neither leads nor follows any partition{stale}",
                remedy=f"bring back {down_list(members, [broker.id])}{unregister}",
            )


def failed_log_dirs(members: ClusterMembers, loads: BrokerLoads, *, every_topic: bool) -> Iterator[Finding]:
    """Brokers that are up and have a log directory that has failed: no replica in it gets in sync before that is repaired.

    `every_topic`: the loads have all topics, so that it is known whether the directory has the last copy of anything.
    """
    widest = len(loads.by_replication_factor) - 1
    index_of = {broker: index for index, broker in enumerate(members.rack_map.broker_ids.tolist())}
    for broker in members.brokers:
        index = index_of[int(broker.id)]
        held, last = int(loads.failed[index]), int(loads.failed_last[index])
        if broker.fenced or not (broker.failed_log_dirs or held):
            continue
        remedy = _repair(int(broker.id), last, every_topic=every_topic)
        # Replicas whose placement is left alone may have nowhere to go.
        held_movable = 0 < loads.replicas[index] == loads.movable[index]
        if held_movable and not last and members.spread_without((int(broker.id),), widest):
            remedy += f", or {PlanCommand(drain=(int(broker.id),))}"
        yield Finding(
            constraint="failed-log-dir",
            severity=Severity.WARNING,
            reason=f"{_failed_of(broker)}, and the broker is up: {_not_served(held)}",
            remedy=remedy,
        )


def _not_served(held: int) -> str:
    if not held:
        return "no replica is in it"
    return f"{count_noun(held, 'replica', ',')} there {'is' if held == 1 else 'are'} not served"


def _repair(broker: int, last: int, *, every_topic: bool) -> str:
    if not last:
        return f"repair {'or replace ' if every_topic else ''}its disk and restart broker {broker}"
    has, theirs = ("1 partition has", "its records") if last == 1 else (f"{last:,} partitions have", "their records")
    return f"repair its disk with what is on it, and restart broker {broker}: {has} no other copy in sync, and an empty disk loses {theirs}"


def _failed_of(broker: Broker) -> str:
    """`log directory /data/b of broker 2 (rack r2) has failed`; the directory only if it is known."""
    where = f"broker {broker.id} (rack {shown(broker.rack or UNNAMED_RACK)})"
    paths = broker.failed_log_dirs
    if not paths:
        return f"a log directory of {where} has failed"
    return f"log {'directory' if len(paths) == 1 else 'directories'} {', '.join(paths)} of {where} {'has' if len(paths) == 1 else 'have'} failed"


def failed_log_dir_lines(snapshot: ClusterSnapshot) -> Iterator[str]:
    """A warning for commands that judge, place or stop replicas: what a finding of `failed_log_dirs` says of brokers."""
    holding = {*np.unique(snapshot.partitions.offline_replicas).tolist()}
    for broker in snapshot.brokers:
        if not broker.fenced and (broker.failed_log_dirs or int(broker.id) in holding):
            yield f"{_failed_of(broker)}, and the broker is up: no replica there gets in sync; rackspan audit says what to do"


CLUSTER_CONSTRAINTS = (unracked_brokers, rack_names_alike, controller_quorum_spread, dead_controllers)


def cluster_findings(members: ClusterMembers, without_replicas: Set[int] = frozenset()) -> Iterator[Finding]:
    """The findings of every constraint on brokers and controllers. `without_replicas`: brokers that are known to hold nothing."""
    yield from (finding for constraint in CLUSTER_CONSTRAINTS for finding in constraint(members))
    yield from fenced_brokers(members, without_replicas)
