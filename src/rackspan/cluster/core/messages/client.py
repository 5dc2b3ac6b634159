"""Clients and brokers: produce, delete records, verify a transaction, shut down."""

from dataclasses import dataclass
from enum import Enum

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition


class TransactionSupport(Enum):
    """What the version of a transactional request supports (KIP-890, KIP-1050)."""

    VERIFIES = "verifies"
    """The producer has added the partition already. INVALID_TXN_STATE if not."""
    ABORTS = "aborts"
    """The same, but TRANSACTION_ABORTABLE (KIP-1050)."""
    ADDS = "adds"
    """A write adds the partition (part 2)."""


@dataclass(frozen=True, slots=True)
class Produce:
    """Append to one partition. Its response, a `ProduceResponse`, is made with acks=0 too. `acks` -1 is all."""

    correlation_id: CorrelationId
    partition: TopicPartition
    batches: tuple[RecordBatch, ...]
    acks: int = -1
    timeout_ms: int = 30_000
    internal: bool = False
    """A coordinator's own append: control batches and internal topics are allowed."""
    transactional_id: str | None = None
    support: TransactionSupport = TransactionSupport.VERIFIES


@dataclass(frozen=True, slots=True)
class RecordError:
    """`index` is the record's place in its batch."""

    index: int
    message: str


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """`log_append_time` in ms where the topic stamps time of append, else -1. `message` names what was missing."""

    error: ErrorCode
    base_offset: int = NO_OFFSET
    log_append_time: int = -1
    log_start: int = NO_OFFSET
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    """The records for which the whole batch is refused (KIP-467)."""


@dataclass(frozen=True, slots=True)
class VerifyTransaction:
    """Whether a transaction is ongoing and holds `partition` (KIP-890). The response is a `ErrorCode`.

    With `adds`, the coordinator adds the partition if the transaction does not hold it (part 2). The transaction
    coordinator handles this, not the broker's core.
    """

    correlation_id: CorrelationId
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partition: TopicPartition
    adds: bool


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Move the log's start to `offset`, -1 being the high watermark. The response is a `DeleteRecordsResponse`."""

    correlation_id: CorrelationId
    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    """`low_watermark` is the log's new start."""

    error: ErrorCode
    low_watermark: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Begin a controlled shutdown. The broker gives up its leaderships, and emits `Stopped` when it may end."""
