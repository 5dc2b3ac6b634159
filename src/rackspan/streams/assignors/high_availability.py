"""HighAvailabilityTaskAssignor, Kafka Streams' default, step by step (KIP-441 with KIP-925)."""

from collections.abc import Sequence

from rackspan.streams.active import Optimum, optimize_states
from rackspan.streams.assignors.lags import task_lags
from rackspan.streams.assignors.movements import Movements
from rackspan.streams.assignors.thread_balance import active, balance_over_threads, standby
from rackspan.streams.client_state import ClientState, LeastLoaded, empty_states
from rackspan.streams.problem import HIGH_AVAILABILITY_COSTS, KAFKA, STATELESS_COSTS, Beyond, Options, Problem
from rackspan.streams.rack_awareness import RackAwareness
from rackspan.streams.standby import MissingStandbys, StandbyPlacer, optimize_standby, placer_for
from rackspan.streams.task_assignment import AssignorOutput, frozen


def high_availability(problem: Problem, awareness: RackAwareness, options: Options = KAFKA) -> AssignorOutput:
    """Assign every task of a group anew, then move tasks temporarily to clients that have their state.

    Constraints: each task is active on one client; a client has a task once; no more warm-ups than max.warmup.replicas.
    Goals in order: tasks run where they are caught up; loads are even; least cost of cross-rack traffic.
    Method: steps 1-8 of KIP-925. Steps 1-4 make the lasting assignment, with racks; 5 and 6 are temporary and look at lag
    alone; 7 assigns stateless tasks, with racks; 8 requests a probing rebalance. The lasting assignment depends on the group
    alone and not on lags, so probing rebalances converge.
    Bound: the flows of active/, C² pairs of clients for standbys and threads. Proven by tests/streams/test_kafka_vectors.py
    (recorded from Kafka), tests/compat/test_streams.py (Kafka's classes) and test_high_availability.py (convergence).
    """
    states = empty_states(problem)
    stateful = assign_stateful(problem, states, awareness, options)
    missing, standby_cost = _assign_standbys(problem, states, awareness, options)
    moved = _move_to_caught_up(problem, states)
    stateless = _assign_stateless(problem, states, awareness, options)
    return AssignorOutput(
        frozen(states),
        stateful,
        stateless,
        standby_cost,
        probing_rebalance=moved > 0,
        missing_standbys=tuple(sorted(missing.items())),
    )


def assign_stateful(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> Optimum | None:
    """Steps 1 and 2: assign round-robin, even out over threads, optimise."""
    for turn, task in enumerate(problem.stateful.tolist()):
        states[turn % len(states)].active.add(task)
    balance_over_threads(states, active)
    if not awareness.enabled:
        return None
    costs = problem.configs.costs(HIGH_AVAILABILITY_COSTS)
    return optimize_states(problem, states, problem.stateful, costs, options)


def _assign_standbys(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> tuple[MissingStandbys, int | None]:
    """Steps 3 and 4: place, even out, optimise."""
    if not problem.configs.num_standbys:
        return {}, None
    placer = placer_for(problem, states, across_racks=Beyond.RACK_SPREAD_STANDBYS in options)
    missing = placer.place(problem.stateful.tolist(), problem.configs.num_standbys)
    balance_over_threads(states, standby, placer.may_balance)
    return missing, _optimize_standbys(problem, states, awareness, placer, options)


def _optimize_standbys(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, placer: StandbyPlacer, options: Options
) -> int | None:
    if not awareness.enabled:
        return None
    costs = problem.configs.costs(HIGH_AVAILABILITY_COSTS)
    return optimize_standby(problem, states, costs, placer.may_move, options)


def _move_to_caught_up(problem: Problem, states: Sequence[ClientState]) -> int:
    """Steps 5 and 6. Returns the number of movements; any makes a probing rebalance necessary."""
    movements = Movements(states, task_lags(problem), problem.configs.max_warmup_replicas)
    return movements.move_active_tasks() + movements.move_standby_tasks()


def _assign_stateless(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> Optimum | None:
    """Step 7: each task to the client with the least active load, then optimise at the costs of stateless tasks."""
    clients = LeastLoaded(states, lambda state: state.active_load)
    for task in problem.stateless.tolist():
        state = clients.take()
        state.active.add(task)
        clients.offer(state)
    if not awareness.enabled:
        return None
    return optimize_states(problem, states, problem.stateless, STATELESS_COSTS, options)
