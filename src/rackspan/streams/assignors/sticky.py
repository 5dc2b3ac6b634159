"""The sticky assignor: tasks stay where they were, as far as capacity lets them (Kafka's LegacyStickyTaskAssignor).

Kafka walks Java hash maps here, in an order of no meaning, which settles ties; so do we (java_order.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rackspan.streams.active import Optimum, optimize_states
from rackspan.streams.client_state import ClientState, empty_states
from rackspan.streams.java_order import process_hash, task_hash, walk
from rackspan.streams.problem import KAFKA, STATELESS_COSTS, STICKY_COSTS, Options, Problem, RackAwareness
from rackspan.streams.standby import optimize_standby
from rackspan.streams.task_assignment import AssignorOutput, frozen


def sticky(problem: Problem, awareness: RackAwareness, options: Options = KAFKA) -> AssignorOutput:
    """Assign tasks by stickiness, then optimise what racks allow.

    Constraints: each task is active on one client; a client has a task once.
    Goals in order: previous owners within their quota of floor(tasks / threads) for each thread; previous standbys;
    even load; different pairs of tasks together; then least cost, at which staying counts ten times a partition.
    Never asks for a probing rebalance.
    """
    table = _stickiness(problem)
    table.assign_active(preserve=False)
    stateful, stateless = _optimize_active(problem, table.states, awareness, options)
    short = table.assign_standbys(problem.stateful.tolist(), problem.configs.num_standbys)
    standby_cost = _optimize_standbys(problem, table.states, awareness, options)
    return AssignorOutput(frozen(table.states), stateful, stateless, standby_cost, short=tuple(short))


def prior_tasks(problem: Problem) -> AssignorOutput:
    """What Kafka falls back to when lags cannot be had: every task back to its owner, without racks, and a probing rebalance."""
    table = _stickiness(problem)
    table.assign_active(preserve=True)
    short = table.assign_standbys(problem.stateful.tolist(), problem.configs.num_standbys)
    return AssignorOutput(frozen(table.states), probing_rebalance=True, short=tuple(short))


def _optimize_active(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> tuple[Optimum | None, Optimum | None]:
    if not awareness.enabled:
        return None, None
    costs = problem.configs.costs(STICKY_COSTS)
    stateful = optimize_states(problem, states, problem.stateful, costs, options)
    return stateful, optimize_states(problem, states, problem.stateless, STATELESS_COSTS, options)


def _optimize_standbys(
    problem: Problem, states: Sequence[ClientState], awareness: RackAwareness, options: Options
) -> int | None:
    if not awareness.enabled or not problem.configs.num_standbys:
        return None
    # Kafka allows every move here, so tags and racks apart can be lost.
    return optimize_standby(problem, states, problem.configs.costs(STICKY_COSTS), lambda *_: True, options)


def _stickiness(problem: Problem) -> "_Stickiness":
    return _Stickiness(
        empty_states(problem),
        task_hashes=[task_hash(task) for task in problem.tasks.ids],
        client_hashes=[process_hash(client.process_id) for client in problem.clients],
    )


@dataclass(slots=True)
class _Stickiness:
    """The work table and what it remembers: previous clients of each task, and which tasks have met on a client."""

    states: list[ClientState]
    task_hashes: Sequence[int]
    client_hashes: Sequence[int]
    _owner: dict[int, ClientState] = field(default_factory=dict)
    _standbys: dict[int, list[ClientState]] = field(default_factory=dict)
    _pairs: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for state in self.states:
            self._owner.update(dict.fromkeys(state.client.prev_active, state))
            for task in state.client.prev_standby:
                self._standbys.setdefault(task, []).append(state)

    @property
    def tasks(self) -> int:
        return len(self.task_hashes)

    def assign_active(self, preserve: bool) -> None:
        quota = self.tasks // sum(state.threads for state in self.states)
        for task in self._tasks_in_java_order(sorted(self._owner)):
            state = self._owner[task]
            if preserve or _has_room(state, quota):
                self._give(task, state, state.active)
        given = {task for state in self.states for task in state.active}
        everyone = self._tasks_in_java_order(range(self.tasks), copied=True)
        rest = [task for task in everyone if task not in given and not self._give_to_standby(task, quota)]
        for task in sorted(rest):
            self._give_to_best(task, self.states, active=True)

    def assign_standbys(self, tasks: Sequence[int], replicas: int) -> list[tuple[int, int]]:
        """Place standbys. Returns (task, standbys that found no client)."""
        ordered = self._tasks_in_java_order(tasks)
        return [(task, short) for task in ordered if (short := self._assign_standbys_of(task, replicas))]

    def _tasks_in_java_order(self, tasks: Sequence[int], copied: bool = False) -> list[int]:
        return [tasks[position] for position in walk([self.task_hashes[task] for task in tasks], copied)]

    def _in_java_order(self, states: Sequence[ClientState], copied: bool = False) -> list[ClientState]:
        return [states[position] for position in walk([self.client_hashes[state.index] for state in states], copied)]

    def _assign_standbys_of(self, task: int, replicas: int) -> int:
        for placed in range(replicas):
            free = [state for state in self.states if not state.holds(task)]
            if not free:
                return replicas - placed
            self._give_to_best(task, self._in_java_order(free), active=False)
        return 0

    def _give_to_standby(self, task: int, quota: int) -> bool:
        holders = self._in_java_order(self._standbys.get(task, ()))
        state = next((state for state in holders if _has_room(state, quota)), None)
        if state is not None:
            self._give(task, state, state.active)
        return state is not None

    def _give_to_best(self, task: int, within: Sequence[ClientState], active: bool) -> None:
        state = self._best(task, within)
        self._give(task, state, state.active if active else state.standby)

    def _give(self, task: int, state: ClientState, role: set[int]) -> None:
        for other in (*state.active, *state.standby):
            self._pairs.add(_pair(task, other))
        role.add(task)

    def _best(self, task: int, within: Sequence[ClientState]) -> ClientState:
        """A previous holder, unless it is full while another has more room; else the least loaded."""
        if len(within) == 1:
            return within[0]
        standby = self._previous_standby(task, within)
        previous = self._owner.get(task)
        if previous is None or previous not in within:
            previous = standby
        if previous is not None and not self._should_balance(previous):
            return previous
        if previous is not None and standby is not None and not self._should_balance(standby):
            return standby
        return self._least_loaded(task, within)

    def _previous_standby(self, task: int, within: Sequence[ClientState]) -> ClientState | None:
        holders = self._in_java_order(self._standbys.get(task, ()), copied=True)
        here = [state for state in holders if state in within]
        return self._least_loaded(task, here) if here else None

    def _should_balance(self, state: ClientState) -> bool:
        return state.count >= state.threads and any(_roomier(other, state) for other in self.states)

    def _least_loaded(self, task: int, among: Sequence[ClientState]) -> ClientState:
        """The first empty client; else the least loaded where the task makes a new pair; else the least loaded."""
        found = self._first_least(state for state in among if not state.count or self._new_pair(task, state))
        return found or self._first_least(among) or among[0]

    def _first_least(self, among: Iterable[ClientState]) -> ClientState | None:
        least: ClientState | None = None
        for state in among:
            if not state.count:
                return state
            if least is None or _roomier(state, least):
                least = state
        return least

    def _new_pair(self, task: int, state: ClientState) -> bool:
        if len(self._pairs) == self.tasks * (self.tasks - 1) // 2:
            return False
        return any(_pair(task, other) not in self._pairs for other in (*state.active, *state.standby))


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _has_room(state: ClientState, quota: int) -> bool:
    return len(state.active) < state.threads * quota


def _roomier(one: ClientState, other: ClientState) -> bool:
    """Less load, or as much on more threads."""
    return one.load < other.load or (one.load == other.load and one.threads > other.threads)
