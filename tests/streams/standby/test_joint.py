"""The joint solution against every arrangement of standbys there is."""

from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from rackspan.model.ids import RackId
from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import Client, ProcessId
from rackspan.streams.standby.exchange import StandbyCosts, exchange_standby_tasks
from rackspan.streams.standby.joint import solve_standby_tasks_jointly


def table(rng: Random, clients: int, tasks: int) -> list[ClientState]:
    """Each task active on one client and standby on one or two others."""
    states = [
        ClientState(at, Client(ProcessId(f"00000000-0000-0000-0000-{at:012d}"), (RackId(f"r{at % 3}"),), 1))
        for at in range(clients)
    ]
    for task in range(tasks):
        first, *others = rng.sample(states, min(clients, rng.randint(2, 3)))
        first.active.add(task)
        for other in others:
            other.standby.add(task)
    return states


def prices(rng: Random, clients: int, tasks: int) -> StandbyCosts:
    traffic = np.array([[rng.choice([0, 10, 20]) for _ in range(3)] for _ in range(tasks)], dtype=np.int64)
    return StandbyCosts(traffic, np.arange(clients, dtype=np.int32) % 3, non_overlap=0)


def least(states: list[ClientState], costs: StandbyCosts) -> int:
    """Least cost over all arrangements that keep each client's number of standbys and each task's."""
    tasks = sorted({task for state in states for task in state.standby})
    quota = [len(state.standby) for state in states]
    choices = []
    for task in tasks:
        free = [state.index for state in states if task not in state.active]
        copies = sum(task in state.standby for state in states)
        choices.append(list(combinations(free, copies)))
    return min(
        sum(costs.of(task, client) for task, clients in zip(tasks, chosen, strict=True) for client in clients)
        for chosen in product(*choices)
        if [sum(at in clients for clients in chosen) for at in range(len(states))] == quota
    )


def anything(_task: int, _source: ClientState, _target: ClientState) -> bool:
    return True


@pytest.mark.parametrize("seed", range(30))
def test_no_arrangement_is_cheaper(seed: int) -> None:
    rng = Random(seed)
    states, costs = table(rng, clients=4, tasks=5), prices(rng, clients=4, tasks=5)
    before = [len(state.standby) for state in states]
    expected = least(states, costs)
    assert solve_standby_tasks_jointly(states, costs, anything) == expected
    assert [len(state.standby) for state in states] == before
    assert not any(state.active & state.standby for state in states)


def test_it_costs_less_than_exchanges_between_pairs() -> None:
    """Three clients in three racks, each with the standby that its neighbour wants: no pair gains, the circle does."""
    states = [
        ClientState(at, Client(ProcessId(f"00000000-0000-0000-0000-{at:012d}"), (RackId(f"r{at}"),), 1), set(), {at})
        for at in range(3)
    ]
    traffic = np.array([[10, 0, 30], [30, 10, 0], [0, 30, 10]], dtype=np.int64)
    costs = StandbyCosts(traffic, np.arange(3, dtype=np.int32), non_overlap=0)
    assert exchange_standby_tasks(states, costs, anything) == 30
    assert solve_standby_tasks_jointly(states, costs, anything) == 0


@pytest.mark.parametrize("seed", range(10))
def test_a_task_whose_moves_are_refused_stays_and_the_cost_never_rises(seed: int) -> None:
    rng = Random(seed)
    states, costs = table(rng, clients=4, tasks=5), prices(rng, clients=4, tasks=5)
    before, held = costs.total(states), [set(state.standby) for state in states]

    def all_but_task_zero(task: int, _source: ClientState, _target: ClientState) -> bool:
        return task != 0

    assert solve_standby_tasks_jointly(states, costs, all_but_task_zero) <= before
    assert [0 in state.standby for state in states] == [0 in standbys for standbys in held]


@pytest.mark.parametrize(("arcs", "moves"), [(20, True), (19, False)])
def test_a_problem_of_more_arcs_than_the_limit_stays_as_it_was(
    arcs: int, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five tasks on four clients are twenty arcs."""
    monkeypatch.setattr("rackspan.streams.standby.joint.MAX_ARCS", arcs)
    rng = Random(4)
    states, costs = table(rng, clients=4, tasks=5), prices(rng, clients=4, tasks=5)
    before, expected = costs.total(states), least(states, costs)
    assert expected < before
    assert solve_standby_tasks_jointly(states, costs, anything) == (expected if moves else before)
