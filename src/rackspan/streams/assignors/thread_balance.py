"""The tasks of one role evened out over threads (KIP-925, steps 2 and 4 of HighAvailabilityTaskAssignor)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import Int64s

Role = Callable[[ClientState], set[int]]
MayMove = Callable[[ClientState, ClientState], bool]


def active(state: ClientState) -> set[int]:
    return state.active


def standby(state: ClientState) -> set[int]:
    return state.standby


def anywhere(_source: ClientState, _target: ClientState) -> bool:
    return True


def balance_over_threads(states: Sequence[ClientState], role: Role, may_move: MayMove = anywhere) -> None:
    """Move tasks of `role` from more to less loaded clients until no move helps.

    Constraints: a task is on a client once, in whatever role; `may_move` allows the pair of clients.
    Goal: loads (tasks of both roles by threads) as even as single moves make them.
    Method: pairs of clients in Kafka's order, a source's tasks in ascending order, until a whole round moves nothing.
    Bound: every move narrows a gap, so rounds end; one round is C array operations over C clients.
    Source: HighAvailabilityTaskAssignor.balanceTasksOverThreads; proven by tests/streams/assignors/test_thread_balance.py.
    """
    loads = _Loads.of(states)
    moving = True
    while moving:
        moved = [_unload(source, states, loads, role, may_move) for source in states]
        moving = any(moved)


@dataclass(frozen=True, slots=True, eq=False)
class _Loads:
    """The number of tasks and threads of each client, both (C,), to find the targets of a move in one array operation."""

    count: Int64s
    threads: Int64s

    @classmethod
    def of(cls, states: Sequence[ClientState]) -> "_Loads":
        return cls(np.array([state.count for state in states]), np.array([state.threads for state in states]))

    def targets(self, source: int) -> list[int]:
        """Clients to which a move from `source` helps. Each move from the source can only shorten this list."""
        after = (self.count[source] - 1) / self.threads[source] - (self.count + 1) / self.threads
        fuller = self.count[source] / self.threads[source] > self.count / self.threads
        return [int(target) for target in np.flatnonzero(fuller & (after >= 0))]

    def moved(self, source: int, target: int, tasks: int) -> None:
        self.count[source] -= tasks
        self.count[target] += tasks


def _unload(source: ClientState, states: Sequence[ClientState], loads: _Loads, role: Role, may_move: MayMove) -> bool:
    """Move tasks from one client to every client where that helps. Returns whether any moved."""
    moved = 0
    for index in loads.targets(source.index):
        if may_move(source, states[index]):
            tasks = _move_some(source, states[index], role)
            loads.moved(source.index, index, tasks)
            moved += tasks
    return moved > 0


def _helps(source: ClientState, target: ClientState) -> bool:
    """Whether a move leaves the source no less loaded than the target, and the gap smaller."""
    after = (source.count - 1) / source.threads - (target.count + 1) / target.threads
    return 0 <= after < source.load - target.load


def _move_some(source: ClientState, target: ClientState, role: Role) -> int:
    moved = 0
    for task in sorted(role(source)):
        if not _helps(source, target):
            break
        if not target.holds(task):
            role(source).remove(task)
            role(target).add(task)
            moved += 1
    return moved
