"""All that travels: between brokers, between brokers and the controller, from clients; and the effects that come out.

A message is a frozen value and may be delayed, repeated, reordered or lost; whoever receives one relies on its epochs,
never on its order. Batches travel by reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rackspan.cluster.core.batch import Batch
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId, NodeId, TopicId
from rackspan.cluster.core.metadata import MetadataImage, Record
from rackspan.model.ids import BrokerId, RackId, TopicPartition

# Broker and controller: registration, session, metadata.


@dataclass(frozen=True, slots=True)
class RegisterBroker:
    """A broker came up. `previous_broker_epoch` is what its clean-shutdown mark holds, NO_EPOCH without one (KIP-966)."""

    broker: BrokerId
    incarnation: int
    rack: RackId | None
    host: str
    port: int
    previous_broker_epoch: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegistrationResponse:
    incarnation: int
    error: KafkaError
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Keeps the session. `metadata_offset` is how far the broker has folded the metadata."""

    broker: BrokerId
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    broker_epoch: int
    error: KafkaError
    fenced: bool = False
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """A long poll for records from `offset` on."""

    broker: BrokerId
    incarnation: int
    offset: int


@dataclass(frozen=True, slots=True)
class MetadataSlice:
    """Records from `offset` on, or, to a broker too far behind, the whole image instead."""

    incarnation: int
    offset: int
    records: tuple[Record, ...] = ()
    image: MetadataImage | None = None


# Broker and controller: the ISR.


@dataclass(frozen=True, slots=True)
class IsrChange:
    """What a leader asks for one partition. `isr` pairs each member with its broker epoch (KIP-903)."""

    partition: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[BrokerId, int], ...]


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """Numbered by `attempt`: the controller refuses one that is not newer than the last from that broker epoch."""

    broker: BrokerId
    broker_epoch: int
    attempt: int
    changes: tuple[IsrChange, ...]


