"""Standby placement: by load alone, or on clients with different tags (KIP-708)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rackspan.streams.client_state import ClientState, LeastLoaded
from rackspan.streams.java_order import hash_order, task_hash
from rackspan.streams.problem import Problem, TaskId
from rackspan.streams.rack_awareness import RACK_TAG

TagsOf = Callable[[ClientState], Mapping[str, str]]
MissingStandbys = dict[int, int]
"""Task → number of standbys for which there is no client."""


class StandbyPlacer(Protocol):
    """A way to place standbys, and the later moves that it allows."""

    def place(self, tasks: Sequence[int], replicas: int) -> MissingStandbys: ...
    def may_balance(self, source: ClientState, target: ClientState) -> bool: ...
    def may_move(self, task: int, source: ClientState, target: ClientState) -> bool: ...


@dataclass(frozen=True, slots=True)
class ByLoad:
    """Each standby goes to the least loaded client without the task; every later move is allowed. Kafka's default."""

    states: Sequence[ClientState]

    def place(self, tasks: Sequence[int], replicas: int) -> MissingStandbys:
        clients = LeastLoaded(self.states, _load)
        missing = {task: _fill(task, replicas, clients) for task in tasks}
        return {task: count for task, count in missing.items() if count}

    def may_balance(self, _source: ClientState, _target: ClientState) -> bool:
        return True

    def may_move(self, _task: int, _source: ClientState, _target: ClientState) -> bool:
        return True


@dataclass(slots=True)
class ByTags:
    """Standbys on clients that differ in every configured tag, as far as there are such clients; the rest by load.

    Tags outside `keys` are ignored for placement, but count in may_balance and may_move, as in Kafka.
    """

    states: Sequence[ClientState]
    keys: frozenset[str]
    tags_of: TagsOf
    task_ids: Sequence[TaskId]
    _clients_with: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    _values: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for state in self.states:
            for key, value in self.tags_of(state).items():
                self._clients_with.setdefault((key, value), set()).add(state.index)
                self._values.setdefault(key, set()).add(value)

    def place(self, tasks: Sequence[int], replicas: int) -> MissingStandbys:
        clients = LeastLoaded(self.states, _load)
        owner = {task: state for state in self.states for task in state.active}
        unplaced: MissingStandbys = {}
        for task in tasks:
            count = self._spread(task, owner[task], replicas, clients) if task in owner else replicas
            if count:
                unplaced[task] = count
        in_java_order = self._in_java_order(sorted(unplaced), len(tasks))
        missing = {task: _fill(task, unplaced[task], clients) for task in in_java_order}
        return {task: count for task, count in missing.items() if count}

    def _in_java_order(self, tasks: Sequence[int], fullest: int) -> list[int]:
        return [
            tasks[position]
            for position in hash_order([task_hash(self.task_ids[task]) for task in tasks], fullest=fullest)
        ]

    def _spread(self, task: int, owner: ClientState, replicas: int, clients: LeastLoaded) -> int:
        """Place standbys of one task on clients that share no tag with its other clients. Returns the number not placed."""
        excluded: dict[tuple[str, str], set[int]] = {}
        polled: list[ClientState] = []
        last = owner
        while len(polled) < replicas:
            self._exclude(last, len(polled) + 1, excluded)
            state = clients.poll(lambda state: not state.holds(task) and not _is_excluded(state, excluded))
            if state is None:
                break
            state.standby.add(task)
            polled.append(state)
            last = state
        for state in polled:
            clients.offer(state)
        return replicas - len(polled)

    def _exclude(self, used: ClientState, used_clients: int, excluded: dict[tuple[str, str], set[int]]) -> None:
        """Exclude clients that share a tag with `used`. When every value of a tag is in use, the tag no longer excludes any."""
        for key, value in self.tags_of(used).items():
            if key not in self.keys:
                continue
            if len(self._values[key]) <= used_clients:
                for pair in [pair for pair in excluded if pair[0] == key]:
                    del excluded[pair]
            else:
                excluded[key, value] = self._clients_with[key, value]

    def may_balance(self, source: ClientState, target: ClientState) -> bool:
        """Whether the target has the same value for every tag of the source."""
        target_tags = self.tags_of(target)
        return all(target_tags.get(key) == value for key, value in self.tags_of(source).items())

    def may_move(self, task: int, source: ClientState, target: ClientState) -> bool:
        """Whether the clients of the task have no fewer distinct tags after the move."""
        others = {pair for state in self._holders(task) if state not in (source, target) for pair in self._pairs(state)}
        return len(others | self._pairs(target)) >= len(others | self._pairs(source))

    def _holders(self, task: int) -> Iterator[ClientState]:
        return (state for state in self.states if state.holds(task))

    def _pairs(self, state: ClientState) -> set[tuple[str, str]]:
        return set(self.tags_of(state).items())


def placer_for(problem: Problem, states: Sequence[ClientState], across_racks: bool) -> StandbyPlacer:
    """By tags where configured; else with the rack as the only tag, if `across_racks`; else by load alone.

    Kafka has the rack tag too, but its HighAvailabilityTaskAssignor never uses it: without tags, standbys there may share the
    rack of their active task, against KIP-925 4.C.
    """
    keys = problem.configs.rack_aware_assignment_tags
    if keys:
        return ByTags(states, frozenset(keys), _client_tags, problem.tasks.ids)
    if across_racks and all(client.rack is not None for client in problem.clients):
        return ByTags(states, frozenset({RACK_TAG}), _rack_tag, problem.tasks.ids)
    return ByLoad(states)


def _client_tags(state: ClientState) -> Mapping[str, str]:
    return state.client.tags


def _rack_tag(state: ClientState) -> Mapping[str, str]:
    return {RACK_TAG: state.client.rack or ""}


def _load(state: ClientState) -> float:
    return state.load


def _is_excluded(state: ClientState, excluded: Mapping[tuple[str, str], set[int]]) -> bool:
    return any(state.index in clients for clients in excluded.values())


def _fill(task: int, replicas: int, clients: LeastLoaded) -> int:
    """Place standbys on the least loaded clients without the task. Returns the number not placed."""
    for placed in range(replicas):
        state = clients.poll(lambda state: not state.holds(task))
        if state is None:
            return replicas - placed
        state.standby.add(task)
        clients.offer(state)
    return 0
