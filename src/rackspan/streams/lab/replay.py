"""A group under every combination of assignor, strategy and weights, each rebalanced until it settles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, TypedDict

import numpy as np
from msgspec import Meta

from rackspan.documents import Amount, Count
from rackspan.errors import UsageError
from rackspan.streams.assignment import CrossRackDocument, assignment_document
from rackspan.streams.assignors import ASSIGNORS, assignor_named
from rackspan.streams.formats import from_document
from rackspan.streams.problem import (
    HIGH_AVAILABILITY_COSTS,
    KAFKA,
    STICKY_COSTS,
    Costs,
    Options,
    Problem,
    Strategy,
    strategy_named,
)
from rackspan.streams.rack_awareness import judge_rack_awareness, rack_warnings, tag_warnings
from rackspan.streams.task_assignment import AssignorOutput, TaskAssignment, moved_tasks, running_assignment
from rackspan.text import count_noun


@dataclass(frozen=True, slots=True)
class SettledGroup:
    """A group after its last rebalance. `rounds` counts the rebalances that moved a task or requested another rebalance.

    `converged` is False if the group still changed in the last round allowed.
    """

    problem: Problem
    output: AssignorOutput
    rounds: int
    converged: bool


def settle(problem: Problem, assignor: str, options: Options = KAFKA, most_rounds: int = 1_000) -> SettledGroup:
    """Repeat the rebalance of a group until nothing changes. Every client is caught up between two rounds.

    Constraint: the assignment of one round is the previous and the initial assignment of the next, without lags.
    Bound: HighAvailabilityTaskAssignor's lasting assignment depends on the group alone and each round warms up at least one
    task, so it settles after the number of tasks to move, divided by max.warmup.replicas, plus one round.
    Proven by tests/streams/lab/test_rebalances.py and tests/streams/assignors/test_high_availability.py.
    """
    current, rounds = problem, 0
    output = _rebalance(current, assignor, options)
    while not _is_settled(current, output) and rounds < most_rounds:
        current, rounds = after(current, output.assignment), rounds + 1
        output = _rebalance(current, assignor, options)
    return SettledGroup(current, output, rounds, converged=_is_settled(current, output))


def after(problem: Problem, assignment: TaskAssignment) -> Problem:
    """The problem of the next rebalance: clients are at the end of their active tasks and caught up on their standbys."""
    clients = tuple(
        replace(client, prev_active=active, prev_standby=standby, lags={})
        for client, active, standby in zip(problem.clients, assignment.active, assignment.standby, strict=True)
    )
    stateful = frozenset(problem.stateful.tolist())
    # Warm-ups are standbys too. With num_standbys 0 the assignor `optimize` takes no initial standbys.
    standby = tuple(held & stateful for held in assignment.standby) if problem.configs.num_standbys else None
    return replace(
        problem, clients=clients, initial_active=assignment.owner(len(problem.tasks)), initial_standby=standby
    )


def _rebalance(problem: Problem, assignor: str, options: Options) -> AssignorOutput:
    return ASSIGNORS[assignor](problem, judge_rack_awareness(problem), options)


def _is_settled(problem: Problem, output: AssignorOutput) -> bool:
    return not output.probing_rebalance and running_assignment(problem) == output.assignment


DEFAULT_ASSIGNORS = ("high-availability", "sticky")


class MovedTasks(TypedDict):
    at_once: Count
    in_all: Count


class TasksPerThread(TypedDict):
    least: Amount
    most: Amount


class BalanceOfTasks(TypedDict):
    tasks_per_thread: TasksPerThread
    subtopology_gap: Count


class LabRun(TypedDict):
    assignor: Annotated[str, Meta(extra_json_schema={"enum": sorted(ASSIGNORS)})]
    strategy: Strategy
    traffic_cost: Count
    non_overlap_cost: Count
    enabled: bool
    reason: str | None
    cross_rack: CrossRackDocument
    cost: Count | None
    moved: MovedTasks
    balance: BalanceOfTasks
    rounds: Count
    converged: bool


class LabProblem(TypedDict):
    problem: str
    tasks: Count
    clients: Count
    racks: Count
    warnings: list[str]
    runs: list[LabRun]


class LabDocument(TypedDict):
    """Runs of assignors, strategies and weights over problem files."""

    problems: list[LabProblem]


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of assignor, strategy and costs. `costs` None: the assignor's defaults."""

    assignor: str
    strategy: Strategy
    costs: Costs | None = None

    @property
    def weights(self) -> Costs:
        return self.costs or (STICKY_COSTS if self.assignor == "sticky" else HIGH_AVAILABILITY_COSTS)


