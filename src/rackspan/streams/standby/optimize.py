"""Standby tasks optimised: Kafka's exchanges between pairs of clients, then all at once if an option says so."""

from collections.abc import Sequence

from rackspan.streams.client_state import ClientState
from rackspan.streams.costs import cross_rack, priced
from rackspan.streams.problem import Beyond, Costs, Options, Problem
from rackspan.streams.standby.exchange import MayMove, StandbyCosts, exchange_standby_tasks
from rackspan.streams.standby.joint import solve_standby_tasks_jointly


def optimize_standby(
    problem: Problem, states: Sequence[ClientState], costs: Costs, may_move: MayMove, options: Options
) -> int:
    """Rearrange the standbys on `states` for less traffic. Returns their cost. Requires rack awareness on."""
    crossing = cross_rack(problem.tasks.changelog, problem.partitions)
    count = sum(len(state.standby) for state in states)
    prices = StandbyCosts(priced(crossing, costs, count), problem.client_rack, costs.non_overlap)
    cost = exchange_standby_tasks(states, prices, may_move)
    if Beyond.JOINT_STANDBYS in options:
        # Non-overlap costs only rank assignments of equal traffic; the joint flow minimises traffic, from where the pairs ended.
        prices = StandbyCosts(prices.traffic, prices.client_rack, non_overlap=0)
        cost = solve_standby_tasks_jointly(states, prices, may_move)
    return cost
