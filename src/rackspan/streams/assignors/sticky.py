"""The sticky assignor: tasks stay on their clients as far as capacity allows (Kafka's LegacyStickyTaskAssignor).

Kafka iterates over Java hash maps here, and their order breaks ties. It is reproduced (java_order.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rackspan.streams.active import Optimum, optimize_states
from rackspan.streams.client_state import ClientState, empty_states
from rackspan.streams.java_order import hash_order, process_hash, task_hash
from rackspan.streams.problem import KAFKA, STATELESS_COSTS, STICKY_COSTS, Options, Problem
from rackspan.streams.rack_awareness import RackAwareness
from rackspan.streams.standby import optimize_standby
from rackspan.streams.task_assignment import AssignorOutput, frozen


def sticky(problem: Problem, awareness: RackAwareness, options: Options = KAFKA) -> AssignorOutput:
    """Assign tasks by stickiness, then optimise for racks.

    Constraints: each task is active on one client; a client has a task once.
    Goals in order: tasks on their previous owner, within its quota of floor(tasks / threads) for each thread; on a previous
    standby; even load; different pairs of tasks on one client; then the least cost, in which a task that leaves its client
    weighs as much as ten partitions across racks. Client tags do not count, as in Kafka: the output says so.
    Method: Kafka's, step by step; greedy, then the flows of active/ and the exchanges of standby/. No probing rebalance.
    Bound: T · C comparisons of clients and T² / C pairs before the optimisation. Proven by tests/streams/test_kafka_vectors.py (recorded from Kafka) and
    tests/compat/test_streams.py (Kafka's classes).
    """
    table = _StickyTable(
        empty_states(problem),
        task_hashes=[task_hash(task) for task in problem.tasks.ids],
        client_hashes=[process_hash(client.process_id) for client in problem.clients],
    )
    table.assign_active()
    stateful, stateless = _optimize_active(problem, table.states, awareness, options)
    missing = table.assign_standbys(problem.stateful.tolist(), problem.configs.num_standbys)
    standby_cost = _optimize_standbys(problem, table.states, awareness, options)
    return AssignorOutput(
        frozen(table.states),
        stateful,
        stateless,
        standby_cost,
        missing_standbys=tuple(missing),
        default_costs=STICKY_COSTS,
        tags_followed=False,
    )


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
    # Kafka allows every move here, so standbys can lose their different tags and racks.
    return optimize_standby(problem, states, problem.configs.costs(STICKY_COSTS), lambda *_: True, options)


@dataclass(slots=True)
class _StickyTable:
    """The clients' states, the previous clients of each task, and the pairs of tasks that are together on a client."""

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

    def assign_active(self) -> None:
        """Assign each task to its previous owner, else to a previous standby, else to the best client."""
        quota = self.tasks // sum(state.threads for state in self.states)
        for task in self._tasks_in_java_order(sorted(self._owner)):
            state = self._owner[task]
            if _has_capacity(state, quota):
                self._give(task, state, state.active)
        assigned = {task for state in self.states for task in state.active}
        all_tasks = self._tasks_in_java_order(range(self.tasks), copied=True)
        rest = [task for task in all_tasks if task not in assigned and not self._give_to_standby(task, quota)]
        for task in sorted(rest):
            self._give_to_best(task, self.states, active=True)

    def assign_standbys(self, tasks: Sequence[int], replicas: int) -> list[tuple[int, int]]:
        """Place standbys. Returns (task, number of standbys not placed)."""
        ordered = self._tasks_in_java_order(tasks)
        return [(task, missing) for task in ordered if (missing := self._assign_standbys_of(task, replicas))]

    def _tasks_in_java_order(self, tasks: Sequence[int], copied: bool = False) -> list[int]:
        return [tasks[position] for position in hash_order([self.task_hashes[task] for task in tasks], copied)]

    def _in_java_order(self, states: Sequence[ClientState], copied: bool = False) -> list[ClientState]:
        return [
            states[position] for position in hash_order([self.client_hashes[state.index] for state in states], copied)
        ]

    def _assign_standbys_of(self, task: int, replicas: int) -> int:
        for placed in range(replicas):
            free = [state for state in self.states if not state.holds(task)]
            if not free:
                return replicas - placed
            self._give_to_best(task, self._in_java_order(free), active=False)
        return 0

    def _give_to_standby(self, task: int, quota: int) -> bool:
        holders = self._in_java_order(self._standbys.get(task, ()))
        state = next((state for state in holders if _has_capacity(state, quota)), None)
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
        """A previous client of the task, unless it is full and another has more capacity left; else the least loaded."""
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
        candidates = [state for state in holders if state in within]
        return self._least_loaded(task, candidates) if candidates else None

    def _should_balance(self, state: ClientState) -> bool:
        return state.count >= state.threads and any(_less_loaded(other, state) for other in self.states)

    def _least_loaded(self, task: int, within: Sequence[ClientState]) -> ClientState:
        """The first empty client; else the least loaded where the task makes a new pair; else the least loaded."""
        preferred = self._first_least(state for state in within if not state.count or self._new_pair(task, state))
        return preferred or self._first_least(within) or within[0]

    def _first_least(self, states: Iterable[ClientState]) -> ClientState | None:
        least: ClientState | None = None
        for state in states:
            if not state.count:
                return state
            if least is None or _less_loaded(state, least):
                least = state
        return least

    def _new_pair(self, task: int, state: ClientState) -> bool:
        if len(self._pairs) == self.tasks * (self.tasks - 1) // 2:
            return False
        return any(_pair(task, other) not in self._pairs for other in (*state.active, *state.standby))


def _pair(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def _has_capacity(state: ClientState, quota: int) -> bool:
    return len(state.active) < state.threads * quota


def _less_loaded(state: ClientState, other: ClientState) -> bool:
    """Whether `state` has less load than `other`, or the same load on more threads."""
    return state.load < other.load or (state.load == other.load and state.threads > other.threads)
