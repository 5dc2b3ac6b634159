"""The work table of an assignor: what each client holds so far. Mutable, and never leaves a single assignment."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rackspan.streams.problem import Client, Int32s, Problem


@dataclass(slots=True, eq=False)
class ClientState:
    """One client's tasks while an assignment is made. `index` is its place in Kafka's order."""

    index: int
    client: Client
    active: set[int] = field(default_factory=set)
    standby: set[int] = field(default_factory=set)

    @property
    def threads(self) -> int:
        return self.client.threads

    @property
    def load(self) -> float:
        """Tasks of either role for each thread: the text's taskLoad."""
        return (len(self.active) + len(self.standby)) / self.client.threads

    @property
    def active_load(self) -> float:
        return len(self.active) / self.client.threads

    @property
    def count(self) -> int:
        return len(self.active) + len(self.standby)

    def holds(self, task: int) -> bool:
        return task in self.active or task in self.standby


def empty_states(problem: Problem) -> list[ClientState]:
    return [ClientState(index, client) for index, client in enumerate(problem.clients)]


def owners(states: Sequence[ClientState], tasks: int) -> Int32s:
    """The client of each active task, −1 where there is none. Shape (T,)."""
    owner = np.full(tasks, -1, dtype=np.int32)
    for state in states:
        owner[list(state.active)] = state.index
    return owner


def hand_out(states: Sequence[ClientState], members: Int32s, client: Int32s) -> None:
    """Make `client[i]` the one that holds active task `members[i]`; other tasks stay."""
    moved = set(members.tolist())
    for state in states:
        state.active -= moved
    for task, target in zip(members.tolist(), client.tolist(), strict=True):
        states[target].active.add(task)


def always(_state: ClientState) -> bool:
    return True


class LeastLoaded:
    """Clients by load, then Kafka's order. What is polled is out until offered again; offering again is an update."""

    __slots__ = ("_current", "_heap", "_load", "_version")

    def __init__(self, states: Iterable[ClientState], load: Callable[[ClientState], float]) -> None:
        self._load = load
        self._heap: list[tuple[float, int, int, ClientState]] = []
        self._current: dict[int, int] = {}
        self._version = 0
        for state in states:
            self.offer(state)

    def offer(self, state: ClientState) -> None:
        self._version += 1
        self._current[state.index] = self._version
        heapq.heappush(self._heap, (self._load(state), state.index, self._version, state))

    def take(self) -> ClientState:
        """The least loaded client. LookupError when all are out: whoever takes one offers it again."""
        found = self.poll()
        if found is None:
            raise LookupError("every client was polled and none offered again")
        return found

    def poll(self, wanted: Callable[[ClientState], bool] = always) -> ClientState | None:
        """The least loaded client that is `wanted`, or None. Those passed over stay."""
        passed = []
        found = None
        while self._heap and found is None:
            entry = heapq.heappop(self._heap)
            if self._current.get(entry[1]) != entry[2]:
                continue  # offered again since, or polled
            if wanted(entry[3]):
                found = entry[3]
                del self._current[found.index]
            else:
                passed.append(entry)
        for entry in passed:
            heapq.heappush(self._heap, entry)
        return found
