"""A laboratory: one group under every assignor, strategy and pair of weights, each run until it comes to rest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from rackspan.errors import UsageError
from rackspan.streams.assignment import describe
from rackspan.streams.assignors import ASSIGNORS, assignor_named
from rackspan.streams.formats import from_document
from rackspan.streams.lab.rebalances import Settled, present, settle
from rackspan.streams.problem import (
    HIGH_AVAILABILITY_COSTS,
    KAFKA,
    STICKY_COSTS,
    Costs,
    Options,
    Problem,
    Strategy,
    judge,
    strategy_named,
)
from rackspan.streams.task_assignment import TaskAssignment

Document = dict[str, Any]

DEFAULT_ASSIGNORS = ("high-availability", "sticky")


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run a group. `costs` None: the assignor's own."""

    assignor: str
    strategy: Strategy
    costs: Costs | None = None

    @property
    def weights(self) -> Costs:
        return self.costs or (STICKY_COSTS if self.assignor == "sticky" else HIGH_AVAILABILITY_COSTS)


def settings(assignors: Sequence[str], strategies: Sequence[str], weights: Sequence[str]) -> list[Setting]:
    """Every combination, each once: without racks nothing is weighed. Errors: UsageError for an unknown name or weight."""
    for name in assignors:
        assignor_named(name)
    named = [strategy_named(name) for name in strategies] or list(Strategy)
    costs: list[Costs | None] = [_costs(text) for text in weights] or [None]
    combined = product(assignors or DEFAULT_ASSIGNORS, named, costs)
    found = (Setting(assignor, at, None if at is Strategy.NONE else cost) for assignor, at, cost in combined)
    return list(dict.fromkeys(found))


def _costs(text: str) -> Costs:
    """TRAFFIC/OVERLAP, such as 10/1."""
    traffic, slash, overlap = text.partition("/")
    if not (slash and traffic.isdecimal() and overlap.isdecimal() and len(text) <= 21):
        raise UsageError(f"weights {text!r}: they are written TRAFFIC/NON-OVERLAP, such as 10/1; correct them")
    return Costs(int(traffic), int(overlap))


def replay(documents: Mapping[str, object], chosen: Sequence[Setting], options: Options = KAFKA) -> Document:
    """Replay each problem under each setting. `documents` by name. Errors: InvalidProblem, UsageError, naming the file."""
    return {"problems": [_problem(name, from_document(one), chosen, options) for name, one in documents.items()]}


def _problem(name: str, problem: Problem, chosen: Sequence[Setting], options: Options) -> Document:
    return {
        "problem": name,
        "tasks": len(problem.tasks),
        "clients": len(problem.clients),
        "racks": len(problem.racks),
        "runs": [_run(problem, setting, options) for setting in chosen],
    }


def _run(problem: Problem, setting: Setting, options: Options) -> Document:
    """One setting: cost, balance, stickiness and rounds of what the group settles at.

    `cost` is traffic alone, at the setting's weight, since a settled group overlaps with itself by another measure in
    each assignor. `moved` counts tasks that run elsewhere than at the start: `at_once` after the first round, `in_all`
    at rest.
    """
    under = _under(problem, setting)
    awareness, started = judge(under), present(under)
    first = ASSIGNORS[setting.assignor](under, awareness, options)
    at_rest = settle(under, setting.assignor, options)
    crossing = describe(under, awareness, at_rest.assigned, 0.0)["cross_rack"]
    return {
        "assignor": setting.assignor,
        "strategy": setting.strategy.value,
        "traffic_cost": setting.weights.traffic,
        "non_overlap_cost": setting.weights.non_overlap,
        "enabled": awareness.enabled,
        "reason": awareness.reason,
        "cross_rack": crossing,
        "cost": None if crossing["active"] is None else crossing["active"] * setting.weights.traffic,
        "moved": {
            "at_once": _moved(started, first.assignment),
            "in_all": _moved(started, at_rest.assigned.assignment),
        },
        "balance": _balance(under, at_rest),
        "rounds": at_rest.rounds,
        "converged": at_rest.converged,
    }


def _under(problem: Problem, setting: Setting) -> Problem:
    costs = setting.costs
    configs = replace(
        problem.configs,
        strategy=setting.strategy,
        traffic_cost=None if costs is None else costs.traffic,
        non_overlap_cost=None if costs is None else costs.non_overlap,
    )
    return replace(problem, configs=configs)


def _moved(before: TaskAssignment, after: TaskAssignment) -> int:
    return sum(len(new - old) for old, new in zip(before.active, after.active, strict=True))


def _balance(problem: Problem, settled: Settled) -> Document:
    """Active and standby tasks for each thread, least and most; and the widest gap within one sub-topology."""
    held = settled.assigned.assignment
    loads = [
        (len(active) + len(standby)) / client.threads
        for client, active, standby in zip(problem.clients, held.active, held.standby, strict=True)
    ]
    return {
        "tasks_per_thread": {"least": round(min(loads), 2), "most": round(max(loads), 2)},
        "subtopology_gap": max(_gaps(problem, held), default=0),
    }


def _gaps(problem: Problem, held: TaskAssignment) -> Iterator[int]:
    """For each sub-topology: its active tasks on the client with most of them, less those on the one with fewest."""
    codes = problem.tasks.subtopology
    counts = np.array(
        [np.bincount(codes[sorted(active)], minlength=int(codes.max(initial=-1)) + 1) for active in held.active]
    )
    yield from (counts.max(axis=0) - counts.min(axis=0)).tolist() if counts.size else ()
