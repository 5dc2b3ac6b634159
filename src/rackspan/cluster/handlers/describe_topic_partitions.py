"""DescribeTopicPartitions (key 75), version 0: Metadata in pages, with the eligible leader replicas (KIP-966).

Empty lists are sent as [], never as null: Kafka's topics tool fails on null.
"""

from rackspan.cluster.context import Call
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState, TopicImage
from rackspan.cluster.handlers.common import TOPIC_OPERATIONS, offline_replicas
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.topics import (
    DescribeTopicPartitionsRequestData,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponseData,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(call: Call[DescribeTopicPartitionsRequestData]) -> DescribeTopicPartitionsResponseData:
    image, cursor = call.broker.image, call.request.cursor
    names = sorted({topic.name for topic in call.request.topics} or image.topics)
    first_name, first_index = (cursor.topic_name, cursor.partition_index) if cursor else ("", 0)
    left = call.request.response_partition_limit
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in (name for name in names if name >= first_name):
        if left <= 0:
            return _page(topics, name, 0)
        topic = _topic(image, name, first_index if name == first_name else 0, left)
        topics.append(topic)
        left -= len(topic.partitions)
        if (next_index := _next_index(image.topics.get(name), topic)) is not None:
            return _page(topics, name, next_index)
    return DescribeTopicPartitionsResponseData(topics=topics)


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], next_name: str, next_index: int
) -> DescribeTopicPartitionsResponseData:
    cursor = DescribeTopicPartitionsResponseCursor(topic_name=next_name, partition_index=next_index)
    return DescribeTopicPartitionsResponseData(topics=topics, next_cursor=cursor)


def _next_index(topic: TopicImage | None, described: DescribeTopicPartitionsResponseTopic) -> int | None:
    """The first partition that the page lacks; None for an unknown topic and after the last partition."""
    if topic is None or not described.partitions:
        return None
    after = described.partitions[-1].partition_index + 1
    return after if after < len(topic.partitions) else None


def _topic(image: MetadataImage, name: str, begin: int, limit: int) -> DescribeTopicPartitionsResponseTopic:
    topic = image.topics.get(name)
    if topic is None:
        return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
    page = enumerate(topic.partitions[begin : begin + limit], begin)
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
        partitions=[_partition(image, index, state) for index, state in page],
    )


def _partition(image: MetadataImage, index: int, state: PartitionState) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if state.leader != NO_LEADER else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=state.elr,
        last_known_elr=(),
        offline_replicas=offline_replicas(image, state),
    )
