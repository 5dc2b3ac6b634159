"""Topics that brokers create on request: those that clients name, and the topics of the coordinators."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rackspan.cluster.context import BrokerContext
from rackspan.cluster.core.configs import BROKER_CONFIGS
from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from rackspan.cluster.core.messages import AdminResponse, CreateTopics, NewTopic
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition

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
