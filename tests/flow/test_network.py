import numpy as np
import pytest

from rackspan.errors import InvalidFlow
from rackspan.flow import arcs, connect, network, split

WRONG = [
    (
        ([0], [1, 0], [1], [1], [0, 0]),
        "arc columns differ in length; give every arc a tail, head, capacity and unit cost",
    ),
    (([0], [2], [1], [1], [1, -1]), "an arc names a node outside 0 to 1; add the node or drop the arc"),
    (([0], [1], [-1], [1], [0, 0]), "arc 0: capacity is negative; nothing can flow there, drop it"),
    (([0], [1], [1], [1], [2, -1]), "supplies sum to 1; what enters a network must leave it"),
    (
        ([0], [1], [1], [2**61], [1, -1]),
        "a unit cost of 2305843009213693952 over 2 nodes leaves 64 bits; use smaller costs or weights",
    ),
]


@pytest.mark.parametrize(("columns", "line"), WRONG, ids=[line for _, line in WRONG])
def test_an_invalid_network_is_refused_in_one_line(columns: tuple[list[int], ...], line: str) -> None:
    with pytest.raises(InvalidFlow) as refused:
        network(*columns)
    assert str(refused.value) == line


@pytest.mark.parametrize("sign", [1, -1])
def test_costs_are_refused_from_the_first_one_that_or_tools_could_not_scale(sign: int) -> None:
    """OR-tools multiplies a cost by the number of nodes and two more: 2**60 times 4 is the limit, 2**62."""
    with pytest.raises(InvalidFlow, match="leaves 64 bits"):
        network([0, 0], [1, 1], [1, 1], [0, sign * 2**60], [0, 0])
    assert network([0, 0], [1, 1], [1, 1], [0, sign * (2**60 - 1)], [0, 0]).largest_cost == 2**60 - 1


def test_a_network_without_arcs_has_no_largest_cost() -> None:
    assert network([], [], [], [], []).largest_cost == 0


def test_a_negative_node_and_a_node_past_the_last_are_refused_at_either_end() -> None:
    for tail, head in ((-1, 0), (0, -1), (2, 0), (0, 2)):
        with pytest.raises(InvalidFlow, match="outside 0 to 1"):
            network([0, tail], [1, head], [1, 1], [0, 0], [0, 0])


def test_the_first_arc_of_negative_capacity_is_the_one_named() -> None:
    with pytest.raises(InvalidFlow, match=r"^arc 1: "):
        network([0, 0, 0], [1, 1, 1], [0, -2, -3], [0, 0, 0], [0, 0])


def test_bundles_are_joined_in_order_and_their_flows_taken_apart_again() -> None:
    near = arcs([0, 1], 2, [3, 4], 0)
    far = arcs(0, [1, 2, 3], 7, [5, 6, 8])
    joined = connect([1, 0, -1, 0], near, far)
    assert (len(near), len(far)) == (2, 3)
    assert joined.tail.tolist() == [0, 1, 0, 0, 0]
    assert joined.head.tolist() == [2, 2, 1, 2, 3]
    assert joined.capacity.tolist() == [3, 4, 7, 7, 7]
    assert joined.unit_cost.tolist() == [0, 0, 5, 6, 8]
    assert joined.supply.tolist() == [1, 0, -1, 0]
    assert [part.tolist() for part in split(np.arange(7), near, far, near)] == [[0, 1], [2, 3, 4], [5, 6]]
    assert [str(column.dtype) for column in (joined.tail, joined.head, near.capacity)] == ["int32", "int32", "int64"]


def test_a_flows_cost_is_exact_past_64_bits() -> None:
    wide = network([0, 0], [1, 1], [2**40, 1], [2**59, 1], [0, 0])
    assert wide.cost(np.array([2**40, 1])) == 2**99 + 1
