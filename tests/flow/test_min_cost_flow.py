"""OR-tools' solutions compared with exhaustive search, and networks without a solution."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import InvalidFlow
from rackspan.flow import FlowNetwork, network, solve

Arc = tuple[int, int, int, int]


@st.composite
def networks(draw: st.DrawFn) -> FlowNetwork:
    nodes = draw(st.integers(2, 4))
    node = st.integers(0, nodes - 1)
    arcs: list[Arc] = draw(
        st.lists(st.tuples(node, node, st.integers(0, 2), st.integers(-3, 5)).filter(_is_no_loop), max_size=6)
    )
    sent = draw(st.integers(0, 2))
    supply = [0] * nodes
    supply[0], supply[-1] = sent, -sent
    tail, head, capacity, cost = (list(column) for column in zip(*arcs, strict=True)) if arcs else ([], [], [], [])
    return network(tail, head, capacity, cost, supply)


def _is_no_loop(arc: Arc) -> bool:
    return arc[0] != arc[1]


def cheapest(given_network: FlowNetwork) -> int | None:
    """The least cost of all feasible flows, None without one."""
    costs = []
    for units in product(*(range(capacity + 1) for capacity in given_network.capacity.tolist())):
        flow = np.array(units, dtype=np.int64)
        balance = np.zeros_like(given_network.supply)
        np.add.at(balance, given_network.tail, flow)
        np.subtract.at(balance, given_network.head, flow)
        if np.array_equal(balance, given_network.supply):
            costs.append(given_network.cost(flow))
    return min(costs, default=None)


@given(networks())
def test_no_flow_is_cheaper_than_the_solution(flow_network: FlowNetwork) -> None:
    least = cheapest(flow_network)
    if least is None:
        with pytest.raises(InvalidFlow, match=r"^no flow carries every supply"):
            solve(flow_network)
    else:
        solution = solve(flow_network)
        assert solution.certificate.cost == solution.certificate.lower_bound == least


def test_a_supply_without_any_arc_is_refused_and_no_supply_has_the_empty_flow() -> None:
    with pytest.raises(InvalidFlow, match=r"^no flow carries every supply: there are no arcs; "):
        solve(network([], [], [], [], [1, -1]))
    assert solve(network([], [], [], [], [0, 0])).flow.shape == (0,)


def test_the_flow_is_the_one_that_was_certified() -> None:
    solution = solve(network([0, 0], [1, 1], [1, 2], [1, 4], [2, -2]))
    assert solution.flow.tolist() == [1, 1]
    assert solution.certificate.cost == 5


def test_a_flow_that_the_solver_calls_infeasible_is_refused_with_its_status() -> None:
    with pytest.raises(
        InvalidFlow, match=r"^no flow carries every supply \(\w+\); raise a capacity or lower a supply$"
    ):
        solve(network([0], [1], [1], [0], [2, -2]))
