"""OffsetCommit (key 8), versions 2-9. Leader epochs arrive in v6, static members in v7. The topics must exist."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import OffsetCommit
from rackspan.cluster.handlers.common import by_topic, committed_offsets, group_response, partition_exists
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.group_offsets import (
    OffsetCommitRequestData,
    OffsetCommitResponseData,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


async def handle(call: Call[OffsetCommitRequestData]) -> OffsetCommitResponseData:
    request = call.request
    offsets = committed_offsets(request.topics)
    known = {partition: offset for partition, offset in offsets.items() if partition_exists(call, partition)}
    errors = dict.fromkeys(offsets, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if known:
        commit = OffsetCommit(
            request.group_id,
            known,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
        )
        errors |= (await group_response(call, commit)).errors
    return OffsetCommitResponseData(
        topics=[
            OffsetCommitResponseTopic(
                name=topic,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition, error_code=call.broker.code(errors[partition])
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ]
    )
