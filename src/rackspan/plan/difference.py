"""What a plan changes, for people to review: each topic and each broker before and after, and why each partition moves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from rackspan.audit import RackPolicy, snapshot_batch
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.loads import BELIEVED_BYTES_MAX
from rackspan.model import (
    NO_BROKER,
    Bools,
    ClusterSnapshot,
    Int32s,
    Int64s,
    RackId,
    TopicPartition,
    count_in_row,
    unpadded,
)
from rackspan.plan.order import RISKS
from rackspan.reassign import (
    Direction,
    PartitionReassignment,
    ReassignmentColumns,
    reassignment_columns,
    rows_held,
    snapshot_rows,
)
from rackspan.reassign.safety import less_safe, safety_of_rows, words
from rackspan.text import human_bytes

_URGENT: Final = [constraint for _, names in RISKS for constraint in PARTITION_CONSTRAINTS if constraint.name in names]
"""The constraints for whose sake a partition has to move, the most urgent first."""


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """`changed` of `partitions` get other replicas or another order; `moves` replicas are copied, `unsized` of unknown size.

    `racks`: the fewest racks of a changed partition, before and after.
    """

    topic: str
    partitions: int
    changed: int
    moves: int
    bytes: int
    unsized: int
    racks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class BrokerDifference:
    """A broker whose replicas or preferred leaderships change; counts before and after. `rack` None: none, or not listed.

    `bytes_in`: of replicas copied to it. `bytes_out`: of replicas that it gives up. Both as far as sizes are known.
    """

    broker: int
    rack: RackId | None
    replicas: tuple[int, int]
    leaders: tuple[int, int]
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class PartitionDifference:
    """One partition: replicas before and after, and why they change, in words."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class SafetyLoss:
    """Partitions that end less safe than they are. `reason` completes "they would be left"."""

    partitions: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """Topics by name and brokers by id, those that change alone. `safety_loss`: None where no partition is less safe."""

    topics: tuple[TopicDifference, ...]
    brokers: tuple[BrokerDifference, ...]
    safety_loss: SafetyLoss | None


def plan_difference(snapshot: ClusterSnapshot, columns: ReassignmentColumns, policy: RackPolicy) -> PlanDifference:
    """What these reassignments change on the cluster of the snapshot. Errors: InvalidReassignment for unknown partitions."""
    rows = snapshot_rows(snapshot, columns)
    before, after = _before(snapshot, rows, columns), columns.replicas
    return PlanDifference(
        topics=tuple(_topics(snapshot, rows, before, after, policy)),
        brokers=tuple(_brokers(snapshot, rows, before, after)),
        safety_loss=_safety_loss(snapshot, rows, before, after, policy),
    )


def full_disk_lines(snapshot: ClusterSnapshot, difference: PlanDifference) -> Iterator[str]:
    """A line for each broker that gets more bytes than are left on its volumes, as far as both are known. A log directory that is full fails."""
    usable = {int(broker.id): broker.usable_bytes for broker in snapshot.brokers}
    for broker in difference.brokers:
        left = usable.get(broker.broker)
        if left is not None and broker.bytes_in > left:
            yield (
                f"broker {broker.broker}: {human_bytes(broker.bytes_in)} are copied to it, and {human_bytes(left)} are left on its volumes: "
                "a log directory that is full fails; free space there, or move less"
            )


def columns_toward(partitions: Sequence[PartitionReassignment], direction: Direction) -> ReassignmentColumns:
    """The reassignments as they are executed in a direction: `undo` is where they start."""
    return reassignment_columns(
        PartitionReassignment(
            partition.topic, partition.partition, partition.end(direction), partition.start(direction)
        )
        for partition in partitions
    )


