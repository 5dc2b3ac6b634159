"""ListOffsets (key 2), versions 1-10. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ListOffsetsPartition(WireStruct):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp")

    def __init__(self, *, partition_index: int = 0, current_leader_epoch: int = -1, timestamp: int = 0) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": ListOffsetsPartition}

    def __init__(self, *, name: str = "", partitions: Sequence[ListOffsetsPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class ListOffsetsRequestData(WireStruct):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": ListOffsetsTopic}

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: Sequence[ListOffsetsTopic] = (),
        timeout: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = topics
        self.timeout = timeout


class ListOffsetsPartitionResponse(WireStruct):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": ListOffsetsPartitionResponse}

    def __init__(self, *, name: str = "", partitions: Sequence[ListOffsetsPartitionResponse] = ()) -> None:
        self.name = name
        self.partitions = partitions


class ListOffsetsResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": ListOffsetsTopicResponse}

    def __init__(self, *, throttle_time: int = 0, topics: Sequence[ListOffsetsTopicResponse] = ()) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
