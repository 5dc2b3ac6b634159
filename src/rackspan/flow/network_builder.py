"""Builds a flow network from columns of nodes and arcs."""

from typing import TypeAlias

import numpy as np

from rackspan.flow.network import FlowNetwork, Int64s, network

Column: TypeAlias = Int64s | int


class NetworkBuilder:
    """Nodes and arcs in columns; `add` gives the slice under which the arcs' flows are found later."""

    def __init__(self) -> None:
        self._supply: list[Int64s] = []
        self._nodes = 0
        self._arcs = 0
        self._columns: list[tuple[Int64s, Int64s, Int64s, Int64s]] = []

    def nodes(self, supply: Int64s) -> Int64s:
        """Add one node for each supply; their numbers."""
        numbers = np.arange(self._nodes, self._nodes + len(supply))
        self._supply.append(supply.astype(np.int64))
        self._nodes += len(supply)
        return numbers

    def add(self, tail: Int64s, head: Int64s, capacity: Column, unit_cost: Column = 0) -> slice:
        """Add one arc for each entry. What is a single number holds for all of them."""
        shape = np.broadcast_shapes(tail.shape, head.shape)
        arcs = tuple(
            np.broadcast_to(np.asarray(column, dtype=np.int64), shape) for column in (tail, head, capacity, unit_cost)
        )
        self._columns.append((arcs[0], arcs[1], arcs[2], arcs[3]))
        self._arcs += shape[0]
        return slice(self._arcs - shape[0], self._arcs)

    def network(self, sink: int) -> FlowNetwork:
        """All of it. What no node takes leaves at `sink`."""
        supply = np.concatenate(self._supply)
        supply[sink] -= supply.sum()
        tail, head, capacity, unit_cost = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        return network(tail, head, capacity, unit_cost, supply)