def left_to_change(
    snapshot: ClusterSnapshot, partitions: Sequence[PartitionReassignment], direction: Direction
) -> tuple[ReassignmentColumns, Int64s]:
    """What a run in this direction still changes: without the partitions that have their target replicas already.

    `undo` has the replicas of now, unless the partition is being reassigned. Also the position of each in `partitions`.
    """
    columns = columns_toward(partitions, direction)
    rows = snapshot_rows(snapshot, columns)
    moving = (snapshot.partitions.adding_replicas[rows] != NO_BROKER).any(axis=1)
    moving |= (snapshot.partitions.removing_replicas[rows] != NO_BROKER).any(axis=1)
    now, undo, target = _equally_wide(snapshot.partitions.replicas[rows], columns.undo, columns.replicas)
    columns = replace(
        columns, undo=np.where(moving[:, None] & (undo != NO_BROKER).any(axis=1, keepdims=True), undo, now)
    )
    positions = np.flatnonzero(moving | (now != target).any(axis=1))
    return columns.take(positions), positions


def known_sizes(snapshot: ClusterSnapshot, columns: ReassignmentColumns) -> dict[TopicPartition, int]:
    """Bytes of one copy of each partition, where its size is known. One that was deleted since it was copied has none."""
    rows, held = rows_held(snapshot, columns)
    sizes = snapshot.partitions.size_bytes[rows[held]].tolist()
    known = zip(columns.take(np.flatnonzero(held)), sizes, strict=True)
    return {name.topic_partition: size for name, size in known if size >= 0}


def partition_differences(
    snapshot: ClusterSnapshot,
    columns: ReassignmentColumns,
    policy: RackPolicy,
    steps: Sequence[int],
    leaving: frozenset[int] = frozenset(),
) -> Iterator[PartitionDifference]:
    """Every reassignment with its reason. `steps`: the number of the step of each. `leaving`: brokers that the request drains."""
    rows = snapshot_rows(snapshot, columns)
    before = _before(snapshot, rows, columns)
    batch = snapshot_batch(snapshot, policy).take(rows)
    broken = [(constraint, constraint.broken(batch)) for constraint in _URGENT]
    for at, (partition, step) in enumerate(zip(columns, steps, strict=True)):
        was = unpadded(before[at])
        problems = (constraint.reason(batch, at) for constraint, of_row in broken if of_row[at])
        # The most urgent problem alone, since the others often follow from it.
        reasons = [*islice(problems, 1), *_request_reasons(was, partition.replicas, leaving)]
        why = "; ".join(reasons) or "replicas spread over brokers"
        yield PartitionDifference(partition.topic, partition.partition, was, partition.replicas, step, why)


def _request_reasons(before: tuple[int, ...], after: tuple[int, ...], leaving: frozenset[int]) -> Iterator[str]:
    drained = [broker for broker in before if broker in leaving]
    if drained:
        yield f"{'broker' if len(drained) == 1 else 'brokers'} {','.join(map(str, drained))} drained"
    if len(before) != len(after):
        yield f"replication factor {len(before)} → {len(after)}"
    if set(before) == set(after):
        yield f"preferred leader {before[0]} → {after[0]}" if before[0] != after[0] else "another order"


def _before(snapshot: ClusterSnapshot, rows: Int64s, columns: ReassignmentColumns) -> Int32s:
    """The replicas that the plan replaces; the snapshot's where a file does not say."""
    now, undo = snapshot.partitions.replicas[rows], columns.undo
    now, undo = _equally_wide(now, undo)
    known = (undo != NO_BROKER).any(axis=1, keepdims=True)
    return np.asarray(np.where(known, undo, now))


def _equally_wide(*arrays: Int32s) -> list[Int32s]:
    width = max(array.shape[1] for array in arrays)
    return [np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=NO_BROKER) for array in arrays]


def _added(before: Int32s, after: Int32s) -> Bools:
    """Which of `after` are not in `before`. Shape as `after`."""
    added = after != NO_BROKER
    for column in before.T:
        added &= after != column[:, None]
    return np.asarray(added)


