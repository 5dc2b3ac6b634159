"""Requests and responses: group offsets. Generated from kio's schemas by tools/wire_messages.py: do not edit.

OffsetCommit (key 8), versions 2-9; OffsetFetch (key 9), versions 1-9; OffsetDelete (key 47), version 0.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class OffsetCommitRequestPartition(WireStruct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


class OffsetCommitRequestTopic(WireStruct):
    name: str = ""
    partitions: Sequence[OffsetCommitRequestPartition] = ()


class OffsetCommitRequestData(WireStruct):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time: int = -1
    group_instance_id: str | None = None
    topics: Sequence[OffsetCommitRequestTopic] = ()


class OffsetCommitResponsePartition(WireStruct):
    partition_index: int = 0
    error_code: int = 0


class OffsetCommitResponseTopic(WireStruct):
    name: str = ""
    partitions: Sequence[OffsetCommitResponsePartition] = ()


class OffsetCommitResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[OffsetCommitResponseTopic] = ()


class OffsetFetchRequestTopic(WireStruct):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestTopics(WireStruct):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestGroup(WireStruct):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: Sequence[OffsetFetchRequestTopics] | None = None


class OffsetFetchRequestData(WireStruct):
    group_id: str = ""
    topics: Sequence[OffsetFetchRequestTopic] | None = None
    groups: Sequence[OffsetFetchRequestGroup] = ()
    require_stable: bool = False


class OffsetFetchResponsePartition(WireStruct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = None
    error_code: int = 0


class OffsetFetchResponseTopic(WireStruct):
    name: str = ""
    partitions: Sequence[OffsetFetchResponsePartition] = ()


class OffsetFetchResponsePartitions(WireStruct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = None
    error_code: int = 0


class OffsetFetchResponseTopics(WireStruct):
    name: str = ""
    partitions: Sequence[OffsetFetchResponsePartitions] = ()


class OffsetFetchResponseGroup(WireStruct):
    group_id: str = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: int = 0


class OffsetFetchResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[OffsetFetchResponseTopic] = ()
    error_code: int = 0
    groups: Sequence[OffsetFetchResponseGroup] = ()


class OffsetDeleteRequestPartition(WireStruct):
    partition_index: int = 0


class OffsetDeleteRequestTopic(WireStruct):
    name: str = ""
    partitions: Sequence[OffsetDeleteRequestPartition] = ()


class OffsetDeleteRequestData(WireStruct):
    group_id: str = ""
    topics: Sequence[OffsetDeleteRequestTopic] = ()


class OffsetDeleteResponsePartition(WireStruct):
    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(WireStruct):
    name: str = ""
    partitions: Sequence[OffsetDeleteResponsePartition] = ()


class OffsetDeleteResponseData(WireStruct):
    error_code: int = 0
    throttle_time: int = 0
    topics: Sequence[OffsetDeleteResponseTopic] = ()
