"""Requests and responses: log offsets. Generated from kio's schemas by tools/wire_messages.py: do not edit.

ListOffsets (key 2), versions 1-11; DeleteRecords (key 21), versions 0-2; OffsetForLeaderEpoch (key 23), versions 2-4.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class ListOffsetsPartition(WireStruct):
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0


class ListOffsetsTopic(WireStruct):
    name: str = ""
    partitions: Sequence[ListOffsetsPartition] = ()


class ListOffsetsRequestData(WireStruct):
    replica_id: int = 0
    isolation_level: int = 0
    topics: Sequence[ListOffsetsTopic] = ()
    timeout: int = 0


class ListOffsetsPartitionResponse(WireStruct):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(WireStruct):
    name: str = ""
    partitions: Sequence[ListOffsetsPartitionResponse] = ()


class ListOffsetsResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[ListOffsetsTopicResponse] = ()


class DeleteRecordsPartition(WireStruct):
    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(WireStruct):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


class DeleteRecordsRequestData(WireStruct):
    topics: Sequence[DeleteRecordsTopic] = ()
    timeout: int = 0


class DeleteRecordsPartitionResult(WireStruct):
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(WireStruct):
    name: str = ""
    partitions: Sequence[DeleteRecordsPartitionResult] = ()


class DeleteRecordsResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[DeleteRecordsTopicResult] = ()


class OffsetForLeaderPartition(WireStruct):
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(WireStruct):
    topic: str = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequestData(WireStruct):
    replica_id: int = -2
    topics: Sequence[OffsetForLeaderTopic] = ()


class OffsetForLeaderEpochResponseEpochEndOffset(WireStruct):
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(WireStruct):
    topic: str = ""
    partitions: Sequence[OffsetForLeaderEpochResponseEpochEndOffset] = ()


class OffsetForLeaderEpochResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()
