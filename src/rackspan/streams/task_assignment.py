"""What an assignor returns: the tasks of each client, with their costs and proofs."""

from collections.abc import Sequence
from dataclasses import dataclass

from rackspan.streams.active import Optimum
from rackspan.streams.client_state import ClientState


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """Each client's tasks. Clients are in Kafka's order; tasks are positions in the problem's TaskColumns."""

    active: tuple[frozenset[int], ...]
    standby: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class AssignorOutput:
    """An assignment, its costs and its proofs.

    `stateful` and `stateless` are the optima of both sets of active tasks, `standby_cost` the traffic of optimised
    standbys; None where nothing was optimised. `missing_standbys` has (task, number of standbys for which there is no
    client). `probing_rebalance` requests another rebalance, as Kafka's assignors do while tasks warm up (KIP-441).
    """

    assignment: TaskAssignment
    stateful: Optimum | None = None
    stateless: Optimum | None = None
    standby_cost: int | None = None
    probing_rebalance: bool = False
    missing_standbys: tuple[tuple[int, int], ...] = ()


def frozen(states: Sequence[ClientState]) -> TaskAssignment:
    """The assignment that the mutable states hold now."""
    return TaskAssignment(
        active=tuple(frozenset(state.active) for state in states),
        standby=tuple(frozenset(state.standby) for state in states),
    )
