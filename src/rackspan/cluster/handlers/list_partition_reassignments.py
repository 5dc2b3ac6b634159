"""ListPartitionReassignments (key 46), version 0: partitions under reassignment, among all or among those of the request."""

from collections.abc import Iterator

from rackspan.cluster.context import Call
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.handlers.common import by_topic
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.reassignments import (
    ListPartitionReassignmentsRequestData,
    ListPartitionReassignmentsResponseData,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(call: Call[ListPartitionReassignmentsRequestData]) -> ListPartitionReassignmentsResponseData:
    image = call.broker.image
    ongoing = (_ongoing(image, partition) for partition in _requested(call, image))
    return ListPartitionReassignmentsResponseData(
        topics=[
            OngoingTopicReassignment(name=topic, partitions=[reassignment for _, reassignment in of_topic])
            for topic, of_topic in by_topic(filter(None, ongoing), lambda pair: pair[0]).items()
        ]
    )


def _requested(call: Call[ListPartitionReassignmentsRequestData], image: MetadataImage) -> Iterator[TopicPartition]:
    if call.request.topics is None:
        for name, topic in sorted(image.topics.items()):
            yield from (TopicPartition(name, index) for index in range(len(topic.partitions)))
    else:
        for requested in call.request.topics:
            yield from (TopicPartition(requested.name, index) for index in requested.partition_indexes)


def _ongoing(
    image: MetadataImage, partition: TopicPartition
) -> tuple[TopicPartition, OngoingPartitionReassignment] | None:
    state = image.partition(partition)
    if state is None or not state.reassigning:
        return None
    return partition, OngoingPartitionReassignment(
        partition_index=partition.partition,
        replicas=state.replicas,
        adding_replicas=state.adding,
        removing_replicas=state.removing,
    )
