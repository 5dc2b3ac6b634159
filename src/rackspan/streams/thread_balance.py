"""Even out a role's tasks over threads (HighAvailability, steps 2 and 4 of the text)."""

from collections.abc import Callable, Sequence

from rackspan.streams.client_state import ClientState

Role = Callable[[ClientState], set[int]]
MayMove = Callable[[ClientState, ClientState], bool]


def active(state: ClientState) -> set[int]:
    return state.active


def standby(state: ClientState) -> set[int]:
    return state.standby


def anywhere(_source: ClientState, _target: ClientState) -> bool:
    return True


def balance_over_threads(states: Sequence[ClientState], role: Role, may_move: MayMove = anywhere) -> None:
    """Move tasks of `role` from fuller to emptier clients until no move helps.

    Constraints: a task is on a client once, in whatever role; `may_move` allows the pair of clients.
    Goal: loads (tasks of both roles by threads) as even as single moves make them.
    Method: pairs of clients in Kafka's order, a source's tasks in ascending order, until a whole round moves nothing.
    Bound: every move narrows a gap, so rounds end; one round is C² comparisons.
    """
    moving = True
    while moving:
        moving = False
        for source in states:
            least = min(state.load for state in states)
            if source.load <= least:
                continue
            for target in states:
                if _helps(source, target) and may_move(source, target):
                    moving |= _move_some(source, target, role)


def _helps(source: ClientState, target: ClientState) -> bool:
    """Whether one task moved leaves the source no emptier than the target, and the gap smaller."""
    skew = source.load - target.load
    if source is target or skew <= 0:
        return False
    after = (source.count - 1) / source.threads - (target.count + 1) / target.threads
    return 0 <= after < skew


def _move_some(source: ClientState, target: ClientState, role: Role) -> bool:
    moved = False
    for task in sorted(role(source)):
        if not _helps(source, target):
            break
        if not target.holds(task):
            role(source).remove(task)
            role(target).add(task)
            moved = True
    return moved
