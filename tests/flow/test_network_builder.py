import numpy as np

from rackspan.flow import solve
from rackspan.flow.network import NetworkBuilder


def test_nodes_are_numbered_on_and_each_slice_finds_its_own_arcs() -> None:
    """Two sources, two brokers that take one unit each, one sink that takes the rest."""
    builder = NetworkBuilder()
    sources = builder.nodes(np.array([2, 1]))
    brokers = builder.nodes(np.array([0, 0]))
    sink = int(builder.nodes(np.array([-1]))[0])
    assert (sources.tolist(), brokers.tolist(), sink) == ([0, 1], [2, 3], 4)

    to_brokers = builder.add(sources[:, None].repeat(2, 1).ravel(), np.tile(brokers, 2), 2, np.array([0, 5, 1, 5]))
    to_sink = builder.add(brokers, np.array(sink), np.array([2, 3]))
    assert (to_brokers, to_sink) == (slice(0, 4), slice(4, 6))

    network = builder.network(sink)
    assert network.tail.tolist() == [0, 0, 1, 1, 2, 3]
    assert network.head.tolist() == [2, 3, 2, 3, 4, 4]
    assert network.capacity.tolist() == [2, 2, 2, 2, 2, 3]
    assert network.unit_cost.tolist() == [0, 5, 1, 5, 0, 0]
    assert network.supply.tolist() == [2, 1, 0, 0, -3]

    flow = solve(network).flow
    assert flow[to_brokers].tolist() == [2, 0, 0, 1]
    assert flow[to_sink].tolist() == [2, 1]
