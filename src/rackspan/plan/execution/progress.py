"""How far a run is."""

from dataclasses import dataclass

from rackspan.plan.execution.events import Account
from rackspan.plan.execution.observed import ObservedCluster
from rackspan.plan.written import PartitionMove, WrittenStep


@dataclass(frozen=True, slots=True)
class Progress:
    """Step `step` of `steps`; of `copies` replicas to copy, `copied` are in sync; `moving` partitions are under way."""

    step: int
    steps: int
    copied: int
    copies: int
    moving: int


def progress(so_far: Account, seen: ObservedCluster) -> Progress:
    step, copies = so_far.step, so_far.plan.copies(so_far.toward)
    done = sum(copies[number] for number in so_far.done)
    return Progress(
        step=min(len(so_far.done) + 1, len(copies)),
        steps=len(copies),
        copied=done + (_copied(step, so_far, seen) if step is not None else 0),
        copies=sum(copies.values()),
        moving=sum(place in so_far.plan.by_place for place in seen.in_flight),
    )


def _copied(step: WrittenStep, so_far: Account, seen: ObservedCluster) -> int:
    return sum(_in_sync(move, so_far, seen) for move in step.moves)


def _in_sync(move: PartitionMove, so_far: Account, seen: ObservedCluster) -> int:
    return len(set(move.arrivals(so_far.toward)) & set(seen.isr.get(move.place, ())))
