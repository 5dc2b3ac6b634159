"""DeleteRecords (key 21), versions 0-2: moves the start of logs, on their leaders; -1 is the high watermark."""

import asyncio
from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import DeleteRecords, DeleteRecordsResponse
from rackspan.model.ids import TopicPartition


async def handle(call: Call) -> Body:
    return {
        "topics": [
            {
                "name": topic["name"],
                "partitions": await asyncio.gather(*(_delete(call, topic["name"], one) for one in topic["partitions"])),
            }
            for topic in call.body["topics"]
        ]
    }


async def _delete(call: Call, topic: str, one: dict[str, Any]) -> dict[str, Any]:
    partition, offset = TopicPartition(topic, one["partition_index"]), one["offset"]
    result: DeleteRecordsResponse = await call.broker.requests.core_response(
        lambda correlation_id: DeleteRecords(correlation_id, partition, offset),
        call.body["timeout"],
        DeleteRecordsResponse(KafkaError.REQUEST_TIMED_OUT),
    )
    return {
        "partition_index": partition.partition,
        "low_watermark": result.low_watermark,
        "error_code": call.broker.code(result.error),
    }
