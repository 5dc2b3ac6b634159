"""Repeated rebalances of a group until its assignment no longer changes."""

from dataclasses import dataclass, replace

from rackspan.streams.assignors import ASSIGNORS
from rackspan.streams.problem import KAFKA, Options, Problem, judge_rack_awareness
from rackspan.streams.task_assignment import AssignorOutput, TaskAssignment, running_assignment


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
