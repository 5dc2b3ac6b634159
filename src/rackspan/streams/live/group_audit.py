"""The audit of a running group: what it reads across racks now, and what it would read under each of Kafka's strategies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, TypeAlias, TypedDict

import numpy as np
from msgspec import Meta

from rackspan.documents import Count
from rackspan.streams.assignment import CertificateDocument, CrossRackDocument, TaskCosts, assignment_document
from rackspan.streams.assignors.high_availability import high_availability
from rackspan.streams.costs import cross_rack
from rackspan.streams.formats import from_document
from rackspan.streams.live.capture import CapturedGroup
from rackspan.streams.live.streams_group import StreamsGroup
from rackspan.streams.problem import ALL_CAUGHT_UP, Int64s, PartitionLists, Problem, ProcessId, Strategy, TaskId
from rackspan.streams.rack_awareness import (
    RackAwareness,
    changelogs_known,
    client_rack_reason,
    judge_rack_awareness,
    source_reason,
)
from rackspan.streams.task_assignment import AssignorOutput, TaskAssignment, moved_tasks, running_assignment

AT_BEST: Final = Strategy.MIN_TRAFFIC
"""The strategy of least traffic, with which the others are compared."""


class StreamsClient(TypedDict):
    client: str
    process_id: str
    rack: str | None
    threads: Count
    active: Count
    standby: Count
    cross_rack: CrossRackDocument


class TasksByState(TypedDict):
    stateful: Count
    stateless: Count


class PartitionsByRole(TypedDict):
    active: Count
    standby: Count


class RunningCost(TypedDict):
    cross_rack: CrossRackDocument
    cross_rack_tasks: Annotated[
        Count | None,
        Meta(description="Active tasks with a source partition that has no replica in the rack of their client."),
    ]
    cost: TaskCosts


class MovedByRole(TypedDict):
    active: Count | None
    standby: Count | None


class StrategyDocument(RunningCost):
    enabled: bool
    reason: str | None
    certificate: CertificateDocument
    moved: MovedByRole


_EVERY_STRATEGY: Final = {"required": list(Strategy), "propertyNames": {"enum": list(Strategy)}}


class StreamsAuditDocument(TypedDict):
    """A running Kafka Streams group, priced. null: unknown, for a reason in `unknown`."""

    group: str
    clients: list[StreamsClient]
    tasks: TasksByState
    num_standbys: Count
    partitions: PartitionsByRole
    now: RunningCost
    at_best: CrossRackDocument
    strategies: Annotated[dict[Strategy, StrategyDocument], Meta(extra_json_schema=_EVERY_STRATEGY)]
    unknown: list[str]


ActiveTasks: TypeAlias = Mapping[TaskId, ProcessId]
"""The process of each active task."""


def audit_group(group: StreamsGroup, captured: CapturedGroup) -> StreamsAuditDocument:
    """The costs of a group as it runs, and as HighAvailabilityTaskAssignor would assign it under each strategy.

    `cross_rack` counts partitions read by a client in whose rack they have no replica: sources for active tasks, changelogs
    for standbys. Whether brokers let clients read from followers does not count, as in KIP-925, whose cost is of partitions with
    "no replica in same rack". It is null where that is not known, with the reason in `unknown`. The assignment of a strategy is the
    lasting one, after all warm-ups. Errors: InvalidProblem, UsageError.
    """
    return audit_with_tasks(group, captured)[0]


def audit_with_tasks(
    group: StreamsGroup, captured: CapturedGroup
) -> tuple[StreamsAuditDocument, Mapping[Strategy, ActiveTasks]]:
    """The audit, and the active tasks that each strategy assigns. Errors: as audit_group."""
    problem = from_document(captured.document)
    reason = client_rack_reason(problem.clients) or source_reason(problem)
    now = running_assignment(problem)
    crossings = _Crossings.of(problem)
    outputs = {strategy: _assigned(_configured(problem, strategy)) for strategy in Strategy}
    strategies = {strategy: _under(problem, output, now, crossings) for strategy, output in outputs.items()}
    document: StreamsAuditDocument = {
        "group": group.group_id,
        "clients": [_client(group, problem, crossings, index) for index in range(len(problem.clients))],
        "tasks": {"stateful": len(problem.stateful), "stateless": len(problem.stateless)},
        "num_standbys": problem.configs.num_standbys,
        "partitions": {"active": len(problem.tasks.source.partition), "standby": _read_by_standbys(problem, now)},
        "now": _now(problem, now, crossings),
        "at_best": strategies[AT_BEST]["cross_rack"],
        "strategies": strategies,
        "unknown": [*([f"active tasks have no price: {reason}"] if reason else []), *captured.unknown],
    }
    return document, {strategy: output.active for strategy, output in outputs.items()}


def active_at_best(captured: CapturedGroup) -> ActiveTasks | None:
    """The active tasks under the strategy of least traffic; None if a rack or a partition is not known.

    Errors: InvalidProblem, UsageError.
    """
    assigned = _assigned(_configured(from_document(captured.document), AT_BEST))
    return assigned.active if assigned.awareness.enabled else None


def could_read_less(audit: StreamsAuditDocument) -> bool:
    """Whether active tasks read more partitions across racks than under the best strategy.

    Standbys do not count: Kafka exchanges them between pairs of clients, from a start that depends on ties among active
    tasks, so a group that has settled under min_traffic may differ there from this audit.
    """
    now, best = audit["now"]["cross_rack"]["active"], audit["at_best"]["active"]
    return now is not None and best is not None and bool(now > best)


def _now(problem: Problem, now: TaskAssignment, crossings: "_Crossings") -> RunningCost:
    running = assignment_document(problem, RackAwareness("as it runs"), AssignorOutput(now), 0.0)
    return {
        "cross_rack": crossings.known(running["cross_rack"]),
        "cross_rack_tasks": crossings.tasks(problem, now),
        "cost": running["cost"],
    }


@dataclass(frozen=True, slots=True)
class _Assigned:
    """What Kafka's assignor makes of a problem with a strategy."""

    problem: Problem
    awareness: RackAwareness
    output: AssignorOutput

    @property
    def active(self) -> ActiveTasks:
        return {
            self.problem.tasks.ids[task]: client.process_id
            for client, held in zip(self.problem.clients, self.output.assignment.active, strict=True)
            for task in held
        }


