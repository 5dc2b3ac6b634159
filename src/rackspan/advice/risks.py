"""Advice from an audit: a piece for each constraint and remedy, in the order in which to repair, with what a plan would copy."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from rackspan.advice.advice import Advice, Concern
from rackspan.advice.of_topics import copied, only_topic, plan_in_full
from rackspan.audit import Finding, RackPolicy
from rackspan.audit.findings import PlanCommand, Severity, in_order
from rackspan.model import ClusterSnapshot
from rackspan.reassign import ReassignmentRequest
from rackspan.text import count_noun

PLANNED_MAX: Final = 100
"""A plan takes milliseconds for a topic and seconds for a large cluster; thousands of topics may be at risk together."""

NOT_PLANNED: Final = "the command prints what it would move, and moves nothing without rackspan reassign apply --apply"


def risks(snapshot: ClusterSnapshot, policy: RackPolicy, findings: Sequence[Finding]) -> Iterator[Advice]:
    """`findings` of an audit of the snapshot. Those of one constraint with one remedy are one piece of advice."""
    cost = cache(lambda command: _cost(snapshot, policy, command))
    together: dict[tuple[Severity, str, str], list[Finding]] = {}
    for finding in in_order(findings):
        together.setdefault((finding.severity, finding.constraint, finding.remedy), []).append(finding)
    for place, ((severity, constraint, remedy), same) in enumerate(together.items()):
        topics, command = {finding.topic for finding in same}, same[0].plan
        yield Advice(
            Concern.RISK if severity is Severity.VIOLATION else Concern.WARNING,
            constraint,
            _reason(same),
            remedy,
            "" if command is None else cost(command) if place < PLANNED_MAX else NOT_PLANNED,
            "" if command is None else "rackspan reassign undo, with the journal of the run",
            topic=same[0].topic if len(topics) == 1 else None,
            place=place,
        )


def _reason(findings: Sequence[Finding]) -> str:
    first = findings[0]
    if len(findings) == 1 and first.partition is None:
        return first.reason
    partitions = sum(finding.partition is not None for finding in findings)
    if not partitions:
        return f"{len(findings)} times, such as: {first.reason}"
    topics = len({finding.topic for finding in findings})
    where = f"{first.topic}-{first.partition}"
    return f"{count_noun(partitions, 'partition', ',')} of {count_noun(topics, 'topic', ',')}, such as {where}: {first.reason}"


def _cost(snapshot: ClusterSnapshot, policy: RackPolicy, command: PlanCommand) -> str:
    """What a plan copies. The topic alone is enough to see that: loads of others change where to, and not what."""
    request = ReassignmentRequest(
        drain=frozenset(command.drain),
        replication_factor=command.replication_factor,
        balance=command.balance,
        leaders=command.leaders,
    )
    planned = plan_in_full(only_topic(snapshot, command.topic) if command.topic else snapshot, policy, request)
    return NOT_PLANNED if planned is None else copied(planned)
