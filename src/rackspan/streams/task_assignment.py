"""What an assignor answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from rackspan.streams.active import Optimum
from rackspan.streams.client_state import ClientState


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """Each client's tasks, clients in Kafka's order, tasks by position."""

    active: tuple[frozenset[int], ...]
    standby: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class AssignorOutput:
    """An assignment and how it came about.

    `stateful` and `stateless` are the optima of both sets of active tasks, `standby_cost` the traffic of optimised
    standbys; None where nothing was optimised. `short` counts standbys that found no client, by task.
    """

    assignment: TaskAssignment
    stateful: Optimum | None = None
    stateless: Optimum | None = None
    standby_cost: int | None = None
    probing_rebalance: bool = False
    short: tuple[tuple[int, int], ...] = ()


def frozen(states: Sequence[ClientState]) -> TaskAssignment:
    return TaskAssignment(
        active=tuple(frozenset(state.active) for state in states),
        standby=tuple(frozenset(state.standby) for state in states),
    )
