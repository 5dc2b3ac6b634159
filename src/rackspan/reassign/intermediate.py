"""The state between the first request of a reassignment and its end: old and new replicas together."""

import numpy as np

from rackspan.audit import PartitionBatch, effective_min_isr
from rackspan.model import NO_BROKER, Bools, Int32s, Int64s, lengths


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
