"""OffsetDelete (key 47), version 0 (KIP-496): deletes committed offsets of a group."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import OffsetDelete, OffsetDeleteResponse
from rackspan.cluster.handlers.common import by_topic, group_response, partition_exists
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.group_offsets import (
    OffsetDeleteRequestData,
    OffsetDeleteResponseData,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(call: Call[OffsetDeleteRequestData]) -> OffsetDeleteResponseData:
    requested = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in call.request.topics
        for partition in topic.partitions
    ]
    known = tuple(partition for partition in requested if partition_exists(call, partition))
    response: OffsetDeleteResponse = await group_response(call, OffsetDelete(call.request.group_id, known))
    if response.error is not ErrorCode.NONE:
        return OffsetDeleteResponseData(error_code=call.broker.code(response.error))
    errors = dict.fromkeys(requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) | dict(response.errors)
    return OffsetDeleteResponseData(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition, error_code=call.broker.code(errors[partition])
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(requested).items()
        ]
    )
