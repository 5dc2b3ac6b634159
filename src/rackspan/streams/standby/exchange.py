"""Standby tasks exchanged between two clients at a time, as in Kafka. Greedy: joint.py finds the optimum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import Int32s, Int64s

MAX_ROUNDS = 4
"""Kafka's limit; in practice the second round changes nothing."""

MayMove = Callable[[int, ClientState, ClientState], bool]


@dataclass(frozen=True, slots=True, eq=False)
class StandbyCosts:
    """`traffic` (T, R) cost of a standby of each task in each rack, by its changelogs; `client_rack` (C,) codes."""

    traffic: Int64s
    client_rack: Int32s
    non_overlap: int

    def of(self, task: int, client: int) -> int:
        return int(self.traffic[task, self.client_rack[client]])

    def total(self, states: Sequence[ClientState]) -> int:
        """The traffic of all standbys. Non-overlap costs are 0, as Kafka reports it: it compares the final assignment with itself."""
        return sum(int(self.traffic[list(state.standby), self.client_rack[state.index]].sum()) for state in states)


def exchange_standby_tasks(states: Sequence[ClientState], costs: StandbyCosts, may_move: MayMove) -> int:
    """Swap standbys between pairs of clients in different racks until a round changes nothing. Returns the cost.

    Constraints: every client keeps its number of standbys; a task is on a client once; `may_move` holds for each move.
    Goal: the least cost for each pair in turn. For two clients the min-cost flow is a matching of the best gains of both
    sides, so each pair reaches its optimum; all pairs together may not.
    Bound: 4 rounds of C² pairs. A pair whose best gains do not add up to a saving is skipped at once.
    Source: RackAwareTaskAssignor.optimizeStandbyTasks; KIP-925 4.C.I swaps task by task.
    Proven by tests/streams/standby/test_exchange.py and, against Kafka's classes, tests/compat/test_streams.py.
    """
    exchange = _Exchange(costs, may_move)
    for _ in range(MAX_ROUNDS):
        swapped = [exchange.between(first, second) for first, second in combinations(states, 2)]
        if not any(swapped):
            break
    return costs.total(states)


@dataclass(frozen=True, slots=True, eq=False)
class _Exchange:
    """Swaps between two clients. `_best` caches the best gain of each client towards each rack until its tasks change."""

    costs: StandbyCosts
    may_move: MayMove
    _best: dict[tuple[int, int], int] = field(default_factory=dict)

    def between(self, first: ClientState, second: ClientState) -> bool:
        """Swap the best pairs of tasks while a swap saves cost. Returns whether any were swapped."""
        if not self._could_save(first, second):
            return False
        outward, back = self._gains(first, second), self._gains(second, first)
        swaps = [
            (task, other)
            for (gain, task), (gain_back, other) in zip(outward, back, strict=False)
            if gain + gain_back > 0
        ]
        for swap in swaps:
            first.standby.symmetric_difference_update(swap)
            second.standby.symmetric_difference_update(swap)
        if swaps:
            self._invalidate(first, second)
        return bool(swaps)

    def _could_save(self, first: ClientState, second: ClientState) -> bool:
        """Whether the best gains of both clients add up to a saving, may_move aside."""
        first_rack, second_rack = self._rack(first), self._rack(second)
        if first_rack == second_rack or not first.standby or not second.standby:
            return False
        return self._best_gain(first, second_rack) + self._best_gain(second, first_rack) > 0

    def _best_gain(self, state: ClientState, rack: int) -> int:
        """The greatest saving of any standby of a client in a rack, whether or not it may move there."""
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
        rows = np.array(tasks, dtype=np.int64)
        return np.asarray(traffic[rows, self._rack(source)] - traffic[rows, rack] - self.costs.non_overlap)

    def _rack(self, state: ClientState) -> int:
        return int(self.costs.client_rack[state.index])

    def _invalidate(self, *states: ClientState) -> None:
        changed = {state.index for state in states}
        for key in [key for key in self._best if key[0] in changed]:
            del self._best[key]
