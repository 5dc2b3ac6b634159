"""Active tasks optimised by the strategy that the configs name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rackspan.streams.active.balance_subtopology import balance_subtopology
from rackspan.streams.active.min_traffic import min_traffic
from rackspan.streams.active.optimum import Optimum
from rackspan.streams.active.quotas import floating, min_traffic_within
from rackspan.streams.client_state import ClientState, owners, set_owners
from rackspan.streams.costs import OwnedTasks, owned_tasks
from rackspan.streams.problem import Beyond, Costs, Int32s, Int64s, Options, Problem, Strategy

Optimizer = Callable[[OwnedTasks], Optimum]
FloatingOptimizer = Callable[[OwnedTasks, Int64s], Optimum]

OPTIMIZERS: Final[Mapping[Strategy, Optimizer]] = {
    Strategy.MIN_TRAFFIC: min_traffic,
    Strategy.BALANCE_SUBTOPOLOGY: balance_subtopology,
}
FLOATING_OPTIMIZERS: Final[Mapping[Strategy, FloatingOptimizer]] = {
    Strategy.MIN_TRAFFIC: lambda tasks, threads: min_traffic_within(tasks, floating(tasks, threads)),
    Strategy.BALANCE_SUBTOPOLOGY: lambda tasks, threads: balance_subtopology(tasks, floating(tasks, threads)),
}


def optimize_active(problem: Problem, members: Int32s, owner: Int32s, costs: Costs, options: Options) -> Optimum:
    """The best clients for the active tasks `members`, task t now on `owner[t]`. Requires rack awareness on."""
    tasks = owned_tasks(problem, members, owner, costs)
    if Beyond.FLOATING_QUOTAS in options:
        return FLOATING_OPTIMIZERS[problem.configs.strategy](tasks, problem.threads)
    return OPTIMIZERS[problem.configs.strategy](tasks)


def optimize_states(
    problem: Problem, states: Sequence[ClientState], members: Int32s, costs: Costs, options: Options
) -> Optimum:
    """optimize_active for an assignor's states: they hold the optimum afterwards."""
    optimum = optimize_active(problem, members, owners(states, len(problem.tasks)), costs, options)
    set_owners(states, members, optimum.client)
    return optimum