def _assigned(configured: Problem) -> _Assigned:
    awareness = judge_rack_awareness(configured)
    return _Assigned(configured, awareness, high_availability(configured, awareness))


def _under(problem: Problem, assigned_by: _Assigned, now: TaskAssignment, crossings: "_Crossings") -> StrategyDocument:
    awareness, output = assigned_by.awareness, assigned_by.output
    assigned = assignment_document(assigned_by.problem, awareness, output, 0.0)
    return {
        "enabled": awareness.enabled,
        "reason": awareness.reason,
        "cross_rack": crossings.known(assigned["cross_rack"]),
        "cross_rack_tasks": crossings.tasks(problem, output.assignment),
        "cost": assigned["cost"],
        "certificate": assigned["certificate"],
        "moved": {
            "active": moved_tasks(now.active, output.assignment.active),
            "standby": moved_tasks(now.standby, output.assignment.standby),
        },
    }


def _configured(problem: Problem, strategy: Strategy) -> Problem:
    return replace(problem, configs=replace(problem.configs, strategy=strategy, acceptable_recovery_lag=ALL_CAUGHT_UP))


def _read_by_standbys(problem: Problem, now: TaskAssignment) -> int:
    sizes = problem.tasks.changelog.sizes()
    return sum(int(sizes[list(held)].sum()) for held in now.standby)


def _has_unpriced_standbys(problem: Problem) -> bool:
    """Whether a client has a standby of a task whose changelogs are unknown."""
    held = sorted({task for client in problem.clients for task in client.prev_standby})
    return bool((problem.tasks.changelog.sizes()[held] == 0).any())


@dataclass(frozen=True, slots=True, eq=False)
class _Crossings:
    """The number of each task's partitions without a replica in each rack, (T, R); None where a role has no known cost."""

    active: Int64s | None
    standby: Int64s | None

    @classmethod
    def of(cls, problem: Problem) -> "_Crossings":
        def crossing(lists: PartitionLists) -> Int64s:
            return cross_rack(lists, problem.partitions)

        return cls(
            active=crossing(problem.tasks.source) if source_reason(problem) is None else None,
            standby=crossing(problem.tasks.changelog)
            if changelogs_known(problem) and not _has_unpriced_standbys(problem)
            else None,
        )

    def known(self, cross_rack: CrossRackDocument) -> CrossRackDocument:
        return {"active": cross_rack["active"], "standby": None if self.standby is None else cross_rack["standby"]}

    def tasks(self, problem: Problem, assignment: TaskAssignment) -> int | None:
        """The number of active tasks with a partition that crosses racks."""
        if self.active is None or (problem.client_rack < 0).any():
            return None
        tasks = len(problem.tasks)
        return int(np.count_nonzero(self.active[np.arange(tasks), problem.client_rack[assignment.owner(tasks)]]))


def _client(group: StreamsGroup, problem: Problem, crossings: _Crossings, index: int) -> StreamsClient:
    """One process with its own costs, which may be known where another client's are not."""
    client, rack = problem.clients[index], int(problem.client_rack[index])
    names = {process.process_id: process.name for process in group.processes}
    return {
        "client": names[client.process_id],
        "process_id": client.process_id,
        "rack": client.rack,
        "threads": client.threads,
        "active": len(client.prev_active),
        "standby": len(client.prev_standby),
        "cross_rack": {
            "active": _share(crossings.active, client.prev_active, rack),
            "standby": _share(crossings.standby, client.prev_standby, rack),
        },
    }


def _share(crossing: Int64s | None, held: frozenset[int], rack: int) -> int | None:
    if crossing is None or rack < 0:
        return None
    return int(crossing[sorted(held), rack].sum()) if held else 0
