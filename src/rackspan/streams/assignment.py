"""Task assignment: a problem document in, an assignment document out, as `rackspan streams assign` writes it."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import numpy as np

from rackspan.streams.active import Optimum
from rackspan.streams.assignors import assignor_named
from rackspan.streams.costs import cross_rack, crossings, equal_cost, owned_tasks
from rackspan.streams.formats import from_document
from rackspan.streams.problem import (
    HIGH_AVAILABILITY_COSTS,
    KAFKA,
    STATELESS_COSTS,
    Beyond,
    Int32s,
    Options,
    PartitionLists,
    Problem,
    RackAwareness,
    changelogs_known,
    judge,
    sources_known,
    warnings,
)
from rackspan.streams.task_assignment import AssignorOutput, TaskAssignment

Clock = Callable[[], float]


def assign(document: object, assignor: str, options: Options = KAFKA, clock: Clock = float) -> dict[str, Any]:
    """Answer a problem document. `clock` reads seconds; without one, `seconds` is 0.0.

    Errors: InvalidProblem, UsageError; one line each.
    """
    problem = from_document(document, weighted=Beyond.PARTITION_WEIGHTS in options)
    return assign_problem(problem, assignor, options, clock)


def assign_problem(problem: Problem, assignor: str, options: Options = KAFKA, clock: Clock = float) -> dict[str, Any]:
    """The same for a problem in memory. `seconds` covers judging, optimising and proving, not reading."""
    solve = assignor_named(assignor)
    started = clock()
    awareness = judge(problem)
    assigned = solve(problem, awareness, options)
    return describe(problem, awareness, assigned, clock() - started)


def describe(problem: Problem, awareness: RackAwareness, assigned: AssignorOutput, seconds: float) -> dict[str, Any]:
    """The answer document, keys in a fixed order."""
    return {
        "enabled": awareness.enabled,
        "reason": awareness.reason,
        "note": "equal-cost" if awareness.enabled and equal_cost(problem) else None,
        "warnings": [*problem.warnings, *warnings(problem), *_short(problem, assigned)],
        "cost": _cost(problem, assigned),
        "cross_rack": _cross_rack(problem, assigned.assignment),
        "certificate": {"stateful": _proof(assigned.stateful), "stateless": _proof(assigned.stateless)},
        "probing_rebalance": assigned.probing_rebalance,
        "seconds": seconds,
        "assignment": _assignment(problem, assigned.assignment),
    }


def _short(problem: Problem, assigned: AssignorOutput) -> list[str]:
    wanted = problem.configs.num_standbys
    return [
        f"task {problem.tasks.ids[task]}: {missing} of {wanted} standbys found no client; start more instances"
        for task, missing in assigned.short
    ]


def _proof(optimum: Optimum | None) -> dict[str, int] | None:
    return None if optimum is None else {"lower_bound": optimum.lower_bound, "moved": optimum.moved}


def _cost(problem: Problem, assigned: AssignorOutput) -> dict[str, int | None]:
    """Kafka's costs of what was optimised; where it was not, the price of what stands, or null where it has none."""
    cost = {
        "stateful": assigned.stateful.cost if assigned.stateful else _price(problem, assigned, stateful=True),
        "stateless": assigned.stateless.cost if assigned.stateless else _price(problem, assigned, stateful=False),
    }
    return cost if assigned.standby_cost is None else {**cost, "standby": assigned.standby_cost}


def _price(problem: Problem, assigned: AssignorOutput, stateful: bool) -> int | None:
    if not sources_known(problem):
        return None
    members = problem.stateful if stateful else problem.stateless
    costs = problem.configs.costs(HIGH_AVAILABILITY_COSTS) if stateful else STATELESS_COSTS
    owner = _owner(len(problem.tasks), assigned.assignment)
    tasks = owned_tasks(problem, members, owner, costs)
    return tasks.cost(tasks.owner)


def _owner(tasks: int, assignment: TaskAssignment) -> Int32s:
    owner = np.zeros(tasks, dtype=np.int32)
    for client, held in enumerate(assignment.active):
        owner[list(held)] = client
    return owner


def _cross_rack(problem: Problem, assignment: TaskAssignment) -> dict[str, int | None]:
    return {
        "active": _count(problem, problem.tasks.source, assignment.active) if sources_known(problem) else None,
        "standby": _count(problem, problem.tasks.changelog, assignment.standby) if changelogs_known(problem) else None,
    }


def _count(problem: Problem, lists: PartitionLists, held: Sequence[AbstractSet[int]]) -> int:
    """Partitions read across racks, each counted once whatever its weight."""
    partitions = replace(problem.partitions, weight=np.ones_like(problem.partitions.weight))
    return crossings(cross_rack(lists, partitions), problem.client_rack, held)


def _assignment(problem: Problem, assignment: TaskAssignment) -> dict[str, dict[str, list[str]]]:
    ids = problem.tasks.ids
    return {
        client.process_id: {
            "active": [ids[task] for task in sorted(active)],
            "standby": [ids[task] for task in sorted(standby)],
        }
        for client, active, standby in zip(problem.clients, assignment.active, assignment.standby, strict=True)
    }
