"""OffsetForLeaderEpoch (key 23), versions 2-4: the end offset of a leader epoch, by which a consumer detects truncation (KIP-320)."""

from rackspan.cluster.context import Call
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.log_offsets import (
    OffsetForLeaderEpochRequestData,
    OffsetForLeaderEpochResponseData,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(call: Call[OffsetForLeaderEpochRequestData]) -> OffsetForLeaderEpochResponseData:
    return OffsetForLeaderEpochResponseData(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_offset(call, topic.topic, partition) for partition in topic.partitions],
            )
            for topic in call.request.topics
        ]
    )


def _end_offset(
    call: Call[object], topic: str, requested: OffsetForLeaderPartition
) -> OffsetForLeaderEpochResponseEpochEndOffset:
    error, end = call.broker.core.offset_for_leader_epoch(
        TopicPartition(topic, requested.partition), requested.leader_epoch, requested.current_leader_epoch
    )
    return OffsetForLeaderEpochResponseEpochEndOffset(
        partition=requested.partition,
        error_code=call.broker.code(error),
        leader_epoch=end.epoch,
        end_offset=end.end_offset,
    )
