"""What group and transaction coordinators share: the partition of a key, record batches, writes and loads.

Begin with writes.py. A coordinator sends no response that depends on a record before that record is acknowledged by its
partition (acks=all): its successor then has the same state.
"""

from rackspan.cluster.core.coordination.partitions import (
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    partition_for,
)
from rackspan.cluster.core.coordination.pending_loads import PendingLoads
from rackspan.cluster.core.coordination.record_batch import CoordinatorRecord, decode_batch, encode_batch, marker_batch
from rackspan.cluster.core.coordination.writes import Append, CoordinatorEffect, Then, Writes

__all__ = [
    "INTERNAL_TOPICS",
    "OFFSETS_TOPIC",
    "TRANSACTIONS_TOPIC",
    "Append",
    "CoordinatorEffect",
    "CoordinatorRecord",
    "PendingLoads",
    "Then",
    "Writes",
    "decode_batch",
    "encode_batch",
    "marker_batch",
    "partition_for",
]
