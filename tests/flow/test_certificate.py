import numpy as np
import pytest

from rackspan.errors import UnprovenResult
from rackspan.flow import FlowNetwork, certify, network

DIAMOND = network(
    tail=[0, 0, 1, 2], head=[1, 2, 3, 3], capacity=[1, 1, 1, 1], unit_cost=[1, 5, 1, 5], supply=[1, 0, 0, -1]
)


def flow(*units: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(units, dtype=np.int64)


def test_the_cheapest_way_is_certified_with_a_bound_equal_to_its_cost() -> None:
    certificate = certify(DIAMOND, flow(1, 0, 1, 0))
    assert certificate.cost == certificate.lower_bound == 2


@pytest.mark.parametrize(
    ("units", "line"),
    [
        (flow(0, 1, 0, 1), "a flow can be made cheaper along a cycle; report this as a bug"),
        (flow(2, 0, 1, 0), "a flow leaves the capacity of an arc; report this as a bug"),
        (flow(-1, 0, 1, 0), "a flow leaves the capacity of an arc; report this as a bug"),
        (flow(1, 0, 0, 0), "a flow gains or loses units at node 1; report this as a bug"),
        (flow(0, 0, 0, 0), "a flow gains or loses units at node 0; report this as a bug"),
    ],
)
def test_a_flow_of_higher_cost_or_infeasible_is_refused(
    units: np.ndarray[tuple[int], np.dtype[np.int64]], line: str
) -> None:
    with pytest.raises(UnprovenResult) as withheld:
        certify(DIAMOND, units)
    assert str(withheld.value) == line


def test_a_cycle_of_negative_cost_is_found_even_without_supply() -> None:
    paying = network(tail=[0, 1], head=[1, 0], capacity=[3, 3], unit_cost=[-2, 1], supply=[0, 0])
    with pytest.raises(UnprovenResult):
        certify(paying, flow(0, 0))
    assert certify(paying, flow(3, 3)).cost == -3


def test_a_network_without_arcs_has_the_empty_flow() -> None:
    empty: FlowNetwork = network([], [], [], [], [0, 0])
    assert certify(empty, flow()).cost == 0


def test_a_bound_that_is_not_the_flows_cost_is_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices that prove less than the cost must not pass, whatever made them."""
    monkeypatch.setattr("rackspan.flow.certificate._potential", lambda network, flow: np.zeros(4, dtype=np.int64))
    with pytest.raises(UnprovenResult, match=r"^a flow of cost 2 has the lower bound 0; report this as a bug$"):
        certify(DIAMOND, flow(1, 0, 1, 0))


def test_the_prices_prove_the_bound() -> None:
    """By the textbook's weak duality, written out: no arc below its capacity has a negative reduced cost."""
    certificate = certify(DIAMOND, flow(1, 0, 1, 0))
    reduced = DIAMOND.unit_cost + certificate.potential[DIAMOND.tail] - certificate.potential[DIAMOND.head]
    assert reduced[[1, 3]].min() >= 0
    assert reduced[[0, 2]].max() <= 0


def test_an_arc_without_capacity_may_have_any_cost() -> None:
    closed = network([0, 0, 1], [1, 1, 0], [0, 2, 2], [-9, 1, 3], [1, -1])
    assert certify(closed, flow(0, 1, 0)).cost == 1