def _topics(
    snapshot: ClusterSnapshot, rows: Int64s, before: Int32s, after: Int32s, policy: RackPolicy
) -> Iterator[TopicDifference]:
    codes, sizes = snapshot.partitions.topic[rows], snapshot.partitions.size_bytes[rows]
    moves = count_in_row(_added(before, after))
    copied = moves * np.clip(sizes, 0, BELIEVED_BYTES_MAX)
    racks = [safety_of_rows(snapshot, policy, rows, lists).racks for lists in (before, after)]
    count = len(snapshot.topics)
    totals = [np.bincount(codes, weights, minlength=count) for weights in (moves, np.where(sizes < 0, moves, 0))]
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, codes, copied)
    fewest = [_fewest(codes, rack, count) for rack in racks]
    partitions, changed = (
        np.bincount(codes_of_rows, minlength=count) for codes_of_rows in (snapshot.partitions.topic, codes)
    )
    for code in np.unique(codes).tolist():
        yield TopicDifference(
            topic=str(snapshot.topics[code].name),
            partitions=int(partitions[code]),
            changed=int(changed[code]),
            moves=int(totals[0][code]),
            bytes=int(sums[code]),
            unsized=int(totals[1][code]),
            racks=(int(fewest[0][code]), int(fewest[1][code])),
        )


def _fewest(codes: Int32s, values: Int64s, count: int) -> Int64s:
    fewest = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(fewest, codes, values)
    return fewest


def _brokers(snapshot: ClusterSnapshot, rows: Int64s, before: Int32s, after: Int32s) -> Iterator[BrokerDifference]:
    now = snapshot.partitions
    sizes = np.clip(now.size_bytes[rows], 0, BELIEVED_BYTES_MAX)
    ids = np.unique(np.concatenate([before.ravel(), after.ravel(), now.replicas.ravel()]))
    ids = ids[ids != NO_BROKER]
    others = np.ones(len(now), dtype=np.bool_)
    others[rows] = False
    kept = _counts(ids, now.replicas[others])
    replicas = [kept + _counts(ids, lists) for lists in (before, after)]
    kept = _counts(ids, now.replicas[others][:, :1])
    leaders = [kept + _counts(ids, lists[:, :1]) for lists in (before, after)]
    arriving, leaving = (
        _bytes(ids, after, _added(before, after), sizes),
        _bytes(ids, before, _added(after, before), sizes),
    )
    same = np.concatenate([after, before], axis=1)
    touched = np.isin(ids, same[np.concatenate([_added(before, after), _added(after, before)], axis=1)])
    touched |= leaders[0] != leaders[1]
    rack_of = {int(broker.id): broker.rack for broker in snapshot.brokers}
    for at in np.flatnonzero(touched).tolist():
        broker = int(ids[at])
        yield BrokerDifference(
            broker=broker,
            rack=rack_of.get(broker),
            replicas=(int(replicas[0][at]), int(replicas[1][at])),
            leaders=(int(leaders[0][at]), int(leaders[1][at])),
            bytes_in=int(arriving[at]),
            bytes_out=int(leaving[at]),
        )


def _counts(ids: Int32s, matrix: Int32s) -> Int64s:
    held = matrix[matrix != NO_BROKER]
    return np.bincount(np.searchsorted(ids, held), minlength=len(ids))


def _bytes(ids: Int32s, matrix: Int32s, chosen: Bools, sizes: Int64s) -> Int64s:
    """The sum of sizes per broker over the chosen entries."""
    sums = np.zeros(len(ids), dtype=np.int64)
    np.add.at(sums, np.searchsorted(ids, matrix[chosen]), np.broadcast_to(sizes[:, None], matrix.shape)[chosen])
    return sums


def _safety_loss(
    snapshot: ClusterSnapshot, rows: Int64s, before: Int32s, after: Int32s, policy: RackPolicy
) -> SafetyLoss | None:
    was, then = (safety_of_rows(snapshot, policy, rows, lists) for lists in (before, after))
    worse = np.flatnonzero(less_safe(was, then))
    return SafetyLoss(len(worse), words(was.take(worse), then.take(worse))) if len(worse) else None
