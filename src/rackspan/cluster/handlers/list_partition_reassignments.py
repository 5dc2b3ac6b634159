"""ListPartitionReassignments (key 46), version 0: what is being moved, of all partitions or of those named."""

from collections.abc import Iterator
from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.metadata import MetadataImage, PartitionState
from rackspan.cluster.handlers.common.topics import by_topic
from rackspan.model.ids import TopicPartition


def handle(call: Call) -> Body:
    moving = [one for one in _asked(call) if one[1].reassigning]
    return {
        "topics": [
            {"name": topic, "partitions": [_moving(partition, state) for partition, state in listed]}
            for topic, listed in by_topic(moving, lambda one: one[0].topic).items()
        ]
    }


def _asked(call: Call) -> Iterator[tuple[TopicPartition, PartitionState]]:
    image = call.broker.image
    wanted = _all(image) if call.body["topics"] is None else _named(call)
    for partition in wanted:
        state = image.partition(partition)
        if state is not None:
            yield partition, state


def _all(image: MetadataImage) -> Iterator[TopicPartition]:
    for name, topic in sorted(image.topics.items()):
        yield from (TopicPartition(name, index) for index in range(len(topic.partitions)))


def _named(call: Call) -> Iterator[TopicPartition]:
    for topic in call.body["topics"]:
        yield from (TopicPartition(topic["name"], index) for index in topic["partition_indexes"])


def _moving(partition: TopicPartition, state: PartitionState) -> dict[str, Any]:
    return {
        "partition_index": partition.partition,
        "replicas": state.replicas,
        "adding_replicas": state.adding,
        "removing_replicas": state.removing,
    }
