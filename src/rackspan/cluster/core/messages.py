"""The messages between clients, brokers and the controller, and the effects of handling them.

`Message` is every message, `Effect` what handling one may cause; those of administration are in admin_messages.py.
A message is a frozen value. It may be delayed, repeated, reordered or lost; its receiver relies on the epochs in it, never
on its order. Batches are passed by reference. Nothing here reads or writes bytes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from rackspan.cluster.core.admin_messages import AdminRequest
from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId, NodeId, TopicId
from rackspan.cluster.core.metadata import MetadataImage, Record
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker started. `previous_broker_epoch` is the epoch in its clean-shutdown mark, NO_EPOCH without one (KIP-966)."""

    broker: BrokerId
    incarnation: int
    rack: RackId | None
    host: str
    port: int
    previous_broker_epoch: int


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse:
    """The broker's new epoch, or why it was refused."""

    incarnation: int
    error: ErrorCode
    broker_epoch: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat:
    """Keeps the session alive. `metadata_offset` is the offset up to which the broker has applied the metadata."""

    broker: BrokerId
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse:
    """Whether the broker is fenced, and whether it may end."""

    broker_epoch: int
    error: ErrorCode
    fenced: bool = False
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """A long poll for metadata records from `offset` on."""

    broker: BrokerId
    incarnation: int
    offset: int


@dataclass(frozen=True, slots=True)
class FetchMetadataResponse:
    """Records from `offset` on, or, to a broker too far behind, the whole image instead."""

    incarnation: int
    offset: int
    records: tuple[Record, ...] = ()
    image: MetadataImage | None = None


@dataclass(frozen=True, slots=True)
class IsrChange:
    """The ISR that a leader requests for one partition. `isr` pairs each member with its broker epoch (KIP-903)."""

    partition: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[BrokerId, int], ...]


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """Numbered by `attempt`: the controller drops a request that is not newer than the last from that broker epoch."""

    broker: BrokerId
    broker_epoch: int
    attempt: int
    changes: tuple[IsrChange, ...]


@dataclass(frozen=True, slots=True)
class IsrChangeResponse:
    """The state that the controller committed for one partition, or the error."""

    partition: TopicPartition
    error: ErrorCode
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[BrokerId, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse:
    """`thresholds_version` is the version of the thresholds that the controller counted by."""

    broker_epoch: int
    attempt: int
    error: ErrorCode
    thresholds_version: int = 0
    changes: tuple[IsrChangeResponse, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """A follower's end offset in one partition, and the high watermark it last received."""

    partition: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class ReplicaFetch:
    """A follower's fetch of all the partitions that it follows on one leader.

    Incremental: `positions` holds what changed since number `sequence` - 1, `forgotten` what is no longer followed; with
    `full` the leader starts a new session. Numbers rise within a broker epoch; a leader handles only the newest.
    """

    broker: BrokerId
    broker_epoch: int
    sequence: int
    full: bool
    positions: tuple[FetchPosition, ...]
    forgotten: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """Records and watermarks of one partition, for a follower whose log ends at `offset` with a record of `last_fetched_epoch`.

    A follower whose log ends elsewhere drops it: the records would leave a hole, or follow another leader's record.
    `diverging` is the (epoch, end offset) where the logs part (KIP-595): truncate and fetch again.
    """

    partition: TopicPartition
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    error: ErrorCode
    high_watermark: int = NO_OFFSET
    log_start: int = 0
    batches: tuple[RecordBatch, ...] = ()
    diverging: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ReplicaFetchResponse:
    """An error other than NONE concerns the session: the follower starts a new one."""

    broker_epoch: int
    sequence: int
    error: ErrorCode
    partitions: tuple[FetchedPartition, ...] = ()


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


ToController: TypeAlias = BrokerRegistration | BrokerHeartbeat | FetchMetadata | AlterPartition
ToBroker: TypeAlias = (
    BrokerRegistrationResponse
    | BrokerHeartbeatResponse
    | FetchMetadataResponse
    | AlterPartitionResponse
    | ReplicaFetch
    | ReplicaFetchResponse
    | Produce
    | VerifyTransaction
    | DeleteRecords
    | ShutDown
)
Message: TypeAlias = ToController | AdminRequest | ToBroker


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a broker or the controller."""

    destination: NodeId
    message: Message


@dataclass(frozen=True, slots=True)
class Respond:
    """Respond to a client's request; the type of `response` belongs to the request's."""

    correlation_id: CorrelationId
    response: object


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request to a broker, perhaps this one, and pass its response on with `request_id`.

    The correlation id of `message` is 0: the executor sets one that is unique in the cluster. A response after
    `timeout_ms` is not used any more.
    """

    destination: BrokerId
    message: Produce | VerifyTransaction
    request_id: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class WatermarkMoved:
    """A replica of this partition on this broker has more to read: high watermark, last stable offset or records.

    Fetches parked here should read again.
    """

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """This broker began or ceased to lead the partition. Coordinators load or unload; parked fetches should read again."""

    partition: TopicPartition
    leads: bool
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A transaction's marker in this partition, led here, is committed."""

    partition: TopicPartition
    producer_id: int
    marker: Marker


@dataclass(frozen=True, slots=True)
class MetadataUpdated:
    """The broker has a new metadata image; responses encoded from the old one are stale."""

    offset: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The broker has given up all it led and written its clean-shutdown mark: it may end."""


@dataclass(frozen=True, slots=True)
class StartRefused:
    """The controller has refused to register the broker: its process ends."""

    reason: str


@dataclass(frozen=True, slots=True)
class Warned:
    """One line for the log."""

    message: str


Effect: TypeAlias = (
    Send
    | SendRequest
    | Respond
    | WatermarkMoved
    | LeadershipChanged
    | TransactionEnded
    | MetadataUpdated
    | Stopped
    | StartRefused
    | Warned
)
