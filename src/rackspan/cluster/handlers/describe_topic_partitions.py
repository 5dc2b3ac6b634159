"""DescribeTopicPartitions (key 75), version 0: Metadata in portions, with the eligible leader replicas (KIP-966).

Lists that are empty travel as [], never as null: Kafka's topics tool trips over null.
"""

from collections.abc import Iterator
from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState, TopicImage
from rackspan.cluster.handlers.common.topics import offline_replicas


def handle(call: Call) -> Body:
    image, cursor = call.broker.image, call.body["cursor"]
    names = sorted({one["name"] for one in call.body["topics"]} or image.topics)
    first, begin = (cursor["topic_name"], cursor["partition_index"]) if cursor else ("", 0)
    left = call.body["response_partition_limit"]
    topics: list[dict[str, Any]] = []
    for name in (one for one in names if one >= first):
        if left <= 0:
            return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": 0}}
        described = _topic(image, name, begin if name == first else 0, left)
        topics.append(described)
        left -= len(described["partitions"])
        if (next_index := _next_index(image.topics.get(name), described)) is not None:
            return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": next_index}}
    return {"topics": topics}


def _next_index(topic: TopicImage | None, described: dict[str, Any]) -> int | None:
    if topic is None or not described["partitions"]:
        return None
    after = int(described["partitions"][-1]["partition_index"]) + 1
    return after if after < len(topic.partitions) else None


def _topic(image: MetadataImage, name: str, begin: int, most: int) -> dict[str, Any]:
    topic = image.topics.get(name)
    if topic is None:
        return {"error_code": KafkaError.UNKNOWN_TOPIC_OR_PARTITION, "name": name, "partitions": []}
    return {
        "error_code": KafkaError.NONE,
        "name": name,
        "topic_id": topic.topic_id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": list(_partitions(image, topic, begin, begin + most)),
    }


def _partitions(image: MetadataImage, topic: TopicImage, begin: int, end: int) -> Iterator[dict[str, Any]]:
    for index, state in enumerate(topic.partitions[begin:end], begin):
        yield _partition(image, index, state)


def _partition(image: MetadataImage, index: int, state: PartitionState) -> dict[str, Any]:
    return {
        "error_code": KafkaError.NONE if state.leader != NO_LEADER else KafkaError.LEADER_NOT_AVAILABLE,
        "partition_index": index,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "eligible_leader_replicas": state.elr,
        "last_known_elr": (),
        "offline_replicas": offline_replicas(image, state),
    }
