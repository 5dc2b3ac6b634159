"""Advice from an audit: a piece for each constraint and remedy, in the order in which to repair."""

from collections.abc import Iterator, Sequence

from rackspan.advice.advice import Advice, Concern
from rackspan.audit import Finding
from rackspan.audit.findings import Severity, in_order
from rackspan.text import count_noun

_PLANS = "rackspan reassign plan"


def risks(findings: Sequence[Finding]) -> Iterator[Advice]:
    """`findings` of one audit. Findings of one constraint with one remedy are one piece of advice."""
    together: dict[tuple[Severity, str, str], list[Finding]] = {}
    for finding in in_order(findings):
        together.setdefault((finding.severity, finding.constraint, finding.remedy), []).append(finding)
    for place, ((severity, constraint, remedy), same) in enumerate(together.items()):
        topics = {finding.topic for finding in same}
        yield Advice(
            Concern.RISK if severity is Severity.VIOLATION else Concern.WARNING,
            constraint,
            _reason(same),
            remedy,
            _cost(remedy),
            "rackspan reassign undo, with the journal of the run" if remedy.startswith(_PLANS) else "",
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


def _cost(remedy: str) -> str:
    if remedy.startswith(_PLANS):
        return "the command prints what it would move, and moves nothing without rackspan reassign apply --apply"
    return ""
