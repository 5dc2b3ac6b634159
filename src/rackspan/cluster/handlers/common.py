"""Functions that several request handlers share: about topics, administration, groups, transactions, records.

A function used by one handler stays in that handler's file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from rackspan.cluster.context import BrokerContext, Call
from rackspan.cluster.core.admin_messages import AdminResponse, AlterConfigs, AlterResource, CreateTopics, NewTopic
from rackspan.cluster.core.batch import BatchBytes, RecordBatch
from rackspan.cluster.core.configs import BROKER_CONFIGS
from rackspan.cluster.core.coordination import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from rackspan.cluster.core.groups.requests import CommittedOffset, GroupRequest
from rackspan.cluster.core.log.compaction import uncompressed_body
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState
from rackspan.cluster.core.transactions.requests import TransactionRequest
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import HEADER_BYTES, read_stored_header
from rackspan.model.ids import BrokerId, TopicPartition
from rackspan.wire.messages.group_offsets import OffsetCommitRequestTopic
from rackspan.wire.messages.transactions import TxnOffsetCommitRequestTopic

TOPIC_IDS_SINCE: Final = 13
"""From this version on Produce and Fetch have topic ids instead of names."""

READ_COMMITTED: Final = 1
"""The isolation level, in Fetch and ListOffsets."""

LEADER_CHANGED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Produce and Fetch then name the current leader (KIP-951)."""

Item = TypeVar("Item")


def offline_replicas(image: MetadataImage, state: PartitionState) -> list[BrokerId]:
    return [broker for broker in state.replicas if broker not in image.brokers or image.brokers[broker].fenced]


def topic_name(call: Call[object], name: str, topic_id: UUID | None) -> str | None:
    """The topic of a Produce or Fetch request; None for an id unknown here."""
    if call.version < TOPIC_IDS_SINCE:
        return name
    return None if topic_id is None else call.broker.image.topic_names.get(topic_id)


def led_partition(call: Call[object], partition: TopicPartition) -> PartitionState | None:
    """None where there is no such partition, or it has no leader."""
    state = call.broker.image.partition(partition)
    return state if state is not None and state.leader != NO_LEADER else None


def partition_of(response: AdminResponse) -> TopicPartition:
    """The partition that the controller's response is about."""
    return cast("TopicPartition", response.key)


def by_topic(
    items: Iterable[Item], partition: Callable[[Item], TopicPartition] = lambda item: cast("TopicPartition", item)
) -> dict[str, list[Item]]:
    """Items grouped by the topic of their partition, topics in order of first occurrence."""
    grouped: dict[str, list[Item]] = {}
    for item in items:
        grouped.setdefault(partition(item).topic, []).append(item)
    return grouped


ADMIN_TIMEOUT_MS: Final = 30_000
"""For requests that have no timeout of their own."""

AdminResponseT = TypeVar("AdminResponseT", bound=AdminResponse)


def timeout_responses(keys: Iterable[object], response: type[AdminResponseT]) -> tuple[AdminResponseT, ...]:
    """REQUEST_TIMED_OUT for every item of the request."""
    message = "the controller did not answer in time; what became of the request is not known"
    return tuple(response(key, ErrorCode.REQUEST_TIMED_OUT, message) for key in keys)


async def alter_resources(
    call: Call[object], resources: Sequence[AlterResource], *, replace: bool, validate_only: bool
) -> Iterator[tuple[AlterResource, AdminResponse]]:
    """Each resource with the controller's response. `replace` deletes the configs that a resource does not name."""
    responses = await call.broker.requests.controller_response(
        lambda correlation_id: AlterConfigs(correlation_id, tuple(resources), validate_only, replace),
        ADMIN_TIMEOUT_MS,
        timeout_responses(resources, AdminResponse),
    )
    if not validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(ADMIN_TIMEOUT_MS)
    return zip(resources, responses, strict=True)


NO_AUTHORIZER: Final = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
"""Error and message of Kafka without an authorizer, to requests that change ACLs."""


class _AclOperation(IntEnum):
    """Kafka's AclOperation (KIP-430). A resource has all that Kafka has for it (AclEntry.supportedOperations): no authorizer is
    configured."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: _AclOperation) -> int:
    return sum(1 << operation for operation in operations)


_Op = _AclOperation
_CONFIGS: Final = (_Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS)

TOPIC_OPERATIONS: Final = _bits(_Op.READ, _Op.WRITE, _Op.CREATE, _Op.DELETE, _Op.ALTER, _Op.DESCRIBE, *_CONFIGS)
GROUP_OPERATIONS: Final = _bits(_Op.READ, _Op.DELETE, _Op.DESCRIBE, *_CONFIGS)
CLUSTER_OPERATIONS: Final = _bits(
    _Op.CREATE, _Op.ALTER, _Op.DESCRIBE, _Op.CLUSTER_ACTION, _Op.IDEMPOTENT_WRITE, *_CONFIGS
)
NOT_REQUESTED: Final = -(2**31)
"""The value where the request does not include operations."""


_TIMEOUT_MS: Final = 5_000

_PARTITIONS_CONFIG: Final = {
    OFFSETS_TOPIC: "offsets.topic.num.partitions",
    TRANSACTIONS_TOPIC: "transaction.state.log.num.partitions",
}
_REPLICATION_FACTOR_CONFIG: Final = {
    OFFSETS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
}


async def create_missing_topics(broker: BrokerContext, topics: Sequence[NewTopic]) -> dict[str, ErrorCode]:
    """Create the topics and wait until this broker has their leaders; the errors of those that were refused, by topic.

    Another client may create the same topic at the same time: a topic that already exists is no error.
    """
    responses = await _create(broker, topics)
    no_error = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    refused = {str(response.key): response.error for response in responses if response.error not in no_error}
    created = {topic.name for topic in topics} - refused.keys()
    await broker.metadata_updates.wait_for(
        lambda image: all(_every_partition_has_leader(image, topic) for topic in created), _TIMEOUT_MS
    )
    return refused


async def internal_partition(broker: BrokerContext, topic: str, partition: int) -> PartitionState | None:
    """A partition of a coordinator's topic as this broker has it, None without a leader. A missing topic is created."""
    if topic not in broker.image.topics:
        await _create(broker, [_internal_topic(topic, broker.settings.extra_configs)])
    await broker.metadata_updates.wait_for(lambda image: _has_leader(image, topic, partition), _TIMEOUT_MS)
    state = broker.image.partition(TopicPartition(topic, partition))
    return state if state is not None and state.leader != NO_LEADER else None


