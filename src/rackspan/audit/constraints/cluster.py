"""Constraints on brokers and controllers: no broker without a rack, none fenced, no rack with the controller quorum."""

from collections.abc import Iterator
from typing import Final

from rackspan.audit.batch import ClusterMembers
from rackspan.audit.findings import Finding, Severity
from rackspan.audit.policy import Survive
from rackspan.audit.quorum import quorum_without
from rackspan.model import UNNAMED_RACK, UnrackedPolicy, shown
from rackspan.text import count_noun

ACCEPT_QUORUM: Final = 'or require less: survive = "{weaker}" in rackspan.toml'

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
            topic=None,
            partition=None,
            reason=f"broker {broker.id} has no rack: {COUNTED_AS[policy]}",
            remedy=f"set broker.rack on broker {broker.id} and restart it",
        )


def controller_quorum_spread(members: ClusterMembers) -> Iterator[Finding]:
    """No loss that the quorum has to survive may leave it without a majority: of a rack, or of one voter."""
    of_rack, voters = members.policy.requires(Survive.RACK), len(members.voter_racks)
    if members.policy.requires(Survive.BROKER) and 0 < voters < 3:
        yield Finding(
            constraint="controller-quorum-spread",
            severity=Severity.VIOLATION,
            topic=None,
            partition=None,
            reason=f"the quorum has {count_noun(voters, 'voter')}: without one of them no leader is elected and no ISR changes",
            remedy=f"run three controllers, {ACCEPT_QUORUM.format(weaker='none')}",
        )
    for rack in members.failure_racks if of_rack else ():
        after = quorum_without(members, {rack})
        if after is not None and not after.holds:
            yield Finding(
                constraint="controller-quorum-spread",
                severity=Severity.VIOLATION,
                topic=None,
                partition=None,
                reason=(
                    f"rack {shown(rack)} holds {len(after.lost)} of {count_noun(after.voters, 'voter')} "
                    f"({','.join(map(str, after.lost))}): without it no leader is elected and no ISR changes"
                ),
                remedy=f"spread the controllers over at least three racks, {ACCEPT_QUORUM.format(weaker='broker')}",
            )
    unknown = [voter for voter, rack in members.voter_racks.items() if rack is None]
    after_each = [quorum_without(members, {rack}) for rack in members.failure_racks] or [quorum_without(members, set())]
    decide = any(one is not None and one.holds and not one.certain for one in after_each)
    if unknown and of_rack and (decide or members.on_one_machine):
        ids, lines = ",".join(map(str, unknown)), ", ".join(f'{voter} = "RACK"' for voter in unknown)
        whose = "the rack of controller {} is" if len(unknown) == 1 else "the racks of controllers {} are"
        why = (
            "a rack may hold so many voters that its loss leaves no majority"
            if decide
            else "one machine runs all brokers, so that racks are names only"
        )
        yield Finding(
            constraint="controller-quorum-spread",
            severity=Severity.VIOLATION if decide else Severity.WARNING,
            topic=None,
            partition=None,
            reason=f"{whose.format(ids)} not known: {why}",
            remedy=f"name them in rackspan.toml, a line each under [controllers]: {lines}",
        )


def fenced_brokers(members: ClusterMembers) -> Iterator[Finding]:
    """Brokers that are registered and fenced: stopped, or not started yet. They neither lead nor follow."""
    for broker in members.brokers:
        if broker.fenced:
            yield Finding(
                constraint="fenced-broker",
                severity=Severity.WARNING,
                topic=None,
                partition=None,
                reason=f"broker {broker.id} (rack {shown(broker.rack or UNNAMED_RACK)}) is fenced: it neither leads nor follows any partition",
                remedy=f"bring back broker {broker.id}",
            )


CLUSTER_CONSTRAINTS = (unracked_brokers, controller_quorum_spread, fenced_brokers)


def cluster_findings(members: ClusterMembers) -> Iterator[Finding]:
    """The findings of every constraint on brokers and controllers."""
    return (finding for constraint in CLUSTER_CONSTRAINTS for finding in constraint(members))
