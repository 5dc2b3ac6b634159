"""The lag of each client on each stateful task, and which clients are caught up (KIP-441).

Few clients have ever had a given task, so only their lags are stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rackspan.model.ids import INT64_MAX
from rackspan.streams.problem import ALL_CAUGHT_UP, LATEST, Client, Problem

NEVER_ASSIGNED = INT64_MAX
"""Lag of a client that never had the task: it would restore all of it."""


@dataclass(frozen=True, slots=True)
class TaskLags:
    """`known[t]` maps client to lag for stateful task t; every other client has the lag NEVER_ASSIGNED."""

    known: dict[int, dict[int, int]]
    clients: int
    acceptable: int

    def lag(self, task: int, client: int) -> int:
        return self.known.get(task, {}).get(client, NEVER_ASSIGNED)

    def caught_up(self, task: int, client: int) -> bool:
        return _is_caught_up(self.lag(task, client), self.acceptable)

    def caught_up_clients(self, task: int) -> list[int]:
        """Clients that could run `task` at once."""
        if self.acceptable == ALL_CAUGHT_UP:
            return list(range(self.clients))
        known = self.known.get(task, {})
        return [client for client, lag in known.items() if _is_caught_up(lag, self.acceptable)]

    def least(self, task: int) -> int:
        """The least lag of any client. UNKNOWN sorts before LATEST and so comes first, as in Kafka."""
        known = self.known.get(task, {})
        return min(known.values(), default=NEVER_ASSIGNED)

    def ranked_before(self, task: int, client: int) -> Iterator[int]:
        """Clients that come before `client` by (lag, client)."""
        known, limit = self.known.get(task, {}), (self.lag(task, client), client)
        ranked = sorted((lag, other) for other, lag in known.items() if (lag, other) < limit)
        yield from (other for _, other in ranked)
        if limit[0] == NEVER_ASSIGNED:
            yield from (other for other in range(client) if other not in known)


def _is_caught_up(lag: int, acceptable: int) -> bool:
    return lag == LATEST or acceptable == ALL_CAUGHT_UP or 0 <= lag <= acceptable


def task_lags(problem: Problem) -> TaskLags:
    """The lags of a problem's clients on its stateful tasks."""
    known: dict[int, dict[int, int]] = {}
    for index, client in enumerate(problem.clients):
        for task, lag in _lags_of(client).items():
            if problem.tasks.stateful[task] and lag != NEVER_ASSIGNED:
                known.setdefault(task, {})[index] = lag
    return TaskLags(known, len(problem.clients), problem.configs.acceptable_recovery_lag)


def _lags_of(client: Client) -> dict[int, int]:
    """Lag by task: as reported; else LATEST for a previous active task and 0 for a previous standby."""
    lags: dict[int, int] = dict.fromkeys(client.prev_standby, 0)
    lags.update(dict.fromkeys(client.prev_active, LATEST))
    lags.update(client.lags)
    return lags
