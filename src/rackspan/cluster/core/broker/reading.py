"""Reads of one replica: committed batches, aborted transactions, offsets by timestamp, the preferred replica (KIP-392).

Queries only: nothing here changes a log. A fetch that has to wait reads again at the next `WatermarkMoved`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker.follower import Follower
from rackspan.cluster.core.broker.leadership.leader import Leader
from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET
from rackspan.cluster.core.log import AbortedTransaction, EpochEnd, PartitionLog
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3


class Isolation(IntEnum):
    """A fetch's isolation level, by Kafka's numbers."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """`batches` end below the offset the reader may see. With a `preferred_read_replica` nothing was
    read: the client is to fetch there.

    `diverging` is (epoch, end offset) where the reader's last fetched epoch is not the leader's.
    """

    error: ErrorCode
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start: int = NO_OFFSET
    batches: tuple[RecordBatch, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()
    preferred_read_replica: BrokerId = NO_LEADER
    diverging: EpochEnd | None = None


@dataclass(frozen=True, slots=True)
class OffsetResponse:
    """For a timestamp: the first batch that has a record at it or later. The caller searches its records.

    For the special timestamps, and where there is no such batch, `batch` is None and `offset` is final.
    """

    error: ErrorCode
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    batch: RecordBatch | None = None


def readable_to(log: PartitionLog, isolation: Isolation) -> int:
    """The offset below which a client of this isolation level may read."""
    return log.last_stable_offset if isolation is Isolation.READ_COMMITTED else log.high_watermark


def read(log: PartitionLog, offset: int, max_bytes: int, isolation: Isolation) -> ReadResponse:
    """Committed batches from `offset` on; none at the end."""
    stable = log.last_stable_offset
    upper = stable if isolation is Isolation.READ_COMMITTED else log.high_watermark
    if not log.start_offset <= offset <= log.end_offset:
        return ReadResponse(ErrorCode.OFFSET_OUT_OF_RANGE)
    batches = log.read(offset, upper, max_bytes)
    aborted = log.aborted_transactions(offset, batches[-1].last_offset + 1) if batches else ()
    return ReadResponse(ErrorCode.NONE, log.high_watermark, stable, log.start_offset, batches, aborted)


def diverging(log: PartitionLog, offset: int, last_fetched_epoch: int) -> ReadResponse | None:
    """The response to a reader whose log is not a part of this one: where its last epoch ends here. None for any other reader."""
    if last_fetched_epoch == NO_EPOCH:
        return None
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if end.end_offset == NO_OFFSET:
        return ReadResponse(ErrorCode.OFFSET_OUT_OF_RANGE)
    if end.epoch >= last_fetched_epoch and end.end_offset >= offset:
        return None
    return ReadResponse(ErrorCode.NONE, log.high_watermark, log.last_stable_offset, log.start_offset, diverging=end)


def epoch_error(replica: Leader | Follower, current_leader_epoch: int) -> ErrorCode:
    """Whether the client's leader epoch is this replica's (KIP-320)."""
    if current_leader_epoch in (NO_EPOCH, replica.leader_epoch):
        return ErrorCode.NONE
    older = current_leader_epoch < replica.leader_epoch
    return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH


def preferred_read_replica(leader: Leader, image: MetadataImage, offset: int, rack: RackId | None) -> BrokerId | None:
    """The member of the ISR in the reader's rack with the greatest end offset; None where the leader is best.

    Constraints: in sync, alive, in the rack, known to hold the offset. Goal: the greatest end offset, then the order of
    the replicas. A leader in the rack is read itself. Source: KIP-392, RackAwareReplicaSelector.
    """
    own = image.brokers.get(leader.broker)
    if not rack or (own is not None and own.rack == rack):
        return None
    candidates = [
        replica
        for replica in leader.replicas
        if replica in leader.isr.committed and _serves(leader, image, replica, offset, rack)
    ]
    return max(candidates, key=lambda replica: leader.followers[replica].end_offset, default=None)


def _serves(leader: Leader, image: MetadataImage, broker: BrokerId, offset: int, rack: RackId) -> bool:
    registered, follower = image.brokers.get(broker), leader.followers.get(broker)
    if registered is None or follower is None or not registered.active or registered.rack != rack:
        return False
    return follower.end_offset >= offset >= leader.log.start_offset


def offset_for(log: PartitionLog, timestamp: int, upper: int, leader_epoch: int) -> OffsetResponse:
    """ListOffsets; `timestamp` in ms or one of the special ones, `upper` where the client's view ends.

    The end is in the leader's own epoch, and so is the start of an empty log. Source: Kafka's Partition.fetchOffsetForTimestamp.
    """
    if timestamp == LATEST:
        return OffsetResponse(ErrorCode.NONE, upper, leader_epoch)
    if timestamp == EARLIEST:
        first = log.epoch_at(log.start_offset + 1)
        return OffsetResponse(ErrorCode.NONE, log.start_offset, leader_epoch if first == NO_EPOCH else first)
    greatest = timestamp == MAX_TIMESTAMP
    batch = log.batch_of_greatest_timestamp(upper) if greatest else log.batch_at_timestamp(timestamp, upper)
    if batch is None:
        return OffsetResponse(ErrorCode.NONE)
    return OffsetResponse(ErrorCode.NONE, batch.base_offset, batch.leader_epoch, batch)
