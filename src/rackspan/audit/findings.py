"""A finding: which constraint is broken, where, why, and what repairs it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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
    reason: str
    remedy: str
    topic: str | None = None
    partition: int | None = None


REPAIR_ORDER: Final = (
    "offline",
    "under-min-isr",
    "under-min-racks",
    "unknown-broker",
    "unracked-broker",
    "rack-names-alike",
    "controller-quorum-spread",
    "min-insync-racks-satisfiable",
    "survives-rack-loss",
    "accepts-writes-after-rack-loss",
    "survives-broker-loss",
    "accepts-writes-after-broker-loss",
    "rack-spread",
    "min-insync-replicas-forces-racks",
)
"""Constraints in the order in which to repair them: replicas move before configs are set for where they are."""


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Violations first, then in the order of repair, by topic, partition and reason: the same list on every machine."""
    rank = {constraint: place for place, constraint in enumerate(REPAIR_ORDER)}
    return sorted(
        findings,
        key=lambda finding: (
            finding.severity is Severity.WARNING,
            rank.get(finding.constraint, len(rank)),
            finding.constraint,
            finding.topic or "",
            -1 if finding.partition is None else finding.partition,
            finding.reason,
        ),
    )