def partition_count(topic: str, configs: Mapping[str, str]) -> int:
    """How many partitions a coordinator's topic is created with."""
    key = _PARTITIONS_CONFIG[topic]
    return int(configs.get(key) or BROKER_CONFIGS[key].default or 1)


def automatic_topic(topic: str, configs: Mapping[str, str]) -> NewTopic:
    """A missing topic that a client names. Source: Kafka's AutoTopicCreationManager.creatableTopic."""
    return _internal_topic(topic, configs) if topic in INTERNAL_TOPICS else NewTopic(topic)


def _internal_topic(topic: str, configs: Mapping[str, str]) -> NewTopic:
    replication_factor = int(configs.get(_REPLICATION_FACTOR_CONFIG[topic], "-1"))
    return NewTopic(topic, partition_count(topic, configs), replication_factor, configs={"cleanup.policy": "compact"})


async def _create(broker: BrokerContext, topics: Sequence[NewTopic]) -> Iterable[AdminResponse]:
    responses: Iterable[AdminResponse] = await broker.requests.controller_response(
        lambda correlation_id: CreateTopics(correlation_id, tuple(topics), automatic=True), _TIMEOUT_MS, ()
    )
    return responses


def _has_leader(image: MetadataImage, topic: str, partition: int) -> bool:
    # A client may have created the topic with fewer partitions: then there is none.
    state = image.partition(TopicPartition(topic, partition))
    return state is not None and state.leader != NO_LEADER


def _every_partition_has_leader(image: MetadataImage, topic: str) -> bool:
    created = image.topics.get(topic)
    return created is not None and all(partition.leader != NO_LEADER for partition in created.partitions)


async def group_response(call: Call[object], request: GroupRequest) -> Any:
    """The group coordinator's response, of the class that belongs to the request's."""
    return await call.broker.requests.coordinator_response(request)


def partition_exists(call: Call[object], partition: TopicPartition) -> bool:
    return call.broker.image.partition(partition) is not None


def committed_offsets(
    topics: Iterable[OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic],
) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic.name, partition.partition_index): CommittedOffset(
            partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata or ""
        )
        for topic in topics
        for partition in topic.partitions
    }


PRODUCER_FENCED_SINCE: Final = 2
"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn have PRODUCER_FENCED from this version on, before it INVALID_PRODUCER_EPOCH."""


async def transaction_response(call: Call[object], request: TransactionRequest) -> Any:
    """The transaction coordinator's response, of the class that belongs to the request's."""
    return await call.broker.requests.coordinator_response(request)


def transaction_error_code(call: Call[object], error: ErrorCode) -> int:
    """The error as this version's clients understand it."""
    if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return call.broker.code(error)


_GZIP, _SNAPPY, _LZ4, _ZSTD = range(1, 5)


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """A record's offset and timestamp (ms)."""

    offset: int
    timestamp: int


def first_record_at(batch: RecordBatch, timestamp: int) -> RecordPosition:
    """The first record of the batch at `timestamp` or later; the last record if the batch cannot be decompressed here."""
    later = [position for position in _positions(batch) if position.timestamp >= timestamp]
    return later[0] if later else RecordPosition(batch.last_offset, batch.max_timestamp)


def latest_record(batch: RecordBatch) -> RecordPosition:
    """The first of those with the batch's greatest timestamp."""
    return first_record_at(batch, batch.max_timestamp)


def keyless_records(data: bytes | bytearray | memoryview) -> list[int]:
    """The places in the batch of records without a key; none if the batch cannot be decompressed here."""
    return [index for index, record in enumerate(_records(data)) if record.key is None]


def record_body(batch: RecordBatch) -> "BatchBytes | None":
    """The records of a batch, decompressed; None if the library of its compression is not installed here."""
    from kafka import codec

    compression = read_stored_header(batch.data).compression if len(batch.data) >= HEADER_BYTES else 0
    installed, decode = {
        _GZIP: (codec.has_gzip, codec.gzip_decode),
        _SNAPPY: (codec.has_snappy, codec.snappy_decode),
        _LZ4: (codec.has_lz4, codec.lz4_decode),
        _ZSTD: (codec.has_zstd, codec.zstd_decode),
    }.get(compression, (lambda: False, None))
    if not compression:
        return uncompressed_body(batch)
    return decode(bytes(batch.data[HEADER_BYTES:])) if decode is not None and installed() else None


def _positions(batch: RecordBatch) -> list[RecordPosition]:
    return [RecordPosition(record.offset, record.timestamp) for record in _records(batch.data)]


def _records(data: bytes | bytearray | memoryview) -> list[Any]:
    # kafka-python reads every compression whose library is installed.
    from kafka.errors import UnsupportedCodecError
    from kafka.record.default_records import DefaultRecordBatch

    try:
        return list(DefaultRecordBatch(bytes(data)))
    except UnsupportedCodecError:
        return []
