"""OffsetDelete (key 47), version 0 (KIP-496)."""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import OffsetDelete, OffsetDeleteResponse
from rackspan.cluster.handlers.common.group_requests import errors_by_topic, exists, group_response
from rackspan.model.ids import TopicPartition


async def handle(call: Call) -> Body:
    asked = [
        TopicPartition(topic["name"], one["partition_index"])
        for topic in call.body["topics"]
        for one in topic["partitions"]
    ]
    known = tuple(partition for partition in asked if exists(call, partition))
    answer: OffsetDeleteResponse = await group_response(call, OffsetDelete(call.body["group_id"], known))
    if answer.error is not KafkaError.NONE:
        return {"error_code": call.broker.code(answer.error)}
    errors = dict.fromkeys(asked, KafkaError.UNKNOWN_TOPIC_OR_PARTITION) | dict(answer.errors)
    return {"topics": errors_by_topic(call, errors, lambda: asked)}
