"""A finding: which constraint is broken, where, why, and what repairs it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    VIOLATION = "violation"
    """A constraint is broken: something must be done."""
    WARNING = "warning"
    """A goal is missed, or a constraint could not be judged: an operator should look."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken constraint or missed goal. `topic` and `partition` are None where the whole cluster is meant."""

    constraint: str
    severity: Severity
    topic: str | None
    partition: int | None
    reason: str
    remedy: str


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Violations first, then by constraint, topic, partition and reason: the same list on every machine."""
    return sorted(
        findings,
        key=lambda one: (
            one.severity is Severity.WARNING,
            one.constraint,
            one.topic or "",
            -1 if one.partition is None else one.partition,
            one.reason,
        ),
    )
