"""Rebalance after rebalance: what a group settles at, and how long that takes."""

from dataclasses import dataclass, replace

import numpy as np

from rackspan.streams.assignors import ASSIGNORS
from rackspan.streams.problem import KAFKA, Int32s, Options, Problem, judge
from rackspan.streams.task_assignment import AssignorOutput, TaskAssignment


@dataclass(frozen=True, slots=True)
class Settled:
    """What a group comes to rest at. `rounds` are the rebalances that moved something or asked for another one.

    `converged` is False where even the last allowed round still moved tasks.
    """

    problem: Problem
    assigned: AssignorOutput
    rounds: int
    converged: bool


def settle(problem: Problem, assignor: str, options: Options = KAFKA, most_rounds: int = 1_000) -> Settled:
    """Let a group rebalance until nothing changes, every client caught up between two rounds.

    Constraint: each round starts from what the last one left, as previous and as present assignment, without lags.
    Bound: HighAvailability's lasting part depends on the group alone and each probing round warms up at least one task, so
    it ends after as many rounds as there are tasks to move, divided by max.warmup.replicas, and one.
    """
    at, rounds = problem, 0
    assigned = _rebalance(at, assignor, options)
    while not _at_rest(at, assigned) and rounds < most_rounds:
        at, rounds = after(at, assigned.assignment), rounds + 1
        assigned = _rebalance(at, assignor, options)
    return Settled(at, assigned, rounds, converged=_at_rest(at, assigned))


def after(problem: Problem, assignment: TaskAssignment) -> Problem:
    """The group at its next rebalance: who ran a task is at its end, who stood by has caught up."""
    clients = tuple(
        replace(client, prev_active=active, prev_standby=standby, lags={})
        for client, active, standby in zip(problem.clients, assignment.active, assignment.standby, strict=True)
    )
    stateful = frozenset(problem.stateful.tolist())
    # Warm-ups are standbys too; where none are wanted, `optimize` has no place for them.
    standby = tuple(held & stateful for held in assignment.standby) if problem.configs.num_standbys else None
    return replace(problem, clients=clients, initial_active=_owner(problem, assignment), initial_standby=standby)


def present(problem: Problem) -> TaskAssignment:
    """Who holds what before the next rebalance: what the problem says is so now, else the previous generation."""
    clients, owner = problem.clients, problem.initial_active
    return TaskAssignment(
        active=tuple(client.prev_active for client in clients) if owner is None else _held(owner, len(clients)),
        standby=problem.initial_standby or tuple(client.prev_standby for client in clients),
    )


def _held(owner: Int32s, clients: int) -> tuple[frozenset[int], ...]:
    held: list[list[int]] = [[] for _ in range(clients)]
    for task, client in enumerate(owner.tolist()):
        held[client].append(task)
    return tuple(map(frozenset, held))


def _rebalance(problem: Problem, assignor: str, options: Options) -> AssignorOutput:
    return ASSIGNORS[assignor](problem, judge(problem), options)


def _at_rest(before: Problem, assigned: AssignorOutput) -> bool:
    found, left = present(before), assigned.assignment
    return not assigned.probing_rebalance and found.active == left.active and found.standby == left.standby


def _owner(problem: Problem, assignment: TaskAssignment) -> Int32s:
    owner = np.zeros(len(problem.tasks), dtype=np.int32)
    for client, held in enumerate(assignment.active):
        owner[list(held)] = client
    return owner
