"""An independent proof that a flow is feasible and of least cost. It uses none of the solver's code."""

from dataclasses import dataclass

import numpy as np

from rackspan.errors import UnprovenResult
from rackspan.flow.network import FlowNetwork, Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A flow's cost, and the node prices `potential` (N,) that prove that no flow costs less than `lower_bound`."""

    cost: int
    lower_bound: int
    potential: Int64s


def certify(network: FlowNetwork, flow: Int64s) -> Certificate:
    """Prove `flow` (A,) feasible and of least cost, or raise UnprovenResult.

    Constraints: 0 <= flow <= capacity on every arc; at every node what leaves minus what enters is its supply.
    Goal: no flow within the constraints costs less.
    Method: Bellman-Ford over the residual arcs, from every node at distance 0, all arcs of a pass in one NumPy step,
    until nothing changes. No change within N passes means no negative residual cycle, which is optimality (Klein 1967);
    the distances are prices, and weak duality turns them into a lower bound that must equal the cost.
    Bound: O(N · A) at worst; a few passes where paths are short.
    Proven by tests/flow/test_certificate.py, which corrupts flows and networks.
    """
    _refuse_infeasible(network, flow)
    potential = _potential(network, flow)
    cost, lower_bound = network.cost(flow), _dual_value(network, potential)
    if cost != lower_bound:
        raise UnprovenResult(f"a flow of cost {cost} has the lower bound {lower_bound}; report this as a bug")
    return Certificate(cost, lower_bound, potential)


def _refuse_infeasible(network: FlowNetwork, flow: Int64s) -> None:
    if flow.shape != network.capacity.shape or (flow < 0).any() or (flow > network.capacity).any():
        raise UnprovenResult("a flow leaves the capacity of an arc; report this as a bug")
    balance = np.zeros_like(network.supply)
    np.add.at(balance, network.tail, flow)
    np.subtract.at(balance, network.head, flow)
    if not np.array_equal(balance, network.supply):
        node = int(np.argmax(balance != network.supply))
        raise UnprovenResult(f"a flow gains or loses units at node {node}; report this as a bug")


def _potential(network: FlowNetwork, flow: Int64s) -> Int64s:
    """Shortest distances over the residual arcs. UnprovenResult where a cycle of negative cost remains."""
    tail, head, cost = _residual(network, flow)
    distance = np.zeros(len(network.supply), dtype=np.int64)
    # Arcs sorted by head: one reduceat takes the least candidate of each node.
    order = np.argsort(head, kind="stable")
    tail, head, cost = tail[order], head[order], cost[order]
    starts = np.flatnonzero(np.diff(head, prepend=-1))
    heads = head[starts]
    for _ in range(len(distance) + 1):
        nearer = np.minimum(distance[heads], np.minimum.reduceat(distance[tail] + cost, starts))
        if np.array_equal(nearer, distance[heads]):
            return distance
        distance[heads] = nearer
    raise UnprovenResult("a flow can be made cheaper along a cycle; report this as a bug")


def _residual(network: FlowNetwork, flow: Int64s) -> tuple[Int32s, Int32s, Int64s]:
    free, used = flow < network.capacity, flow > 0
    return (
        np.concatenate([network.tail[free], network.head[used]]),
        np.concatenate([network.head[free], network.tail[used]]),
        np.concatenate([network.unit_cost[free], -network.unit_cost[used]]),
    )


def _dual_value(network: FlowNetwork, potential: Int64s) -> int:
    """The lower bound by weak duality: sum of supply times −potential, plus capacity times every negative reduced cost."""
    reduced = network.unit_cost + potential[network.tail] - potential[network.head]
    negative = np.flatnonzero((reduced < 0) & (network.capacity > 0))
    at_nodes = sum(map(int.__mul__, network.supply.tolist(), (-potential).tolist()))
    on_arcs = sum(map(int.__mul__, network.capacity[negative].tolist(), reduced[negative].tolist()))
    return at_nodes + on_arcs
