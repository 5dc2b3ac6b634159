"""The state between the first request of a reassignment and its end: old and new replicas together."""

from collections.abc import Iterator

import numpy as np

from rackspan.audit import PartitionBatch, effective_min_isr
from rackspan.model import NO_BROKER, Bools, ClusterSnapshot, Int32s, Int64s, any_in_row, lengths
from rackspan.model.partitions import listed_in
from rackspan.reassign.reassignment_plan import ReassignmentColumns, rows_held
from rackspan.text import count_noun, noun_and_ids


def waits_for(snapshot: ClusterSnapshot, columns: ReassignmentColumns) -> Iterator[str]:
    """A line on replicas that stay with a partition that moves and are on fenced brokers, and one on those in failed log directories.

    Before 4.3 Kafka ends a move once all of its replicas are in sync; 4.3 too, if fewer are added than removed.
    """
    moves = (columns.additions > 0) | (lengths(columns.replicas) != lengths(columns.undo))
    down = np.array([int(broker.id) for broker in snapshot.brokers if broker.fenced], dtype=np.int32)
    fenced = np.isin(columns.replicas, down)
    rows, known = rows_held(snapshot, columns)
    offline = snapshot.partitions.offline_replicas[np.where(known, rows, 0)] if known.any() else columns.undo[:, :0]
    failed = listed_in(columns.replicas, offline) & known[:, None] & ~fenced
    for held, is_down, are_down in (
        (fenced, "is fenced", "are fenced"),
        (failed, "has a failed log directory", "have failed log directories"),
    ):
        chosen = held & moves[:, None]
        if chosen.any():
            brokers = np.unique(columns.replicas[chosen]).tolist()
            are, keep, they_are = (is_down, "keeps", "it is") if len(brokers) == 1 else (are_down, "keep", "they are")
            count = count_noun(int(any_in_row(chosen).sum()), "partition", ",")
            yield f"{noun_and_ids('broker', brokers)} {are} and {keep} replicas of {count} to move: their moves end once {they_are} back in sync"


def refuses_midway(batch: PartitionBatch, rows: Int64s, targets: Int32s) -> Bools:
    """Partitions that take acks=all now, and not while they are reassigned until copies are in sync. Shape (len(rows),).

    `targets` (len(rows), width): broker ids, NO_BROKER for padding. A broker counts min.insync.replicas as at most the
    replicas there are, those that are being added included (Kafka 3.7 and later; decision 12). So a value above the
    replication factor requires more in sync as soon as the reassignment begins.
    """
    now, value = batch.rows.replicas[rows], batch.required.min_insync_replicas[rows]
    added = targets != NO_BROKER
    for column in now.T:
        added &= targets != column[:, None]
    midway = effective_min_isr(value, lengths(now) + np.count_nonzero(added, axis=1))
    in_sync = batch.isr_size[rows]
    accepting = (batch.rows.leader[rows] != NO_BROKER) & (in_sync >= batch.min_isr[rows])
    return np.asarray(accepting & (in_sync < midway))
