"""Kafka Streams' default assignor, step by step (KIP-441 with KIP-925)."""

from collections.abc import Sequence

from rackspan.streams.active import Optimum, optimize_states
from rackspan.streams.assignors.lags import task_lags
from rackspan.streams.assignors.movements import Movements
from rackspan.streams.assignors.thread_balance import active, balance_over_threads, standby
from rackspan.streams.client_state import ClientState, LeastLoaded, empty_states
from rackspan.streams.problem import (
    HIGH_AVAILABILITY_COSTS,
    KAFKA,
    STATELESS_COSTS,
    Beyond,
    Options,
    Problem,
    RackAwareness,
)
from rackspan.streams.standby import Shortfall, StandbyPlacer, optimize_standby, placer_for
from rackspan.streams.task_assignment import AssignorOutput, frozen


def high_availability(problem: Problem, awareness: RackAwareness, options: Options = KAFKA) -> AssignorOutput:
    """Assign every task of a group anew, then detour to where state is.

    Constraints: each task is active on one client; a client has a task once; no more warm-ups than max.warmup.replicas.
    Goals in order: tasks run where they are caught up; loads are even; least cost of cross-rack traffic.
    Method: the text's steps 1-8. Racks are asked in the lasting part (1-4) and for stateless tasks; movements (5, 6) are
    temporary and decide by lag. The lasting part depends on the group alone, so probing rebalances converge.
    """
    states = empty_states(problem)
    stateful = assign_stateful(problem, states, awareness, options)
    short, standby_cost = _assign_standbys(problem, states, awareness, options)
    moved = _move_to_caught_up(problem, states)
    stateless = _assign_stateless(problem, states, awareness, options)
    return AssignorOutput(
        frozen(states),
        stateful,
        stateless,
        standby_cost,
        probing_rebalance=moved > 0,
        short=tuple(sorted(short.items())),
    )


def assign_stateful(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> Optimum | None:
    """Steps 1 and 2: deal in turn, even out over threads, optimise."""
    for turn, task in enumerate(problem.stateful.tolist()):
        states[turn % len(states)].active.add(task)
    balance_over_threads(states, active)
    if not awareness.enabled:
        return None
    costs = problem.configs.costs(HIGH_AVAILABILITY_COSTS)
    return optimize_states(problem, states, problem.stateful, costs, options)


def _assign_standbys(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> tuple[Shortfall, int | None]:
    """Steps 3 and 4: place, even out, optimise."""
    if not problem.configs.num_standbys:
        return {}, None
    placer = placer_for(problem, states, across_racks=Beyond.RACK_SPREAD_STANDBYS in options)
    short = placer.place(problem.stateful.tolist(), problem.configs.num_standbys)
    balance_over_threads(states, standby, placer.may_balance)
    return short, _optimize_standbys(problem, states, awareness, placer, options)


def _optimize_standbys(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, placer: StandbyPlacer, options: Options
) -> int | None:
    if not awareness.enabled:
        return None
    costs = problem.configs.costs(HIGH_AVAILABILITY_COSTS)
    return optimize_standby(problem, states, costs, placer.may_move, options)


def _move_to_caught_up(problem: Problem, states: Sequence[ClientState]) -> int:
    """Steps 5 and 6. Returns how many movements make a probing rebalance necessary."""
    movements = Movements(states, task_lags(problem), problem.configs.max_warmup_replicas)
    return movements.move_active_tasks() + movements.move_standby_tasks()


def _assign_stateless(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> Optimum | None:
    """Step 7: each to the client with the least active load, then optimise at the costs of stateless tasks."""
    clients = LeastLoaded(states, lambda state: state.active_load)
    for task in problem.stateless.tolist():
        state = clients.take()
        state.active.add(task)
        clients.offer(state)
    if not awareness.enabled:
        return None
    return optimize_states(problem, states, problem.stateless, STATELESS_COSTS, options)
