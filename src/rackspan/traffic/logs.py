"""Bytes that partitions received and replicas copied between two readings of their logs.

    growth of the leader's log, or of a follower's in sync if segments of the leader's were deleted ──► what was written,
    unless it is far less than the topic's records take: then every replica deleted segments, and records count

A partition that only one reading has, or whose end moved back (unclean election), has unknown volumes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rackspan.model import NO_BROKER, UNKNOWN_SIZE, Bools, ClusterSnapshot, Int32s, Int64s, TopicPartition

Float64s: TypeAlias = npt.NDArray[np.float64]

UNKNOWN_OFFSET: Final = -1

_SHRUNK: Final = 0.5
"""A log that grew by less than this part of what its records need lost segments meanwhile."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterLogs:
    """The logs of a snapshot's partitions, in the order of its rows. `partial` says in words what could not be read.

    Shapes: `end_offset` is (P,), UNKNOWN_OFFSET if not known; `replica_bytes` is shaped as the snapshot's `replicas`,
    UNKNOWN_SIZE if not known. `committed` has the offsets of groups, as far as they could be read.
    """

    snapshot: ClusterSnapshot
    read_at: datetime
    end_offset: Int64s
    replica_bytes: Int64s
    committed: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    start_offset: Int64s | None = None
    """The earliest offsets, shaped as `end_offset`; None if they were not requested."""


@dataclass(frozen=True, slots=True, eq=False)
class Volumes:
    """Bytes by partition, in the order of a snapshot's rows.

    Shapes: `bytes_in` (P,) has what the leader received, UNKNOWN_SIZE if not known, and `guessed` (P,) whether it follows
    from the number of records. `records` (P,) counts offsets, negative if not known; `record_bytes` (P,) is their average
    size, or the topic's median, infinite if not known. `copied`, shaped as the snapshot's `replicas`, has what each replica appended,
    `from_own_log` whether that is by how much its own log grew, and `added` whether a reassignment added the replica.
    """

    bytes_in: Int64s
    guessed: Bools
    records: Int64s
    record_bytes: Float64s
    copied: Int64s
    from_own_log: Bools
    added: Bools


def volumes_between(before: ClusterLogs, after: ClusterLogs) -> Volumes:
    """The volumes from one reading to the next, by the rows of the second.

    A log grows by the bytes appended, and shrinks when segments are deleted or compacted, which every replica does at
    another time: what a partition received is its leader's growth, or the largest of a replica that was in sync throughout if
    that is more than twice as much. If it is less than half of what its records took in the topic's other partitions (the median), its records count at that size. A
    replica that the first reading does not list copied its whole log. One whose log says nothing copied what its leader
    received, or nothing if its broker is down in both readings.
    """
    rows = after.snapshot.partitions
    row_before = _rows_before(before.snapshot, after.snapshot)
    grown = _grown(before, after, row_before)
    records = _records(before, after, row_before)
    in_sync = _listed(rows.replicas, rows.isr)
    throughout = in_sync & _was_in_sync(before.snapshot, rows.replicas, row_before)
    leads = (rows.replicas == rows.leader[:, None]) & throughout
    of_leader = np.where(leads, grown, UNKNOWN_SIZE).max(axis=1, initial=UNKNOWN_SIZE)
    largest = np.where(throughout, grown, UNKNOWN_SIZE).max(axis=1, initial=UNKNOWN_SIZE)
    # A follower in sync may lag and catch up, so that the leader's growth counts as long as it deleted little.
    bytes_in = np.where(of_leader < largest * _SHRUNK, largest, of_leader)
    record_bytes = _median_record_bytes(rows.topic, bytes_in, records)
    by_records = np.full(len(rows), UNKNOWN_SIZE, np.int64)
    needed = (records > 0) & np.isfinite(record_bytes)
    by_records[needed] = np.rint(records[needed] * record_bytes[needed]).astype(np.int64)
    # Nothing was written, whatever else is not known.
    bytes_in[records == 0] = 0
    guessed = (bytes_in < by_records * _SHRUNK) & needed
    bytes_in[guessed] = by_records[guessed]
    bytes_in[records < UNKNOWN_OFFSET] = UNKNOWN_SIZE
    sized = (records > 0) & (bytes_in != UNKNOWN_SIZE) & ~guessed
    np.divide(bytes_in, records, out=record_bytes, where=sized)

    copied = np.repeat(bytes_in[:, None], rows.replicas.shape[1], axis=1)
    added = _listed(rows.replicas, rows.adding_replicas) | _new(before.snapshot, rows.replicas, row_before)
    # A follower in sync has what its leader received: if its log grew less, it deleted segments.
    shrunk = in_sync & (grown < copied * _SHRUNK)
    own = added | ((grown != UNKNOWN_SIZE) & ~shrunk)
    copied[own] = grown[own]
    down = _down(before.snapshot, rows.replicas) & _down(after.snapshot, rows.replicas)
    copied[down & (grown == UNKNOWN_SIZE)] = 0
    return Volumes(bytes_in, guessed, records, record_bytes, copied, own, added)


