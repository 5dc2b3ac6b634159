"""Advice from an audit: a piece for each constraint and remedy, in the order in which to repair, with what a plan would copy."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rackspan.advice.advice import Advice, Concern
from rackspan.advice.of_topics import NOTHING_COPIED, only_topics, replicas_copied
from rackspan.audit import Finding, RackPolicy
from rackspan.audit.findings import PlanCommand, Severity, in_order
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot
from rackspan.reassign import (
    ReassignmentPlan,
    ReassignmentRequest,
    bytes_copied,
    plan,
    snapshot_after,
    snapshot_rows,
)
from rackspan.text import count_noun

PLANNED_MAX: Final = 100
"""A plan takes milliseconds for a topic and seconds for a large cluster; thousands of topics may be at risk together."""

SINGLY_MAX: Final = 1_000_000
"""Plans by partitions of the cluster: each plan reads the loads of all of them, a million in some seconds."""

NOT_PLANNED: Final = "the command prints what it would move, and moves nothing without rackspan reassign apply --apply"


def risks(snapshot: ClusterSnapshot, policy: RackPolicy, findings: Sequence[Finding]) -> Iterator[Advice]:
    """`findings` of an audit of the snapshot. Those of one constraint with one remedy are one piece of advice."""
    together: dict[tuple[Severity, str, str], list[Finding]] = {}
    for finding in in_order(findings):
        together.setdefault((finding.severity, finding.constraint, finding.remedy), []).append(finding)
    commands = [same[0].plan for same in together.values()]
    costs = _costs(snapshot, policy, filter(None, commands[:PLANNED_MAX]))
    for place, ((severity, constraint, remedy), same) in enumerate(together.items()):
        topics, command = {finding.topic for finding in same}, commands[place]
        yield Advice(
            Concern.RISK if severity is Severity.VIOLATION else Concern.WARNING,
            constraint,
            _reason(same),
            remedy,
            "" if command is None else costs.get(command, NOT_PLANNED),
            "" if command is None else "rackspan reassign undo, with the journal of the run",
            topic=same[0].topic if len(topics) == 1 else None,
            place=place,
        )


def repaired(snapshot: ClusterSnapshot, policy: RackPolicy, findings: Iterable[Finding]) -> ClusterSnapshot:
    """The cluster once the plans of `risks`, the first hundred, are carried out in their order, each as far as it can be made.

    If that takes too long, those that differ in their topics only are made as one: replicas may end on other brokers then.
    """
    commands = [*dict.fromkeys(finding.plan for finding in in_order(findings) if finding.plan is not None)][
        :PLANNED_MAX
    ]
    singly = len(commands) * len(snapshot.partitions) <= SINGLY_MAX
    together = [(each, [each.topic]) for each in commands] if singly else _by_options(commands).items()
    for options, topics in together:
        names = None if None in topics else "|".join(re.escape(str(topic)) for topic in topics)
        planned = _planned(snapshot, policy, options, names)
        if planned is not None and len(planned):
            snapshot = snapshot_after(snapshot, planned)
    return snapshot


def _by_options(commands: Iterable[PlanCommand]) -> dict[PlanCommand, list[str | None]]:
    """The topics of the commands that differ in these only."""
    together: dict[PlanCommand, list[str | None]] = {}
    for command in commands:
        together.setdefault(replace(command, topic=None), []).append(command.topic)
    return together


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


def _costs(snapshot: ClusterSnapshot, policy: RackPolicy, commands: Iterable[PlanCommand]) -> dict[PlanCommand, str]:
    """What each plan copies, without those that the planner refuses in part.

    Plans that differ in their topics only are made as one: other topics change where replicas go, and not how many.
    """
    commands = [*commands]
    costs = {command: NOTHING_COPIED for command in commands if command.leaders}
    for options, topics in _by_options(command for command in commands if not command.leaders).items():
        of = snapshot if None in topics else only_topics(snapshot, {topic for topic in topics if topic is not None})
        planned = _planned(of, policy, options)
        if planned is not None:
            costs |= {replace(options, topic=topic): cost for topic, cost in _by_topic(of, planned, topics)}
    return costs


def _by_topic(
    snapshot: ClusterSnapshot, planned: ReassignmentPlan, topics: Iterable[str | None]
) -> Iterator[tuple[str | None, str]]:
    """What a plan copies of each of these topics, None for all of it, if it refuses nothing of it. One that changes nothing has no cost."""
    refused: set[str | None] = {topic for conflict in planned.infeasible for topic in conflict.topics}
    if refused or not len(planned):
        refused.add(None)
    columns = planned.columns()
    additions, sizes = columns.additions, snapshot.partitions.size_bytes[snapshot_rows(snapshot, columns)]
    code_of = {str(topic.name): code for code, topic in enumerate(snapshot.topics)}
    for topic in topics:
        if topic not in refused:
            rows = slice(None) if topic is None else columns.topic == code_of[topic]
            moved = additions[rows]
            yield topic, replicas_copied(int(moved.sum()), *bytes_copied(moved, sizes[rows]))


def _planned(
    snapshot: ClusterSnapshot, policy: RackPolicy, command: PlanCommand, topics: str | None = None
) -> ReassignmentPlan | None:
    """None where the planner refuses all of it. `topics`: a regular expression, in place of the command's."""
    request = ReassignmentRequest(
        topics=topics,
        leaders=command.leaders,
        drain=frozenset(command.drain),
        replication_factor=command.replication_factor,
        balance=command.balance,
    )
    try:
        return plan(snapshot, policy, request)
    except UsageError:
        return None
