from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.streams.active.balance_subtopology import balance_subtopology
from rackspan.streams.active.min_traffic import min_traffic
from rackspan.streams.active.quotas import as_held, floating, min_traffic_within
from rackspan.streams.costs import OwnedTasks
from tests.streams.owned import best, every_assignment, owned, owned_sets


def threads(tasks: OwnedTasks, each: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.full(len(tasks.client_rack), each, dtype=np.int64)


def test_the_odd_task_goes_to_the_client_where_it_is_cheapest() -> None:
    """Three tasks, two clients: which of them takes two is free, and rack 1 has them all."""
    tasks = owned(owner=[0, 0, 1], traffic=[[10, 0]] * 3, client_rack=[0, 1])
    assert min_traffic(tasks).cost == 20
    assert min_traffic_within(tasks, floating(tasks, threads(tasks))).cost == 10


def test_quotas_float_between_floor_and_ceiling_of_each_share_and_include_what_a_client_holds() -> None:
    def bounds(owner: list[int], threads: list[int]) -> tuple[list[int], list[int]]:
        tasks = owned(owner=owner, traffic=[[0, 0]] * len(owner), client_rack=[0] * len(threads))
        quotas = floating(tasks, np.array(threads))
        return quotas.least.tolist(), quotas.most.tolist()

    assert bounds([0, 0, 1, 1], [1, 1]) == ([2, 2], [2, 2]), "what can be even is"
    assert bounds([0, 0, 1], [1, 1]) == ([1, 1], [2, 2])
    assert bounds([0] * 6, [1, 2]) == ([2, 0], [6, 4])
    assert bounds([1] * 7, [1, 2]) == ([0, 4], [3, 7])


@given(owned_sets(), st.integers(1, 2))
def test_floating_quotas_are_the_optimum_of_their_bounds_and_never_cost_more(tasks: OwnedTasks, each: int) -> None:
    quotas = floating(tasks, threads(tasks, each))
    optimum = min_traffic_within(tasks, quotas)
    clients = len(tasks.client_rack)
    allowed = (
        client
        for client in every_assignment(tasks)
        if (quotas.least <= (count := np.bincount(client, minlength=clients))).all() and (count <= quotas.most).all()
    )
    assert (optimum.cost, optimum.moved) == best(tasks, allowed)
    assert optimum.cost <= min_traffic(tasks).cost
    assert balance_subtopology(tasks, quotas).cost <= balance_subtopology(tasks).cost


@given(owned_sets(), st.data())
def test_an_overlap_with_other_owners_is_the_optimum_of_the_quotas(tasks: OwnedTasks, data: st.DataObject) -> None:
    """`owner` decides what a move costs, the quotas how many tasks a client gets: they need not be of one assignment."""
    clients = len(tasks.client_rack)
    assigned = data.draw(st.lists(st.integers(0, clients - 1), min_size=len(tasks), max_size=len(tasks)))
    quotas = as_held(replace(tasks, owner=np.array(assigned, dtype=np.int32)))
    optimum = min_traffic_within(tasks, quotas)
    allowed = (
        client
        for client in every_assignment(tasks)
        if np.array_equal(np.bincount(client, minlength=clients), quotas.most)
    )
    assert (optimum.cost, optimum.moved) == best(tasks, allowed)
    assert balance_subtopology(tasks, quotas).cost >= optimum.cost


@given(owned_sets())
def test_the_client_flow_with_fixed_quotas_agrees_with_the_rack_collapse(tasks: OwnedTasks) -> None:
    grouped, collapsed = min_traffic_within(tasks, as_held(tasks)), min_traffic(tasks)
    assert (grouped.cost, grouped.moved) == (collapsed.cost, collapsed.moved)
