"""Active tasks optimised by the strategy that the configs name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rackspan.streams.active.balance_subtopology import balance_subtopology
from rackspan.streams.active.min_traffic import min_traffic
from rackspan.streams.active.optimum import Optimum, unmoved
from rackspan.streams.active.quotas import ClientQuotas, as_held, floating, min_traffic_within
from rackspan.streams.client_state import ClientState, owners, set_owners
from rackspan.streams.costs import OwnedTasks, equal_cost, owned_tasks
from rackspan.streams.problem import Beyond, Costs, Int32s, Options, Problem, Strategy

Optimizer = Callable[[OwnedTasks], Optimum]
QuotaOptimizer = Callable[[OwnedTasks, ClientQuotas], Optimum]

OPTIMIZERS: Final[Mapping[Strategy, Optimizer]] = {
    Strategy.MIN_TRAFFIC: min_traffic,
    Strategy.BALANCE_SUBTOPOLOGY: balance_subtopology,
}
QUOTA_OPTIMIZERS: Final[Mapping[Strategy, QuotaOptimizer]] = {
    Strategy.MIN_TRAFFIC: min_traffic_within,
    Strategy.BALANCE_SUBTOPOLOGY: balance_subtopology,
}
"""The same strategies with quotas other than the number of tasks on each owner."""


def optimize_active(problem: Problem, members: Int32s, owner: Int32s, costs: Costs, options: Options) -> Optimum:
    """The best clients for the active tasks `members`, task t now on `owner[t]`. Requires rack awareness on.

    Where no partition of the group costs more in one rack than in another, all stay (KIP-925, section 6). Kafka's
    balance_subtopology then still moves tasks between clients; here its limits may not be met, nor does `lower_bound` count them.
    """
    tasks = owned_tasks(problem, members, owner, costs)
    if equal_cost(problem):
        return unmoved(tasks)
    strategy = problem.configs.strategy
    if not options.beyond & {Beyond.FLOATING_QUOTAS, Beyond.PREVIOUS_OVERLAP}:
        return OPTIMIZERS[strategy](tasks)
    quotas = floating(tasks, problem.threads) if Beyond.FLOATING_QUOTAS in options else as_held(tasks)
    if Beyond.PREVIOUS_OVERLAP in options:
        tasks = replace(tasks, owner=_previous_owner(problem, owner)[members])
    return QUOTA_OPTIMIZERS[strategy](tasks, quotas)


def _previous_owner(problem: Problem, owner: Int32s) -> Int32s:
    """The client on which each task ran before the rebalance; its `owner` if it ran on none of the group's clients."""
    previous = owner.copy()
    for index, client in enumerate(problem.clients):
        previous[np.array(sorted(client.prev_active), dtype=np.intp)] = index
    return previous


def optimize_states(
    problem: Problem, states: Sequence[ClientState], members: Int32s, costs: Costs, options: Options
) -> Optimum:
    """optimize_active for an assignor's states: they hold the optimum afterwards."""
    optimum = optimize_active(problem, members, owners(states, len(problem.tasks)), costs, options)
    set_owners(states, members, optimum.client)
    return optimum
