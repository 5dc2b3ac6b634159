"""Divides a plan into steps: the most urgent partitions first, and no more at a time than the limits allow."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from rackspan.audit import PartitionBatch, RackPolicy, snapshot_batch
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.loads import BELIEVED_BYTES_MAX
from rackspan.errors import UsageError
from rackspan.model import NO_BROKER, Bools, ClusterSnapshot, Int64s, any_in_row
from rackspan.reassign import (
    FORCES_RACKS,
    ReassignmentColumns,
    ReassignmentPlan,
    ReassignmentRequest,
    Step,
    refuses_midway,
    snapshot_rows,
)


@dataclass(frozen=True, slots=True)
class StepLimits:
    """What one step may hold at most. None sets no limit; a partition larger than a limit makes a step of its own.

    `moves`: replicas copied. `bytes`: of those with a known size. `moves_per_broker`: copies that one broker receives.
    `partitions`: reassignments, reorderings included: all of them go to the controller in one request.
    """

    moves: int | None = 1_000
    bytes: int | None = None
    moves_per_broker: int | None = None
    partitions: int | None = 10_000

    def __post_init__(self) -> None:
        for name in ("moves", "bytes", "moves_per_broker", "partitions"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(
                    f"at most {value} {name.replace('_', ' ')} in a step: nothing could move; allow 1 or more"
                )


RISKS: tuple[tuple[str, frozenset[str]], ...] = (
    ("acks=all is refused or unsafe now", frozenset({"under-min-isr", "under-min-racks"})),
    ("a replica is on a broker that is gone", frozenset({"unknown-broker"})),
    ("the loss of one rack can lose acknowledged data", frozenset({"min-insync-racks-satisfiable"})),
    ("replicas are spread over racks unevenly", frozenset({"rack-spread"})),
)
"""Why a partition has to move, the most urgent reason first."""

OTHERS = "at no risk now"
BALANCE = "for balance"
EXPOSED = "safe before and after; during the move acks=all may be acknowledged with one rack too few"
REFUSED = (
    "; acks=all is refused until a copy is in sync, as min.insync.replicas is above the replication factor: "
    "lower it to that first, and raise it again afterwards"
)
"""Added to the reason of a step. From Kafka 3.7 on; brokers before refuse such partitions in any case."""
FREE = "leaders only, or replicas removed: nothing is copied"


def order_steps(
    snapshot: ClusterSnapshot,
    plan: ReassignmentPlan,
    policy: RackPolicy = RackPolicy(),
    limits: StepLimits = StepLimits(),
    request: ReassignmentRequest | None = None,
) -> ReassignmentPlan:
    """The same reassignments, ordered and divided into steps. `snapshot` is the one that was planned on, `request` what for.

    Constraints: every step within `limits`; every partition in exactly one step.
    Goals, in order: partitions at risk before others, each step for one reason; those that are put at risk by moving
    after all other copies, so that a minimum can be raised for their steps alone; small ones first, so that as many as can
    be are safe as early as can be; few steps.
    Method: first fit in that order. What copies nothing comes last: it must not wait for a copy, nor a copy for it.
    Bound: a sort of the partitions. Test: tests/plan/test_order.py.
    """
    if not len(plan):
        return plan
    work, batch = _reassignments(snapshot, plan), snapshot_batch(snapshot, policy)
    # Partitions that refuse acks=all while they move are in steps of their own, so that a value is lowered for these alone.
    rank = 2 * _ranks(work, batch, request or ReassignmentRequest()) + refuses_midway(
        batch, work.rows, work.columns.replicas
    )
    order = np.lexsort((np.arange(len(rank)), work.bytes, rank))
    steps: list[Step] = []
    reasons = [*(words for words, _ in RISKS), _others(request), BALANCE, EXPOSED, FREE]
    for risk, reason in enumerate(words + more for words in reasons for more in ("", REFUSED)):
        for entries in _batches(work, order[rank[order] == risk], limits):
            steps.append(Step(len(steps) + 1, reason, work.columns.take(entries), int(work.bytes[entries].sum())))
    return replace(plan, steps=tuple(steps))


def _others(request: ReassignmentRequest | None) -> str:
    """`requested by --drain`: why partitions move that are at no risk, and not for balance."""
    required_by = [
        *(["--drain"] if request and request.drain else []),
        *(["--replace"] if request and request.replace else []),
        *(["--replication-factor"] if request and request.replication_factor is not None else []),
    ]
    return f"requested by {' and '.join(required_by)}" if required_by else OTHERS


@dataclass(frozen=True, slots=True, eq=False)
class _Reassignments:
    """N reassignments with their rows in the snapshot, what each copies, and the bytes of that. Shapes (N,)."""

    columns: ReassignmentColumns
    rows: Int64s
    additions: Int64s
    bytes: Int64s


def _reassignments(snapshot: ClusterSnapshot, plan: ReassignmentPlan) -> _Reassignments:
    """All of a plan, by topic and partition whatever its order so far."""
    columns = plan.columns()
    rows = snapshot_rows(snapshot, columns)
    additions, size_bytes = columns.additions, snapshot.partitions.size_bytes[rows]
    return _Reassignments(columns, rows, additions, additions * np.clip(size_bytes, 0, BELIEVED_BYTES_MAX))


def _ranks(work: _Reassignments, batch: PartitionBatch, request: ReassignmentRequest) -> Int64s:
    """The position of each reassignment among RISKS, then OTHERS, BALANCE, EXPOSED, FREE."""
    rank = np.full(len(work.rows), len(RISKS), dtype=np.int64)
    for risk, (_, names) in reversed(list(enumerate(RISKS))):
        for constraint in PARTITION_CONSTRAINTS:
            if constraint.name in names:
                broken: Bools = constraint.broken(batch)[work.rows]
                rank[broken] = risk
    others = np.flatnonzero(rank == len(RISKS))
    if request.balance:
        requested = any_in_row(np.isin(batch.rows.replicas[work.rows], list(request.leaving)))
        if request.replication_factor is not None:
            requested |= batch.replication_factor[work.rows] != request.replication_factor
        rank[others[~requested[others]]] = len(RISKS) + 1
    rank[others[_exposed(work, batch, others)]] = len(RISKS) + 2
    rank[work.additions == 0] = len(RISKS) + 3
    return rank


def _exposed(work: _Reassignments, batch: PartitionBatch, entries: Int64s) -> Bools:
    """Whose minimum forces racks among the present replicas, but not among old and new ones together."""
    (forces,) = (
        partition_constraint
        for partition_constraint in PARTITION_CONSTRAINTS
        if partition_constraint.name == FORCES_RACKS
    )
    rows = work.rows[entries]
    now = batch.rows.take(rows)
    columns = work.columns.take(entries)
    added = np.where(columns.is_added, columns.replicas, NO_BROKER)
    together = replace(now, replicas=np.concatenate([now.replicas, added], axis=1))
    moving = PartitionBatch(batch.members, batch.topics, together, batch.required.of(rows.astype(np.int32)))
    return np.asarray(forces.broken(moving) & ~forces.broken(batch)[rows])


@dataclass(slots=True)
class _OpenStep:
    """A step that may still take more."""

    entries: list[int] = field(default_factory=list)
    moves: int = 0
    bytes: int = 0
    received: dict[int, int] = field(default_factory=dict)


def _batches(work: _Reassignments, order: Int64s, limits: StepLimits) -> Iterator[Int64s]:
    """First fit over the steps that are not full yet."""
    steps: list[_OpenStep] = []
    first_open = 0
    next_of_broker: dict[int, int] = {}
    receivers = _receivers(work.columns, order) if limits.moves_per_broker is not None else {}
    for entry in order.tolist():
        moves, size = int(work.additions[entry]), int(work.bytes[entry])
        brokers = receivers.get(entry, ())
        at = max([first_open, *(next_of_broker.get(broker, 0) for broker in brokers)])
        while at < len(steps) and not _fits(steps[at], moves, size, limits):
            # Whatever comes later is at least as large: a step that this one does not fit is full for good.
            first_open += at == first_open
            at += 1
        if at == len(steps):
            steps.append(_OpenStep())
        _put(steps[at], entry, moves, size, brokers)
        for broker in brokers:
            # No step at or after `next_of_broker` holds as many copies for the broker as it may.
            if limits.moves_per_broker is not None and steps[at].received[broker] >= limits.moves_per_broker:
                next_of_broker[broker] = max(next_of_broker.get(broker, 0), at + 1)
    for step in steps:
        yield np.array(step.entries, dtype=np.int64)


def _fits(step: _OpenStep, moves: int, size_bytes: int, limits: StepLimits) -> bool:
    return (
        (limits.partitions is None or len(step.entries) < limits.partitions)
        and (limits.moves is None or step.moves + moves <= limits.moves)
        and (limits.bytes is None or step.bytes + size_bytes <= limits.bytes)
    )


def _put(step: _OpenStep, entry: int, moves: int, size_bytes: int, brokers: tuple[int, ...]) -> None:
    step.entries.append(entry)
    step.moves += moves
    step.bytes += size_bytes
    for broker in brokers:
        step.received[broker] = step.received.get(broker, 0) + 1


def _receivers(columns: ReassignmentColumns, entries: Int64s) -> dict[int, tuple[int, ...]]:
    """Brokers that receive a copy, by entry."""
    some = columns.take(entries)
    return {
        entry: tuple(row[added].tolist())
        for entry, row, added in zip(entries.tolist(), some.replicas, some.is_added, strict=True)
    }
