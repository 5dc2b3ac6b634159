"""The assignment of the problem document, optimised for racks (Kafka's RackAwareTaskAssignor alone)."""

from rackspan.errors import InvalidProblem
from rackspan.streams.active import optimize_active
from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import HIGH_AVAILABILITY_COSTS, KAFKA, STATELESS_COSTS, Beyond, Int32s, Options, Problem
from rackspan.streams.rack_awareness import RackAwareness
from rackspan.streams.standby import optimize_standby, placer_for
from rackspan.streams.task_assignment import AssignorOutput, TaskAssignment, active_by_client, frozen


def optimize(problem: Problem, awareness: RackAwareness, options: Options = KAFKA) -> AssignorOutput:
    """Optimise `initial_active`: stateful tasks first, then stateless ones at their own costs, then `initial_standby`.

    Constraints, goals and bounds: those of the configured strategy. With rack awareness off the assignment stays the same.
    Errors: InvalidProblem without initial_active.
    """
    owner = problem.initial_active
    if owner is None:
        raise InvalidProblem("problem: initial_active is missing; add it, or choose another --assignor")
    if not awareness.enabled:
        return AssignorOutput(_assignment(problem, owner))
    stateful = optimize_active(
        problem, problem.stateful, owner, problem.configs.costs(HIGH_AVAILABILITY_COSTS), options
    )
    stateless = optimize_active(problem, problem.stateless, owner, STATELESS_COSTS, options)
    optimal = owner.copy()
    optimal[problem.stateful], optimal[problem.stateless] = stateful.client, stateless.client
    assignment = _assignment(problem, optimal)
    if problem.initial_standby is None:
        return AssignorOutput(assignment, stateful, stateless)
    assignment, cost = _optimize_standbys(problem, owner, assignment, options)
    return AssignorOutput(assignment, stateful, stateless, cost)


def _optimize_standbys(
    problem: Problem, before: Int32s, assignment: TaskAssignment, options: Options
) -> tuple[TaskAssignment, int]:
    states = [
        ClientState(index, client, set(active), set(standby))
        for index, (client, active, standby) in enumerate(
            zip(problem.clients, assignment.active, assignment.standby, strict=True)
        )
    ]
    for state in states:
        _clear_both_roles(state, states, before)
    placer = placer_for(problem, states, across_racks=Beyond.RACK_SPREAD_STANDBYS in options)
    costs = problem.configs.costs(HIGH_AVAILABILITY_COSTS)
    cost = optimize_standby(problem, states, costs, placer.may_move, options)
    return frozen(states), cost


def _clear_both_roles(state: ClientState, states: list[ClientState], before: Int32s) -> None:
    """Move the standby of a task that is now active on the same client to the client where the task was active before."""
    for task in sorted(state.active & state.standby):
        state.standby.remove(task)
        states[before[task]].standby.add(task)


def _assignment(problem: Problem, owner: Int32s) -> TaskAssignment:
    standby = problem.initial_standby or (frozenset(),) * len(problem.clients)
    return TaskAssignment(active_by_client(owner, len(problem.clients)), standby)
