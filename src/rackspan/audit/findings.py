"""A finding: which constraint is broken, where, why, and what repairs it: words for an operator, or a plan with what has to be planned."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar, cast


@dataclass(frozen=True, slots=True)
class PlanCommand:
    """`rackspan reassign plan` with the options that a remedy needs. `topic` is a name; None is for all topics."""

    topic: str | None = None
    replication_factor: int | None = None
    drain: tuple[int, ...] = ()
    balance: bool = False
    leaders: bool = False

    def __str__(self) -> str:
        words = [
            "rackspan reassign plan",
            "--leaders" if self.leaders else "",
            "--balance" if self.balance else "",
            f"--drain {','.join(map(str, self.drain))}" if self.drain else "",
            f"--topic {self.topic}" if self.topic else "",
            f"--replication-factor {self.replication_factor}" if self.replication_factor else "",
        ]
        return " ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class PlanRemedy:
    """A plan that nothing has to be done before, and another way out, if there is one."""

    plan: PlanCommand
    otherwise: str = ""

    def __str__(self) -> str:
        return f"{self.plan}, or {self.otherwise}" if self.otherwise else str(self.plan)


Remedy: TypeAlias = str | PlanRemedy


BOOTSTRAP_SERVER: Final = "--bootstrap-server HOST:PORT"
"""The option of Kafka's tools in remedies, which are made without the address of the cluster."""

UNREGISTER: Final = f"kafka-cluster.sh unregister {BOOTSTRAP_SERVER}"
"""Removes the registration of a broker (KRaft). Kafka refuses none: a broker that holds replicas would leave them behind."""

DocumentT = TypeVar("DocumentT")


_KAFKA_TOOL: Final = re.compile(rf"((kafka-[a-z-]+[.]sh)(?: unregister)?) {BOOTSTRAP_SERVER}")

_CLIENT_PROPERTIES: Final = {"kafka-leader-election.sh": "--admin.config", "kafka-cluster.sh": "--config"}
"""The option of Kafka's tools that have another than --command-config, which they lack up to Kafka 4.1 (KIP-1147)."""


def at_address(document: DocumentT, address: str | None, command_config: str | None = None) -> DocumentT:
    """The same text or document, with the address in the place of HOST:PORT in commands of Kafka's tools; None: not known.

    `command_config`: the client properties with which the address was read. The tools need them too.
    """
    if address is None:
        return document

    def command(found: re.Match[str]) -> str:
        words = [found[1], "--bootstrap-server", address]
        if command_config is not None:
            words += [_CLIENT_PROPERTIES.get(found[2], "--command-config"), shlex.quote(command_config)]
        return " ".join(words)

    def addressed(value: Any) -> Any:
        match value:
            case str():
                return _KAFKA_TOOL.sub(command, value)
            case dict():
                return {key: addressed(held) for key, held in value.items()}
            case list():
                return [addressed(held) for held in value]
            case _:
                return value

    return cast("DocumentT", addressed(document))


def or_else(remedy: Remedy, otherwise: str) -> Remedy:
    """The remedy with another way out."""
    return replace(remedy, otherwise=otherwise) if isinstance(remedy, PlanRemedy) else f"{remedy}, or {otherwise}"


def plan_of(remedy: Remedy) -> PlanCommand | None:
    """None if the remedy does not begin with a plan."""
    return remedy.plan if isinstance(remedy, PlanRemedy) else None


class Severity(StrEnum):
    VIOLATION = "violation"
    """A constraint is broken: something must be done."""
    WARNING = "warning"
    """A goal is missed, or a constraint could not be judged: an operator should look."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken constraint or missed goal. `topic` and `partition` are None where the whole cluster is meant.

    `plan`: what `remedy` begins with, if it begins with a plan.
    """

    constraint: str
    severity: Severity
    reason: str
    remedy: str
    topic: str | None = None
    partition: int | None = None
    plan: PlanCommand | None = None


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


_RANKS: Final = {constraint: rank for rank, constraint in enumerate(REPAIR_ORDER)}


def repair_rank(constraint: str) -> tuple[int, str]:
    """The key by which constraints are ordered: in the order of repair, then by name."""
    return _RANKS.get(constraint, len(_RANKS)), constraint


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Violations first, then in the order of repair, by topic, partition and reason: the same list on every machine."""
    return sorted(
        findings,
        key=lambda finding: (
            finding.severity is Severity.WARNING,
            repair_rank(finding.constraint),
            finding.topic or "",
            -1 if finding.partition is None else finding.partition,
            finding.reason,
        ),
    )
