"""OffsetDelete (key 47), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class OffsetDeleteRequestPartition(WireStruct):
    __slots__ = ("partition_index",)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetDeleteRequestPartition}

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetDeleteRequestPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetDeleteRequestData(WireStruct):
    __slots__ = ("group_id", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetDeleteRequestTopic}

    def __init__(self, *, group_id: str = "", topics: Sequence[OffsetDeleteRequestTopic] = ()) -> None:
        self.group_id = group_id
        self.topics = topics


class OffsetDeleteResponsePartition(WireStruct):
    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetDeleteResponseTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetDeleteResponsePartition}

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetDeleteResponsePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetDeleteResponseData(WireStruct):
    __slots__ = ("error_code", "throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetDeleteResponseTopic}

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time: int = 0,
        topics: Sequence[OffsetDeleteResponseTopic] = (),
    ) -> None:
        self.error_code = error_code
        self.throttle_time = throttle_time
        self.topics = topics
