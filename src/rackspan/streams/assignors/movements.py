"""Temporary movements: a task runs where its state is until the intended client has warmed up (KIP-441).

Racks and tags do not count here: in a temporary assignment, downtime matters more than traffic (KIP-925, 4).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rackspan.errors import UnprovenResult
from rackspan.streams.assignors.lags import TaskLags
from rackspan.streams.assignors.thread_balance import Role, active, standby
from rackspan.streams.client_state import ClientState
from rackspan.streams.java_order import heap_order


@dataclass(slots=True)
class Movements:
    """Moves active, then standby tasks to clients that are caught up; both share one budget of warm-ups."""

    states: Sequence[ClientState]
    lags: TaskLags
    warmups_left: int
    warmups: set[tuple[int, int]] = field(default_factory=set)

    def move_active_tasks(self) -> int:
        """Move active tasks. Returns the number of movements, swaps and those without a warm-up included."""
        scheduled = self._scheduled(active)
        for task, client in scheduled:
            self._move_active(task, self.states[client])
        return len(scheduled)

    def move_standby_tasks(self) -> int:
        """Move standby tasks. Returns the number of movements; a standby stays where no client is more caught up."""
        return sum(self._move_standby(task, self.states[client]) for task, client in self._scheduled(standby))

    def _scheduled(self, role: Role) -> list[tuple[int, int]]:
        """(Task, intended client), tasks with the fewest caught-up clients first. Warm-ups of this assignment are not moved."""
        moves = [
            (task, state.index)
            for state in self.states
            for task in sorted(role(state))
            if self._is_due(task, state.index)
        ]
        return [
            moves[position]
            for position in heap_order([(len(self.lags.caught_up_clients(task)), task) for task, _ in moves])
        ]

    def _is_due(self, task: int, client: int) -> bool:
        """Whether `client` is not caught up and another client has less lag."""
        return (
            not self.lags.caught_up(task, client)
            and self.lags.least(task) < self.lags.lag(task, client)
            and (task, client) not in self.warmups
        )

    def _move_active(self, task: int, intended: ClientState) -> None:
        caught_up = self._caught_up(task)
        source = (
            _least_loaded(state for state in caught_up if task in state.standby)
            or _least_loaded(caught_up)
            or self._most_caught_up(task, intended, any_client=True)
        )
        if source is None:
            raise UnprovenResult(
                f"task {task}: a movement was scheduled but no client can take it; report this as a bug"
            )
        if task in source.standby:
            _swap_roles(task, source, intended)
        else:
            self._run_elsewhere(task, source, intended)

    def _run_elsewhere(self, task: int, source: ClientState, intended: ClientState) -> None:
        source.active.add(task)
        intended.active.remove(task)
        if self._spend_warmup():
            intended.standby.add(task)
            self.warmups.add((task, intended.index))

    def _move_standby(self, task: int, intended: ClientState) -> bool:
        free = (state for state in self._caught_up(task) if not state.holds(task))
        source = _least_loaded(free) or self._most_caught_up(task, intended, any_client=False)
        if source is None:
            return False
        source.standby.add(task)
        if not self._spend_warmup():
            intended.standby.remove(task)
        return True

    def _caught_up(self, task: int) -> list[ClientState]:
        return [self.states[client] for client in self.lags.caught_up_clients(task)]

    def _most_caught_up(self, task: int, intended: ClientState, any_client: bool) -> ClientState | None:
        ranked = (self.states[client] for client in self.lags.ranked_before(task, intended.index))
        return next((state for state in ranked if any_client or not state.holds(task)), None)

    def _spend_warmup(self) -> bool:
        self.warmups_left -= 1
        return self.warmups_left >= 0


def _least_loaded(states: Iterable[ClientState]) -> ClientState | None:
    return min(states, key=lambda state: (state.load, state.index), default=None)


def _swap_roles(task: int, source: ClientState, intended: ClientState) -> None:
    source.standby.remove(task)
    source.active.add(task)
    intended.active.remove(task)
    intended.standby.add(task)
