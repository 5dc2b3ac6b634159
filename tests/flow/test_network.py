import pytest

from rackspan.errors import InvalidFlow
from rackspan.flow import network

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
