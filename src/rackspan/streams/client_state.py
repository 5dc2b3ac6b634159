"""The tasks of each client while an assignor runs. Mutable, and used within one assignment only."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rackspan.streams.problem import Client, Int32s, Problem


@dataclass(slots=True, eq=False)
class ClientState:
    """One client's tasks while an assignment is made. `index` is the client's position in Kafka's order."""

    index: int
    client: Client
    active: set[int] = field(default_factory=set)
    standby: set[int] = field(default_factory=set)

    @property
    def threads(self) -> int:
        return self.client.threads

    @property
    def load(self) -> float:
        """Tasks of either role per thread: Kafka's taskLoad."""
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


def set_owners(states: Sequence[ClientState], members: Int32s, client: Int32s) -> None:
    """Move active task `members[i]` to `client[i]`; other tasks stay."""
    moved = set(members.tolist())
    for state in states:
        state.active -= moved
    for task, target in zip(members.tolist(), client.tolist(), strict=True):
        states[target].active.add(task)


def always(_state: ClientState) -> bool:
    return True


class LeastLoaded:
    """A priority queue of clients by load, then Kafka's order.

    A polled client is out of the queue until it is offered again. Offering a client again updates its load.
    """

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
        """Remove and return the least loaded client. LookupError when the queue is empty: callers must offer clients again."""
        state = self.poll()
        if state is None:
            raise LookupError("every client was polled and none offered again")
        return state

    def poll(self, accept: Callable[[ClientState], bool] = always) -> ClientState | None:
        """Remove and return the least loaded client that `accept` allows, or None. Refused clients stay in the queue."""
        refused = []
        accepted = None
        while self._heap and accepted is None:
            entry = heapq.heappop(self._heap)
            if self._current.get(entry[1]) != entry[2]:
                continue  # offered again since, or polled
            if accept(entry[3]):
                accepted = entry[3]
                del self._current[accepted.index]
            else:
                refused.append(entry)
        for entry in refused:
            heapq.heappush(self._heap, entry)
        return accepted
