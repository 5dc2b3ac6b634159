"""A flow network as columns of arcs and nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rackspan.errors import InvalidFlow

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Ints = Int32s | Int64s | Sequence[int]

MAX_SCALED_COST: Final = 2**62
"""Limit of a unit cost times the number of nodes, by which OR-tools scales it: above, sums would exceed 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowNetwork:
    """Nodes 0 … len(supply) − 1, arcs in columns. Checked once, here.

    `tail`, `head` (A,) int32; `capacity` (A,) units, not negative; `unit_cost` (A,) of any sign; `supply` (N,) units that
    enter at a node, negative where they leave; they sum to zero.
    """

    tail: Int32s
    head: Int32s
    capacity: Int64s
    unit_cost: Int64s
    supply: Int64s

    def __post_init__(self) -> None:
        if not len(self.tail) == len(self.head) == len(self.capacity) == len(self.unit_cost):
            raise InvalidFlow("arc columns differ in length; give every arc a tail, head, capacity and unit cost")
        if len(self.tail) and not _within(self.tail, self.head, len(self.supply)):
            raise InvalidFlow(f"an arc names a node outside 0 to {len(self.supply) - 1}; add the node or drop the arc")
        if (self.capacity < 0).any():
            raise InvalidFlow(
                f"arc {int(np.argmax(self.capacity < 0))}: capacity is negative; nothing can flow there, drop it"
            )
        if int(self.supply.sum()) != 0:
            raise InvalidFlow(f"supplies sum to {int(self.supply.sum())}; what enters a network must leave it")
        if self.largest_cost * (len(self.supply) + 2) >= MAX_SCALED_COST:
            raise InvalidFlow(
                f"a unit cost of {self.largest_cost} over {len(self.supply)} nodes leaves 64 bits; use smaller costs or weights"
            )

    @property
    def largest_cost(self) -> int:
        return max(int(self.unit_cost.max()), -int(self.unit_cost.min())) if len(self.unit_cost) else 0

    def cost(self, flow: Int64s) -> int:
        """The cost of `flow` (A,). Exact: a sum of Python integers."""
        used = np.flatnonzero(flow)
        return sum(map(int.__mul__, flow[used].tolist(), self.unit_cost[used].tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Arcs of one kind. Columns as in FlowNetwork."""

    tail: Int32s
    head: Int32s
    capacity: Int64s
    unit_cost: Int64s

    def __len__(self) -> int:
        return len(self.tail)


def arcs(tail: Ints | int, head: Ints | int, capacity: Ints | int, unit_cost: Ints | int) -> Arcs:
    """Arcs from columns of any integer type; a single number stands for a column of that number."""
    columns = np.broadcast_arrays(*(np.asarray(column, dtype=np.int64) for column in (tail, head, capacity, unit_cost)))
    return Arcs(columns[0].astype(np.int32), columns[1].astype(np.int32), columns[2], columns[3])


def connect(supply: Ints, *bundles: Arcs) -> FlowNetwork:
    """A network of all bundles, their arcs in the order given. `split` returns the flow of each bundle."""
    return FlowNetwork(
        tail=np.concatenate([bundle.tail for bundle in bundles]),
        head=np.concatenate([bundle.head for bundle in bundles]),
        capacity=np.concatenate([bundle.capacity for bundle in bundles]),
        unit_cost=np.concatenate([bundle.unit_cost for bundle in bundles]),
        supply=np.asarray(supply, dtype=np.int64),
    )


def split(flow: Int64s, *bundles: Arcs) -> list[Int64s]:
    """The flow of each bundle that `connect` was given, in the same order."""
    return np.split(flow, np.cumsum([len(bundle) for bundle in bundles])[:-1])


def network(tail: Ints, head: Ints, capacity: Ints, unit_cost: Ints, supply: Ints) -> FlowNetwork:
    """A network from lists or arrays of any integer type. Arcs without capacity are kept, so that the arcs' indices stay."""
    return FlowNetwork(
        tail=np.asarray(tail, dtype=np.int32),
        head=np.asarray(head, dtype=np.int32),
        capacity=np.asarray(capacity, dtype=np.int64),
        unit_cost=np.asarray(unit_cost, dtype=np.int64),
        supply=np.asarray(supply, dtype=np.int64),
    )


def _within(tail: Int32s, head: Int32s, nodes: int) -> bool:
    return bool(min(tail.min(), head.min()) >= 0 and max(tail.max(), head.max()) < nodes)


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
