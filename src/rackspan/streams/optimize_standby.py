"""Standby tasks exchanged between two clients at a time, as Kafka does it. Greedy: see joint_standby for the optimum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import Int32s, Int64s

MAX_ROUNDS = 4
"""Kafka's bound; in practice two rounds settle it."""

MayMove = Callable[[int, ClientState, ClientState], bool]


@dataclass(frozen=True, slots=True, eq=False)
class StandbyCosts:
    """`traffic` (T, R) cost of a standby in each rack, by its changelogs; `client_rack` (C,) codes."""

    traffic: Int64s
    client_rack: Int32s
    non_overlap: int

    def of(self, task: int, client: int) -> int:
        return int(self.traffic[task, self.client_rack[client]])

    def total(self, states: Sequence[ClientState]) -> int:
        """Traffic of all standbys in place. Overlap is with the final assignment, hence nothing, as Kafka reports it."""
        return sum(int(self.traffic[list(one.standby), self.client_rack[one.index]].sum()) for one in states)


def exchange_standby_tasks(states: Sequence[ClientState], costs: StandbyCosts, may_move: MayMove) -> int:
    """Swap standbys between pairs of clients in different racks until a round changes nothing. Returns the cost.

    Constraints: every client keeps its number of standbys; a task is on a client once; `may_move` holds for each move.
    Goal: the least cost for each pair in turn: its optimum, since for two clients the min-cost flow is a matching of the
    best gains of both sides.
    Bound: 4 rounds of C² pairs. Source: RackAwareTaskAssignor.optimizeStandbyTasks; the text's 4.C.I swaps task by task.
    """
    for _ in range(MAX_ROUNDS):
        pairs = [_exchange(one, other, costs, may_move) for one, other in _pairs(states, costs)]
        if not any(pairs):
            break
    return costs.total(states)


def _pairs(states: Sequence[ClientState], costs: StandbyCosts) -> list[tuple[ClientState, ClientState]]:
    rack = costs.client_rack
    return [(a, b) for a, b in combinations(states, 2) if a.standby and b.standby and rack[a.index] != rack[b.index]]


def _exchange(one: ClientState, other: ClientState, costs: StandbyCosts, may_move: MayMove) -> bool:
    """Swap the best pairs while both together gain; equal costs stay."""
    there, back = _gains(one, other, costs, may_move), _gains(other, one, costs, may_move)
    swaps = [(out, home) for (a, out), (b, home) in zip(there, back, strict=False) if a + b > 0]
    for out, home in swaps:
        one.standby.symmetric_difference_update((out, home))
        other.standby.symmetric_difference_update((out, home))
    return bool(swaps)


def _gains(source: ClientState, target: ClientState, costs: StandbyCosts, may_move: MayMove) -> list[tuple[int, int]]:
    """(Cost saved by moving it, task) for every movable standby of `source`, best first, then by task."""
    tasks = np.array(sorted(source.standby - target.standby - target.active), dtype=np.int64)
    rack = costs.client_rack
    saved = costs.traffic[tasks, rack[source.index]] - costs.traffic[tasks, rack[target.index]] - costs.non_overlap
    gains = sorted(zip((-saved).tolist(), tasks.tolist(), strict=True))
    return [(-loss, task) for loss, task in gains if may_move(task, source, target)]
