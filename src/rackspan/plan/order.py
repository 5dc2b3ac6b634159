"""Which partitions move first, and how many at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from rackspan.audit.batch import PartitionBatch, snapshot_batch
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.policy import RackPolicy
from rackspan.model.ids import NO_BROKER
from rackspan.model.partitions import Bools, Int64s
from rackspan.plan.steps import Caps, Step
from rackspan.reassign import FORCES_RACKS, Plan

RISKS: tuple[tuple[str, frozenset[str]], ...] = (
    ("acks=all is refused or unsafe now", frozenset({"under-min-isr", "under-min-racks"})),
    ("a replica is on a broker that is gone", frozenset({"unknown-broker"})),
    ("the loss of one rack can lose acknowledged data", frozenset({"min-insync-racks-satisfiable"})),
    ("replicas are spread over racks unevenly", frozenset({"rack-spread"})),
)
"""Why a partition has to move, the most urgent reason first."""

OTHERS = "asked for by the request, or for balance"
EXPOSED = "safe now and afterwards, but while it moves one rack too few may acknowledge acks=all"
FREE = "leaders only, or replicas removed: nothing is copied"


def in_steps(plan: Plan, policy: RackPolicy = RackPolicy(), caps: Caps = Caps()) -> tuple[Step, ...]:
    """Order and batch a plan.

    Constraints: every step within `caps`; every partition in exactly one step.
    Goals, in order: partitions at risk before others, each step for one reason; those that are put at risk by moving
    after all other copies, so that a minimum can be raised for their steps alone; small ones first, so that as many as can
    be are safe as early as can be; few steps.
    Method: first fit in that order. What copies nothing comes last: it must not wait for a copy, nor a copy for it.
    Bound: linear in the partitions.
    """
    seen = snapshot_batch(plan.snapshot, policy)
    rank, entry_bytes = _ranks(plan, seen), plan.entry_bytes
    order = np.lexsort((np.arange(len(plan.rows)), entry_bytes, rank))
    reasons = [*(words for words, _ in RISKS), OTHERS, EXPOSED, FREE]
    found: list[Step] = []
    for risk, words in enumerate(reasons):
        mine = order[rank[order] == risk]
        found += [_step(plan, words, entries, entry_bytes) for entries in _batches(plan, mine, entry_bytes, caps)]
    return tuple(found)


def _ranks(plan: Plan, seen: PartitionBatch) -> Int64s:
    """Each reassignment's place among RISKS, then OTHERS, EXPOSED, FREE."""
    rank = np.full(len(plan.rows), len(RISKS), dtype=np.int64)
    for risk, (_, names) in reversed(list(enumerate(RISKS))):
        for constraint in PARTITION_CONSTRAINTS:
            if constraint.name in names:
                broken: Bools = constraint.broken(seen)[plan.rows]
                rank[broken] = risk
    others = np.flatnonzero(rank == len(RISKS))
    rank[others[_exposed(plan, seen, others)]] = len(RISKS) + 1
    rank[plan.arrivals == 0] = len(RISKS) + 2
    return rank


def _exposed(plan: Plan, seen: PartitionBatch, entries: Int64s) -> Bools:
    """Whose minimum forces racks among the replicas there are, but not among old and new ones together."""
    (forces,) = (one for one in PARTITION_CONSTRAINTS if one.name == FORCES_RACKS)
    now = seen.rows.take(plan.rows[entries])
    target = plan.replicas[entries]
    arriving = np.where((target[:, :, None] == now.replicas[:, None, :]).any(axis=2), NO_BROKER, target)
    together = replace(now, replicas=np.concatenate([now.replicas, arriving], axis=1))
    moving = PartitionBatch(seen.members, seen.topics, together, seen.required.of(plan.rows[entries].astype(np.int32)))
    return np.asarray(forces.broken(moving) & ~forces.broken(seen)[plan.rows[entries]])


def _step(plan: Plan, reason: str, entries: Int64s, entry_bytes: Int64s) -> Step:
    return Step(reason, entries, int(plan.arrivals[entries].sum()), int(entry_bytes[entries].sum()))


@dataclass(slots=True)
class _Open:
    """A step that may still take more."""

    entries: list[int] = field(default_factory=list)
    moves: int = 0
    bytes: int = 0
    received: dict[int, int] = field(default_factory=dict)


def _batches(plan: Plan, order: Int64s, entry_bytes: Int64s, caps: Caps) -> Iterator[Int64s]:
    """First fit over the steps that are not full yet."""
    steps: list[_Open] = []
    first_open = 0
    next_of_broker: dict[int, int] = {}
    arriving = _arriving(plan, order) if caps.moves_per_broker is not None else {}
    for entry in order.tolist():
        moves, size = int(plan.arrivals[entry]), int(entry_bytes[entry])
        brokers = arriving.get(entry, ())
        at = max([first_open, *(next_of_broker.get(broker, 0) for broker in brokers)])
        while at < len(steps) and not _takes(steps[at], moves, size, brokers, caps):
            # Whatever comes later is at least as large: a step without room for this one is full for good.
            first_open += at == first_open and not _has_room(steps[at], moves, size, caps)
            at += 1
        if at == len(steps):
            steps.append(_Open())
        _put(steps[at], entry, moves, size, brokers)
        for broker in brokers:
            if caps.moves_per_broker is not None and steps[at].received[broker] >= caps.moves_per_broker:
                next_of_broker[broker] = max(next_of_broker.get(broker, 0), at + 1)
    for step in steps:
        yield np.array(step.entries, dtype=np.int64)


def _takes(step: _Open, moves: int, size_bytes: int, brokers: tuple[int, ...], caps: Caps) -> bool:
    if caps.moves_per_broker is not None and any(step.received.get(b, 0) >= caps.moves_per_broker for b in brokers):
        return False
    return _has_room(step, moves, size_bytes, caps)


def _has_room(step: _Open, moves: int, size_bytes: int, caps: Caps) -> bool:
    return (
        (caps.partitions is None or len(step.entries) < caps.partitions)
        and (caps.moves is None or step.moves + moves <= caps.moves)
        and (caps.bytes is None or step.bytes + size_bytes <= caps.bytes)
    )


def _put(step: _Open, entry: int, moves: int, size_bytes: int, brokers: tuple[int, ...]) -> None:
    step.entries.append(entry)
    step.moves += moves
    step.bytes += size_bytes
    for broker in brokers:
        step.received[broker] = step.received.get(broker, 0) + 1


def _arriving(plan: Plan, entries: Int64s) -> dict[int, tuple[int, ...]]:
    """Brokers that receive a copy, by entry."""
    target, current = plan.replicas[entries], plan.snapshot.partitions.replicas[plan.rows[entries]]
    new = (target != NO_BROKER) & ~(target[:, :, None] == current[:, None, :]).any(axis=2)
    return {entry: tuple(row[mask].tolist()) for entry, row, mask in zip(entries.tolist(), target, new, strict=True)}
