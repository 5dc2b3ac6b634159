"""Standby tasks exchanged between two clients at a time, as Kafka does it. Greedy: see joint_standby for the optimum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    Bound: 4 rounds of C² pairs, most of them passed over at a glance: a pair whose best gains do not add up is done.
    Source: RackAwareTaskAssignor.optimizeStandbyTasks; the text's 4.C.I swaps task by task.
    """
    exchange = _Exchange(costs, may_move)
    for _ in range(MAX_ROUNDS):
        swapped = [exchange.between(one, other) for one, other in combinations(states, 2)]
        if not any(swapped):
            break
    return costs.total(states)


@dataclass(frozen=True, slots=True, eq=False)
class _Exchange:
    """Swaps between two clients. `_best` remembers the best gain of each client towards each rack until it changes."""

    costs: StandbyCosts
    may_move: MayMove
    _best: dict[tuple[int, int], int] = field(default_factory=dict)

    def between(self, one: ClientState, other: ClientState) -> bool:
        """Swap the best pairs while both together gain; equal costs stay. Whether any were."""
        if not self._worth_a_look(one, other):
            return False
        there, back = self._gains(one, other), self._gains(other, one)
        swaps = [(out, home) for (a, out), (b, home) in zip(there, back, strict=False) if a + b > 0]
        for out, home in swaps:
            one.standby.symmetric_difference_update((out, home))
            other.standby.symmetric_difference_update((out, home))
        if swaps:
            self._forget(one, other)
        return bool(swaps)

    def _worth_a_look(self, one: ClientState, other: ClientState) -> bool:
        here, there = self._rack(one), self._rack(other)
        if here == there or not one.standby or not other.standby:
            return False
        return self._best_gain(one, there) + self._best_gain(other, here) > 0

    def _best_gain(self, state: ClientState, rack: int) -> int:
        """The most that any standby of a client could save in a rack, whether or not it may go there."""
        key = (state.index, rack)
        if key not in self._best:
            self._best[key] = int(self._saved(list(state.standby), state, rack).max())
        return self._best[key]

    def _gains(self, source: ClientState, target: ClientState) -> list[tuple[int, int]]:
        """(Cost saved by moving it, task) for every movable standby of `source`, best first, then by task."""
        tasks = sorted(source.standby - target.standby - target.active)
        saved = self._saved(tasks, source, self._rack(target)).tolist()
        gains = sorted(zip(saved, tasks, strict=True), key=lambda gain: (-gain[0], gain[1]))
        return [(gain, task) for gain, task in gains if self.may_move(task, source, target)]

    def _saved(self, tasks: list[int], source: ClientState, rack: int) -> Int64s:
        traffic = self.costs.traffic
        at = np.array(tasks, dtype=np.int64)
        return np.asarray(traffic[at, self._rack(source)] - traffic[at, rack] - self.costs.non_overlap)

    def _rack(self, state: ClientState) -> int:
        return int(self.costs.client_rack[state.index])

    def _forget(self, *states: ClientState) -> None:
        changed = {state.index for state in states}
        for key in [key for key in self._best if key[0] in changed]:
            del self._best[key]
