"""What group and transaction coordinators share: where a key lives, the records they keep, the writes they wait for.

Begin with writes.py. A coordinator answers nothing that depends on a record before that record is acknowledged by its
partition (acks=all): what it has told a client, its successor knows too.
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