def _rows_before(before: ClusterSnapshot, after: ClusterSnapshot) -> Int64s:
    """The row of each partition in the earlier snapshot, -1 without one. A topic created again is another topic."""
    codes = {(topic.name, topic.topic_id): code for code, topic in enumerate(before.topics)}
    code = np.array([codes.get((topic.name, topic.topic_id), -1) for topic in after.topics], np.int64)
    # Rows are ordered by topic and partition, so that one number orders them too.
    known = before.partitions.topic.astype(np.int64) << 32 | before.partitions.partition
    wanted = code[after.partitions.topic] << 32 | after.partitions.partition
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)


def _grown(before: ClusterLogs, after: ClusterLogs, row_before: Int64s) -> Int64s:
    """Bytes by which each replica's log grew, UNKNOWN_SIZE if it shrank or a size is not known."""
    replicas, earlier = after.snapshot.partitions.replicas, before.snapshot.partitions.replicas
    grown = np.full(replicas.shape, UNKNOWN_SIZE, np.int64)
    if not len(earlier):
        return grown
    size_before = np.zeros(replicas.shape, np.int64)
    for brokers, sizes in zip(earlier[row_before].T, before.replica_bytes[row_before].T, strict=True):
        size_before = np.where(replicas == brokers[:, None], sizes[:, None], size_before)
    both = (after.replica_bytes != UNKNOWN_SIZE) & (size_before != UNKNOWN_SIZE)
    grown[both] = after.replica_bytes[both] - size_before[both]
    grown[(row_before < 0)[:, None] | (grown < 0)] = UNKNOWN_SIZE
    return grown


def _records(before: ClusterLogs, after: ClusterLogs, row_before: Int64s) -> Int64s:
    """Offsets that the logs' ends advanced, -1 if that is not known, less if a log was truncated."""
    end_before = _at(before.end_offset, row_before)
    known = (end_before != UNKNOWN_OFFSET) & (after.end_offset != UNKNOWN_OFFSET)
    advanced = np.where(known, after.end_offset - end_before, UNKNOWN_OFFSET)
    return np.where(known & (advanced < 0), UNKNOWN_OFFSET - 1, advanced)


def _at(values: Int64s, rows: Int64s) -> Int64s:
    """The values of these rows, UNKNOWN_OFFSET for row -1."""
    return np.append(values, UNKNOWN_OFFSET)[rows]


def _median_record_bytes(topic: Int32s, bytes_in: Int64s, records: Int64s) -> Float64s:
    """The median over each partition's topic of bytes a record, infinite if no partition of the topic has one. Shape (P,)."""
    sized = (records > 0) & (bytes_in != UNKNOWN_SIZE)
    size = np.full(len(topic), np.inf)
    np.divide(bytes_in, records, out=size, where=sized)
    # Rows are ordered by topic, so that each topic's are where they were.
    ordered = np.lexsort((size, topic))
    _, first, of = np.unique(topic, return_index=True, return_inverse=True)
    partitions = np.bincount(of[sized], minlength=len(first))
    # Those without a size are infinite and come last in their topic.
    of_topic: Float64s = size[ordered[first + partitions // 2]][of]
    return of_topic


def _was_in_sync(before: ClusterSnapshot, replicas: Int32s, row_before: Int64s) -> Bools:
    if not len(before.partitions):
        return np.zeros(replicas.shape, np.bool_)
    in_sync: Bools = _listed(replicas, before.partitions.isr[row_before]) & (row_before >= 0)[:, None]
    return in_sync


def _listed(replicas: Int32s, brokers: Int32s) -> Bools:
    """Which replicas are on one of their row's brokers. Shaped as `replicas`."""
    listed: Bools = (replicas[:, :, None] == brokers[:, None, :]).any(axis=2) & (replicas != NO_BROKER)
    return listed


def _new(before: ClusterSnapshot, replicas: Int32s, row_before: Int64s) -> Bools:
    """Which replicas the earlier snapshot does not list, of partitions that it has."""
    new: Bools = (replicas != NO_BROKER) & (row_before >= 0)[:, None]
    if len(before.partitions):
        new &= ~_listed(replicas, before.partitions.replicas[row_before])
    return new


def _down(snapshot: ClusterSnapshot, replicas: Int32s) -> Bools:
    """Which replicas are on a broker that is fenced or not registered."""
    alive = [int(broker.id) for broker in snapshot.brokers if not broker.fenced]
    down: Bools = ~np.isin(replicas, alive) & (replicas != NO_BROKER)
    return down
