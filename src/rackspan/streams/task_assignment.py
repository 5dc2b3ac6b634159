"""What an assignor returns: the tasks of each client, with their costs and proofs."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from rackspan.streams.active import Optimum
from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import HIGH_AVAILABILITY_COSTS, Costs, Int32s, Problem


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """Each client's tasks. Clients are in Kafka's order; tasks are positions in the problem's TaskColumns."""

    active: tuple[frozenset[int], ...]
    standby: tuple[frozenset[int], ...]

    def owner(self, tasks: int) -> Int32s:
        """The client of each active task; every task has one. Shape (tasks,)."""
        owner = np.zeros(tasks, dtype=np.int32)
        for client, held in enumerate(self.active):
            owner[list(held)] = client
        return owner


@dataclass(frozen=True, slots=True)
class AssignorOutput:
    """An assignment, its costs and its proofs.

    `stateful` and `stateless` are the optima of both sets of active tasks, `standby_cost` the traffic of optimised
    standbys; None where nothing was optimised. `missing_standbys` has (task, number of standbys for which there is no
    client). `probing_rebalance` requests another rebalance, as Kafka's assignors do while tasks warm up (KIP-441).
    `default_costs` are the assignor's for stateful tasks. `tags_followed` is False for an assignor that places standbys without rack.aware.assignment.tags.
    """

    assignment: TaskAssignment
    stateful: Optimum | None = None
    stateless: Optimum | None = None
    standby_cost: int | None = None
    probing_rebalance: bool = False
    missing_standbys: tuple[tuple[int, int], ...] = ()
    default_costs: Costs = HIGH_AVAILABILITY_COSTS
    tags_followed: bool = True


def frozen(states: Sequence[ClientState]) -> TaskAssignment:
    """The assignment that the mutable states hold now."""
    return TaskAssignment(
        active=tuple(frozenset(state.active) for state in states),
        standby=tuple(frozenset(state.standby) for state in states),
    )


def active_by_client(owner: Int32s, clients: int) -> tuple[frozenset[int], ...]:
    """The active tasks of each client, from the client of each task."""
    active: list[list[int]] = [[] for _ in range(clients)]
    for task, client in enumerate(owner.tolist()):
        active[client].append(task)
    return tuple(map(frozenset, active))


def moved_tasks(before: Sequence[AbstractSet[int]], after: Sequence[AbstractSet[int]]) -> int:
    """The number of tasks on a client that did not have them before, in one role."""
    return sum(len(new - old) for old, new in zip(before, after, strict=True))


def running_assignment(problem: Problem) -> TaskAssignment:
    """The assignment before the rebalance: the initial one of the problem, else that of the previous generation."""
    clients, owner = problem.clients, problem.initial_active
    return TaskAssignment(
        active=tuple(client.prev_active for client in clients)
        if owner is None
        else active_by_client(owner, len(clients)),
        standby=problem.initial_standby or tuple(client.prev_standby for client in clients),
    )