def settings(assignors: Sequence[str], strategies: Sequence[str], weights: Sequence[str]) -> list[Setting]:
    """All combinations, each once: strategy none has no costs. Errors: UsageError for an unknown name or a wrong weight."""
    for name in assignors:
        assignor_named(name)
    named = [strategy_named(name) for name in strategies] or list(Strategy)
    costs: list[Costs | None] = [_costs(text) for text in weights] or [None]
    combined = product(assignors or DEFAULT_ASSIGNORS, named, costs)
    all_settings = (
        Setting(assignor, strategy, None if strategy is Strategy.NONE else cost)
        for assignor, strategy, cost in combined
    )
    return list(dict.fromkeys(all_settings))


def _costs(text: str) -> Costs:
    """Parse TRAFFIC/OVERLAP, such as 10/1. Errors: UsageError."""
    traffic, slash, overlap = text.partition("/")
    if not (slash and traffic.isdecimal() and overlap.isdecimal() and len(text) <= 21):
        raise UsageError(f"weights {text!r}: they are written TRAFFIC/NON-OVERLAP, such as 10/1; correct them")
    return Costs(int(traffic), int(overlap))


def replay(documents: Mapping[str, object], chosen: Sequence[Setting], options: Options = KAFKA) -> LabDocument:
    """Replay each problem under each setting. `documents` maps names to problems. Errors: InvalidProblem, UsageError."""
    return {
        "problems": [_problem(name, from_document(document), chosen, options) for name, document in documents.items()]
    }


def heading(problem: LabProblem) -> str:
    """Its name and size."""
    counts = {"task": problem["tasks"], "client": problem["clients"], "rack": problem["racks"]}
    return f"{problem['problem']}: {', '.join(count_noun(count, noun) for noun, count in counts.items())}"


def _problem(name: str, problem: Problem, chosen: Sequence[Setting], options: Options) -> LabProblem:
    replayed = [_run(problem, setting, options) for setting in chosen]
    return {
        "problem": name,
        "tasks": len(problem.tasks),
        "clients": len(problem.clients),
        "racks": len(problem.racks),
        "warnings": list(dict.fromkeys([*problem.warnings, *(line for _, lines in replayed for line in lines)])),
        "runs": [run for run, _ in replayed],
    }


def _run(problem: Problem, setting: Setting, options: Options) -> tuple[LabRun, tuple[str, ...]]:
    """Cost, balance, moved tasks and rounds of the group once it has settled under a setting, and warnings of racks and tags.

    `cost` is traffic alone, times the setting's weight: non-overlap costs differ by assignor and would not compare. `moved`
    counts tasks on another client than at the start: `at_once` after the first round, `in_all` in the settled group.
    """
    configured = _configured(problem, setting)
    awareness, start = judge_rack_awareness(configured), running_assignment(configured)
    first = ASSIGNORS[setting.assignor](configured, awareness, options)
    settled = settle(configured, setting.assignor, options)
    crossing = assignment_document(configured, awareness, settled.output, 0.0)["cross_rack"]
    warnings = (*rack_warnings(configured), *tag_warnings(configured, settled.output.tags_followed))
    run: LabRun = {
        "assignor": setting.assignor,
        "strategy": setting.strategy,
        "traffic_cost": setting.weights.traffic,
        "non_overlap_cost": setting.weights.non_overlap,
        "enabled": awareness.enabled,
        "reason": awareness.reason,
        "cross_rack": crossing,
        "cost": None if crossing["active"] is None else crossing["active"] * setting.weights.traffic,
        "moved": {
            "at_once": moved_tasks(start.active, first.assignment.active),
            "in_all": moved_tasks(start.active, settled.output.assignment.active),
        },
        "balance": _balance(configured, settled),
        "rounds": settled.rounds,
        "converged": settled.converged,
    }
    return run, warnings


def _configured(problem: Problem, setting: Setting) -> Problem:
    costs = setting.costs
    configs = replace(
        problem.configs,
        strategy=setting.strategy,
        traffic_cost=None if costs is None else costs.traffic,
        non_overlap_cost=None if costs is None else costs.non_overlap,
    )
    return replace(problem, configs=configs)


def _balance(problem: Problem, settled: SettledGroup) -> BalanceOfTasks:
    """The least and greatest number of tasks per thread, and the greatest difference within one sub-topology."""
    assignment = settled.output.assignment
    loads = [
        (len(active) + len(standby)) / client.threads
        for client, active, standby in zip(problem.clients, assignment.active, assignment.standby, strict=True)
    ]
    return {
        "tasks_per_thread": {"least": round(min(loads), 2), "most": round(max(loads), 2)},
        "subtopology_gap": max(_gaps(problem, assignment), default=0),
    }


def _gaps(problem: Problem, assignment: TaskAssignment) -> Iterator[int]:
    """For each sub-topology: the greatest minus the least number of its active tasks on a client."""
    codes = problem.tasks.subtopology
    counts = np.array(
        [np.bincount(codes[sorted(active)], minlength=int(codes.max(initial=-1)) + 1) for active in assignment.active]
    )
    yield from (counts.max(axis=0) - counts.min(axis=0)).tolist() if counts.size else ()
