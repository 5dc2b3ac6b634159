"""DeleteRecords (key 21), versions 0-2: raises the log start offset on the leader; -1 is the high watermark."""

import asyncio

from rackspan.cluster.context import Call
from rackspan.cluster.core.messages import DeleteRecords, DeleteRecordsResponse
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.log_offsets import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequestData,
    DeleteRecordsResponseData,
    DeleteRecordsTopicResult,
)


async def handle(call: Call[DeleteRecordsRequestData]) -> DeleteRecordsResponseData:
    return DeleteRecordsResponseData(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=await asyncio.gather(
                    *(_delete(call, topic.name, partition) for partition in topic.partitions)
                ),
            )
            for topic in call.request.topics
        ]
    )


async def _delete(
    call: Call[DeleteRecordsRequestData], topic: str, deletion: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    partition = TopicPartition(topic, deletion.partition_index)
    response: DeleteRecordsResponse = await call.broker.requests.core_response(
        lambda correlation_id: DeleteRecords(correlation_id, partition, deletion.offset),
        call.request.timeout,
        DeleteRecordsResponse(ErrorCode.REQUEST_TIMED_OUT),
    )
    return DeleteRecordsPartitionResult(
        partition_index=partition.partition,
        low_watermark=response.low_watermark,
        error_code=call.broker.code(response.error),
    )
