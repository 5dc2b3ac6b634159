"""All standby tasks optimised at once (beyond Kafka, whose exchanges between pairs of clients can end above the optimum)."""

from collections.abc import Sequence

import numpy as np

from rackspan.flow import FlowNetwork, network, solve
from rackspan.streams.client_state import ClientState
from rackspan.streams.costs import cross_rack, priced
from rackspan.streams.problem import Beyond, Costs, Int64s, Options, Problem
from rackspan.streams.standby.exchange import MayMove, StandbyCosts, exchange_standby_tasks

MAX_ARCS = 5_000_000
"""Limit of standbys times clients, each an arc of this model; beyond it the exchanges between pairs are final."""


def solve_standby_tasks_jointly(states: Sequence[ClientState], costs: StandbyCosts, may_move: MayMove) -> int:
    """Rearrange all standbys at once, at least cost. Returns the cost; never above what it was.

    Constraints: every client keeps its number of standbys; a task is on a client once and not where it is active; `may_move`
    allows every move.
    Goals in order: the least cost; the fewest standbys moved.
    Method: min-cost flow, task -> client. `may_move` judges single moves and cannot be part of a flow, so a task whose moves
    it refuses is fixed where it was, and the rest is solved again. Each round fixes at least one more task, and the
    present assignment is feasible in every round; so the rounds end, never above the present cost.
    Bound: one flow of standbys · clients arcs for each round; one round where no move is refused.
    Proven by tests/streams/standby/test_joint.py, which tries all assignments.
    """
    fixed: set[int] = set()
    held = {task for state in states for task in state.standby}
    while len(held - fixed) * len(states) <= MAX_ARCS:
        movable = sorted(held - fixed)
        if not movable:
            break
        target = _solve_once(movable, states, costs)
        refused = {task for task in movable if not _allowed(task, target[task], states, may_move)}
        if not refused:
            _set_standbys(states, target)
            break
        fixed |= refused
    return costs.total(states)


def _solve_once(tasks: Sequence[int], states: Sequence[ClientState], costs: StandbyCosts) -> dict[int, set[int]]:
    """The clients of each task in the optimum without `may_move`."""
    pairs = np.array(
        [(row, state.index) for row, task in enumerate(tasks) for state in states if task not in state.active],
        dtype=np.int64,
    )
    flow = solve(_network(tasks, states, costs, pairs)).flow
    target: dict[int, set[int]] = {task: set() for task in tasks}
    for row, client in pairs[flow > 0].tolist():
        target[tasks[row]].add(client)
    return target


def _network(tasks: Sequence[int], states: Sequence[ClientState], costs: StandbyCosts, pairs: Int64s) -> FlowNetwork:
    row, client = pairs.T
    ids = np.array(tasks)
    holds = np.array([[task in state.standby for state in states] for task in tasks])
    away = ~holds[row, client]
    price = costs.traffic[ids[row], costs.client_rack[client]] + costs.non_overlap * away
    # One more than all standbys: the fewest moves then break ties between equal costs.
    scale = int(holds.sum()) + 1
    return network(
        tail=row,
        head=len(tasks) + client,
        capacity=np.ones(len(pairs), dtype=np.int64),
        unit_cost=price * scale + away,
        supply=np.concatenate([holds.sum(axis=1), -holds.sum(axis=0)]),
    )


def _allowed(task: int, target: set[int], states: Sequence[ClientState], may_move: MayMove) -> bool:
    """Whether the moves of one task, made one after the other, are each allowed. The states are unchanged afterwards."""
    leaving = [state for state in states if task in state.standby and state.index not in target]
    arriving = [state for state in states if task not in state.standby and state.index in target]
    allowed = True
    made = []
    for source, destination in zip(leaving, arriving, strict=True):
        allowed = allowed and may_move(task, source, destination)
        source.standby.remove(task)
        destination.standby.add(task)
        made.append((source, destination))
    for source, destination in made:
        destination.standby.remove(task)
        source.standby.add(task)
    return allowed


def _set_standbys(states: Sequence[ClientState], target: dict[int, set[int]]) -> None:
    for state in states:
        state.standby -= target.keys()
    for task, clients in target.items():
        for client in clients:
            states[client].standby.add(task)


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
