"""ListOffsets (key 2), versions 1-11: the ends of logs, and the offset at a timestamp. Leaders alone serve it to consumers.

A timestamp after the last record gives offset -1 and timestamp -1: Java clients throw at any other pair.
Special timestamps: -1 the end, -2 the start, -3 the greatest timestamp (KIP-734), -4 to -6 of tiered logs,
where every log is local here. Replica id -2 reads any replica, up to its log end.
"""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.broker import Isolation
from rackspan.cluster.core.broker.reading import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetResponse
from rackspan.cluster.handlers.common import READ_COMMITTED, RecordPosition, first_record_at, latest_record
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequestData,
    ListOffsetsResponseData,
    ListOffsetsTopicResponse,
)

DEBUGGING_REPLICA: Final = -2
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

_SINCE: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version with each special timestamp."""


def handle(call: Call[ListOffsetsRequestData]) -> ListOffsetsResponseData:
    return ListOffsetsResponseData(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_partition(call, topic.name, partition) for partition in topic.partitions]
            )
            for topic in call.request.topics
        ]
    )


def _partition(
    call: Call[ListOffsetsRequestData], topic: str, requested: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    response = _offset(call, TopicPartition(topic, requested.partition_index), requested)
    record = _record(response, requested.timestamp)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        error_code=call.broker.code(response.error),
        timestamp=record.timestamp,
        offset=record.offset,
        leader_epoch=response.leader_epoch if record.offset >= 0 else -1,
    )


def _offset(
    call: Call[ListOffsetsRequestData], partition: TopicPartition, requested: ListOffsetsPartition
) -> OffsetResponse:
    if requested.timestamp < 0 and call.version < _SINCE.get(requested.timestamp, call.version + 1):
        return OffsetResponse(ErrorCode.UNSUPPORTED_VERSION)
    if requested.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return OffsetResponse(ErrorCode.NONE)
    return call.broker.core.offset_for_timestamp(
        partition,
        EARLIEST if requested.timestamp == EARLIEST_LOCAL else requested.timestamp,
        Isolation(call.request.isolation_level & READ_COMMITTED),
        requested.current_leader_epoch,
        debugging=call.request.replica_id == DEBUGGING_REPLICA,
    )


def _record(response: OffsetResponse, timestamp: int) -> RecordPosition:
    if response.batch is None:
        return RecordPosition(response.offset, -1)
    return latest_record(response.batch) if timestamp == MAX_TIMESTAMP else first_record_at(response.batch, timestamp)
