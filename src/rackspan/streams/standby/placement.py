"""Where standby tasks go: by load alone, or over different client tags (KIP-708)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rackspan.streams.client_state import ClientState, LeastLoaded
from rackspan.streams.java_order import task_hash, walk
from rackspan.streams.problem import RACK_TAG, Problem, TaskId

TagsOf = Callable[[ClientState], Mapping[str, str]]
Shortfall = dict[int, int]
"""Task → standbys that found no client."""


class StandbyPlacer(Protocol):
    """A way to place standbys, and what later steps may undo of it."""

    def place(self, tasks: Sequence[int], replicas: int) -> Shortfall: ...
    def may_balance(self, source: ClientState, target: ClientState) -> bool: ...
    def may_move(self, task: int, source: ClientState, target: ClientState) -> bool: ...


@dataclass(frozen=True, slots=True)
class ByLoad:
    """Each standby goes to the least loaded client without the task; anything may move later. Kafka's default."""

    states: Sequence[ClientState]

    def place(self, tasks: Sequence[int], replicas: int) -> Shortfall:
        clients = LeastLoaded(self.states, _load)
        short = {task: _fill(task, replicas, clients) for task in tasks}
        return {task: missing for task, missing in short.items() if missing}

    def may_balance(self, _source: ClientState, _target: ClientState) -> bool:
        return True

    def may_move(self, _task: int, _source: ClientState, _target: ClientState) -> bool:
        return True


@dataclass(slots=True)
class ByTags:
    """Standbys on clients that differ in every configured tag, as far as there are such clients; the rest by load.

    Tags outside `keys` are ignored when placing, but count in both movement rules, as in Kafka.
    """

    states: Sequence[ClientState]
    keys: frozenset[str]
    tags_of: TagsOf
    task_ids: Sequence[TaskId]
    _alike: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    _values: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for state in self.states:
            for key, value in self.tags_of(state).items():
                self._alike.setdefault((key, value), set()).add(state.index)
                self._values.setdefault(key, set()).add(value)

    def place(self, tasks: Sequence[int], replicas: int) -> Shortfall:
        clients = LeastLoaded(self.states, _load)
        owner = {task: state for state in self.states for task in state.active}
        short: Shortfall = {}
        for task in tasks:
            missing = self._spread(task, owner[task], replicas, clients) if task in owner else replicas
            if missing:
                short[task] = missing
        left = {task: _fill(task, short[task], clients) for task in self._in_java_order(sorted(short), len(tasks))}
        return {task: missing for task, missing in left.items() if missing}

    def _in_java_order(self, tasks: Sequence[int], fullest: int) -> list[int]:
        return [tasks[at] for at in walk([task_hash(self.task_ids[task]) for task in tasks], fullest=fullest)]

    def _spread(self, task: int, owner: ClientState, replicas: int, clients: LeastLoaded) -> int:
        """Place standbys of one task away from every tag used so far. Returns how many found no place."""
        excluded: dict[tuple[str, str], set[int]] = {}
        polled: list[ClientState] = []
        last = owner
        while len(polled) < replicas:
            self._exclude(last, len(polled) + 1, excluded)
            found = clients.poll(lambda state: not state.holds(task) and not _among(state, excluded))
            if found is None:
                break
            found.standby.add(task)
            polled.append(found)
            last = found
        for state in polled:
            clients.offer(state)
        return replicas - len(polled)

    def _exclude(self, used: ClientState, used_clients: int, excluded: dict[tuple[str, str], set[int]]) -> None:
        """Exclude all that share a tag with `used`, unless every value of that tag is taken already: then it is dropped."""
        for key, value in self.tags_of(used).items():
            if key not in self.keys:
                continue
            if len(self._values[key]) <= used_clients:
                for pair in [pair for pair in excluded if pair[0] == key]:
                    del excluded[pair]
            else:
                excluded[key, value] = self._alike[key, value]

    def may_balance(self, source: ClientState, target: ClientState) -> bool:
        """Between clients alike in every tag of the source."""
        there = self.tags_of(target)
        return all(there.get(key) == value for key, value in self.tags_of(source).items())

    def may_move(self, task: int, source: ClientState, target: ClientState) -> bool:
        """Where the holders of the task show no fewer distinct tags afterwards."""
        others = {pair for state in self._holders(task) if state not in (source, target) for pair in self._pairs(state)}
        return len(others | self._pairs(target)) >= len(others | self._pairs(source))

    def _holders(self, task: int) -> Iterator[ClientState]:
        return (state for state in self.states if state.holds(task))

    def _pairs(self, state: ClientState) -> set[tuple[str, str]]:
        return set(self.tags_of(state).items())


def placer_for(problem: Problem, states: Sequence[ClientState], across_racks: bool) -> StandbyPlacer:
    """Tags where configured; else racks as one synthetic tag when `across_racks`; else load alone.

    Kafka has the synthetic tag but its HighAvailability assignor never asks for it: without tags, standbys may share the
    rack of their active task there (the text's 4.C wants them apart).
    """
    keys = problem.configs.rack_aware_assignment_tags
    if keys:
        return ByTags(states, frozenset(keys), _client_tags, problem.tasks.ids)
    if across_racks and all(client.rack is not None for client in problem.clients):
        return ByTags(states, frozenset({RACK_TAG}), _rack_as_tag, problem.tasks.ids)
    return ByLoad(states)


def _client_tags(state: ClientState) -> Mapping[str, str]:
    return state.client.tags


def _rack_as_tag(state: ClientState) -> Mapping[str, str]:
    return {RACK_TAG: state.client.rack or ""}


def _load(state: ClientState) -> float:
    return state.load


def _among(state: ClientState, excluded: Mapping[tuple[str, str], set[int]]) -> bool:
    return any(state.index in alike for alike in excluded.values())


def _fill(task: int, replicas: int, clients: LeastLoaded) -> int:
    """Standbys on the least loaded clients without the task. Returns how many found none."""
    for placed in range(replicas):
        state = clients.poll(lambda state: not state.holds(task))
        if state is None:
            return replicas - placed
        state.standby.add(task)
        clients.offer(state)
    return 0
