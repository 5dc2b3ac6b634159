import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.streams.active.balance_subtopology import balance_subtopology, subtopology_limits
from rackspan.streams.active.min_traffic import min_traffic
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int32s, Int64s
from tests.streams.owned import best, every_assignment, keeps_quotas, owned, owned_sets


def test_the_threads_one_two_three_of_the_proposal_give_limits_one_one_two() -> None:
    """Six tasks in two sub-topologies of three, clients that hold 1, 2 and 3 of them (KIP-925 4.B.II)."""
    limits = subtopology_limits(np.array([1, 2, 3]), 6, np.array([3, 3]))
    assert limits.tolist() == [[1, 1, 2], [1, 1, 2]]


def test_limits_round_in_doubles_from_left_to_right_as_kafka_does() -> None:
    """7 / 25 * 75 is 21 by arithmetic and a little more in doubles; Kafka's ceiling is 22."""
    assert subtopology_limits(np.array([7]), 25, np.array([75])).tolist() == [[int(np.ceil(7 * 1.0 / 25 * 75))]]
    assert subtopology_limits(np.array([7]), 25, np.array([75]))[0, 0] == 22


def test_a_sub_topology_is_spread_even_where_that_costs_traffic() -> None:
    """All of sub-topology 0 would be free in rack 0; at most two of its four tasks may be there."""
    tasks = owned(
        owner=[0, 1, 0, 1, 0, 1, 0, 1],
        traffic=[[0, 10]] * 4 + [[10, 10]] * 4,
        client_rack=[0, 1],
        subtopology=[0] * 4 + [1] * 4,
    )
    assert (min_traffic(tasks).cost, balance_subtopology(tasks).cost) == (40, 60)


def test_a_client_that_holds_little_gets_little_of_a_sub_topology() -> None:
    """Clients hold 2, 3 and 3 of eight tasks: the first gets one of a sub-topology of four, though two would be cheaper."""
    tasks = owned(
        owner=[0, 1, 1, 2, 0, 1, 2, 2],
        traffic=[[0, 10]] * 4 + [[10, 10]] * 4,
        client_rack=[0, 1, 1],
        subtopology=[0] * 4 + [1] * 4,
    )
    assert (min_traffic(tasks).cost, balance_subtopology(tasks).cost) == (60, 70)


def limits(tasks: OwnedTasks) -> tuple[Int64s, Int64s]:
    values, family = np.unique(tasks.subtopology, return_inverse=True)
    return family, subtopology_limits(tasks.held, len(tasks), np.bincount(family, minlength=len(values)))


def within(tasks: OwnedTasks, client: Int32s) -> bool:
    family, most = limits(tasks)
    counts = np.zeros_like(most)
    np.add.at(counts, (family, client), 1)
    return keeps_quotas(tasks, client) and bool((counts <= most).all())


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=6, max_size=6))
def test_the_proposals_solution_is_within_its_limits_and_so_is_every_cheapest_one(traffic: list[list[int]]) -> None:
    """{s1_1}, {s1_2, s2_1}, {s1_3, s2_2, s2_3}, whatever the traffic costs (KIP-925 4.B.II)."""
    solution = owned(owner=[0, 1, 2, 1, 2, 2], traffic=traffic, client_rack=[0, 1, 2], subtopology=[1, 1, 1, 2, 2, 2])
    optimum = balance_subtopology(solution)
    assert within(solution, solution.owner)
    assert within(solution, optimum.client)
    assert optimum.cost <= solution.cost(solution.owner)


@given(owned_sets())
def test_no_assignment_within_the_limits_is_cheaper_and_none_as_cheap_moves_fewer(tasks: OwnedTasks) -> None:
    optimum = balance_subtopology(tasks)
    allowed = (client for client in every_assignment(tasks) if within(tasks, client))
    assert within(tasks, optimum.client)
    assert (optimum.cost, optimum.moved) == best(tasks, allowed)
    assert optimum.lower_bound == optimum.cost == tasks.cost(optimum.client)


@given(owned_sets())
def test_spreading_never_costs_less_than_not_spreading(tasks: OwnedTasks) -> None:
    assert balance_subtopology(tasks).cost >= min_traffic(tasks).cost


def test_no_tasks_cost_nothing() -> None:
    none = OwnedTasks(
        np.zeros(0, np.int32), np.zeros((0, 2), np.int64), np.zeros(0, np.int32), np.array([0, 1], np.int32), 1
    )
    assert (balance_subtopology(none).cost, balance_subtopology(none).moved) == (0, 0)