@dataclass(frozen=True, slots=True)
class IsrResponse:
    """What the controller committed, or why not. The thresholds it counted with are those of `thresholds_version`."""

    partition: TopicPartition
    error: KafkaError
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[BrokerId, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse:
    broker_epoch: int
    attempt: int
    error: KafkaError
    thresholds_version: int = 0
    answers: tuple[IsrResponse, ...] = ()


# Follower and leader.


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """Where a follower stands in one partition, and which watermark it has heard of."""

    partition: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class ReplicaFetch:
    """One follower's question to one leader, for all partitions between them.

    Incremental: `positions` holds what changed since number `sequence` - 1, `forgotten` what is no longer followed; with
    `full` the leader starts over. Numbers rise within a broker epoch; a leader heeds only the newest.
    """

    broker: BrokerId
    broker_epoch: int
    sequence: int
    full: bool
    positions: tuple[FetchPosition, ...]
    forgotten: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """News of one partition, for a follower that stands at `offset` after a record of `last_fetched_epoch`.

    Taken elsewhere it would leave a hole, or follow upon another's record: a follower heeds it only there. `diverging` is
    (epoch, end offset) where the logs part (KIP-595): truncate, ask again.
    """

    partition: TopicPartition
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    error: KafkaError
    high_watermark: int = NO_OFFSET
    log_start: int = 0
    batches: tuple[Batch, ...] = ()
    diverging: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """An error other than NONE concerns the session: the follower starts over."""

    broker_epoch: int
    sequence: int
    error: KafkaError
    partitions: tuple[FetchedPartition, ...] = ()


# Clients to brokers.


@dataclass(frozen=True, slots=True)
class Produce:
    """Append to one partition; answered by a `ProduceResponse` on `correlation_id`, with acks=0 too. `acks` -1 is all."""

    correlation_id: CorrelationId
    partition: TopicPartition
    batches: tuple[Batch, ...]
    acks: int = -1
    timeout_ms: int = 30_000
    internal: bool = False
    """A coordinator's own append: control batches and internal topics are allowed."""


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """`log_append_time` in ms where the topic stamps time of append, else -1. `message` names what was missing."""

    error: KafkaError
    base_offset: int = NO_OFFSET
    log_append_time: int = -1
    log_start: int = NO_OFFSET
    message: str | None = None


@dataclass(frozen=True, slots=True)
class VerifyTransaction:
    """Ask the transaction's coordinator whether it goes on and holds `partition`; answered by a `KafkaError` (KIP-890).

    `adds`: the partition is to be added where it does not (part 2). A coordinator takes it, not a broker's core.
    """

    correlation_id: CorrelationId
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partition: TopicPartition
    adds: bool


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Move the log's start to `offset`, -1 being the high watermark; answered by a `DeleteRecordsResponse`."""

    correlation_id: CorrelationId
    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    error: KafkaError
    low_watermark: int = NO_OFFSET


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Ask a broker to shut down in order: it gives up its leaderships first. It says `Stopped` when it may end."""


# Clients to the controller: answered by `AdminResult`s, one an item and in the order of the items.


@dataclass(frozen=True, slots=True)
class NewTopic:
    """`assignments`, one a partition from 0 on, or counts; -1 is the cluster's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """`automatic`: asked for by a produce or metadata request; a partial rack map is no obstacle then (KIP-36)."""

    correlation_id: CorrelationId
    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """By name or id."""

    correlation_id: CorrelationId
    topics: tuple[str | TopicId, ...]


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """Raise a topic to `total`; `assignments` for the new ones, in order, or None for the placer's."""

    topic: str
    total: int
    assignments: tuple[tuple[BrokerId, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    correlation_id: CorrelationId
    topics: tuple[MorePartitions, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigOp:
    """One step of IncrementalAlterConfigs; `op` is Kafka's number: 0 set, 1 delete, 2 append, 3 subtract."""

    key: str
    op: int
    value: str | None


@dataclass(frozen=True, slots=True)
class AlterResource:
    resource_type: int
    name: str
    ops: tuple[ConfigOp, ...]


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """`replace` takes away what is not set (the old AlterConfigs)."""

    correlation_id: CorrelationId
    resources: tuple[AlterResource, ...]
    validate_only: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Preferred or, where nothing else may lead, unclean election; None is every partition."""

    correlation_id: CorrelationId
    partitions: tuple[TopicPartition, ...] | None
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class Reassignment:
    """New replicas, preferred leader first; None cancels."""

    partition: TopicPartition
    replicas: tuple[BrokerId, ...] | None


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignments:
    correlation_id: CorrelationId
    reassignments: tuple[Reassignment, ...]
    allow_replication_factor_change: bool = True


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """A block of producer ids; answered by a `ProducerIdBlock`."""

    correlation_id: CorrelationId
    broker: BrokerId


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first: int
    length: int


@dataclass(frozen=True, slots=True)
class UnregisterBroker:
    correlation_id: CorrelationId
    broker: BrokerId


@dataclass(frozen=True, slots=True)
class DescribeQuorum:
    correlation_id: CorrelationId


@dataclass(frozen=True, slots=True)
class Observer:
    """A broker as the controller last heard of it (ms): how far it has read the metadata, -1 where it has not said so yet."""

    broker: BrokerId
    offset: int
    heard_at: int


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The one controller's log, `offset` long at `now` (ms), and who reads it."""

    offset: int
    now: int
    observers: tuple[Observer, ...]


@dataclass(frozen=True, slots=True)
class AdminResult:
    """What became of one item. `key` is its topic, partition, resource or broker, as it was asked for."""

    key: object
    error: KafkaError
    message: str | None = None


@dataclass(frozen=True, slots=True)
class TopicResult(AdminResult):
    """A topic created, or as it would be."""

    topic_id: TopicId | None = None
    partitions: int = -1
    replication_factor: int = -1
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigResult(AdminResult):
    """`warnings` go to the log: Kafka's answer has no room for them."""

    warnings: tuple[str, ...] = ()


ToController: TypeAlias = RegisterBroker | Heartbeat | FetchMetadata | AlterPartition
AdminRequest: TypeAlias = (
    CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | ElectLeaders
    | AlterPartitionReassignments
    | AllocateProducerIds
    | UnregisterBroker
    | DescribeQuorum
)
ToBroker: TypeAlias = (
    RegistrationResponse
    | HeartbeatResponse
    | MetadataSlice
    | AlterPartitionResponse
    | ReplicaFetch
    | FetchResponse
    | Produce
    | VerifyTransaction
    | DeleteRecords
    | ShutDown
)
Message: TypeAlias = ToController | AdminRequest | ToBroker
Result: TypeAlias = ProduceResponse | DeleteRecordsResponse | tuple[AdminResult, ...] | ProducerIdBlock | QuorumState

# Effects.


@dataclass(frozen=True, slots=True)
class Send:
    destination: NodeId
    message: Message


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a client's correlation_id."""

    correlation_id: CorrelationId
    result: Result


@dataclass(frozen=True, slots=True)
class WatermarkMoved:
    """Readers of this partition who wait here should look again (high watermark, last stable offset or new data)."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """This broker began or ceased to lead. Coordinators load or let go; readers who wait here should look again."""

    partition: TopicPartition
    leads: bool
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class MetadataMoved:
    """The broker's image is a new one; encoded replies made from the old are stale."""

    offset: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The broker has given up all it led: its clean-shutdown mark is written, and it may end."""


@dataclass(frozen=True, slots=True)
class Warned:
    """One line for the log."""

    message: str


Effect: TypeAlias = Send | Reply | WatermarkMoved | LeadershipChanged | MetadataMoved | Stopped | Warned


class Node(Protocol):
    """A broker or the controller. Time never runs backwards between calls."""

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        """Take one message; `now` in ms."""

    def on_tick(self, now: int) -> list[Effect]:
        """Look at the clock; call it about every `tick_interval_ms`."""
