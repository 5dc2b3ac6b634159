"""DeleteRecords (key 21), versions 0-2. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DeleteRecordsPartition(WireStruct):
    __slots__ = ("partition_index", "offset")

    def __init__(self, *, partition_index: int = 0, offset: int = 0) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": DeleteRecordsPartition}

    def __init__(self, *, name: str = "", partitions: Sequence[DeleteRecordsPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DeleteRecordsRequestData(WireStruct):
    __slots__ = ("topics", "timeout")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DeleteRecordsTopic}

    def __init__(self, *, topics: Sequence[DeleteRecordsTopic] = (), timeout: int = 0) -> None:
        self.topics = topics
        self.timeout = timeout


class DeleteRecordsPartitionResult(WireStruct):
    __slots__ = ("partition_index", "low_watermark", "error_code")

    def __init__(self, *, partition_index: int = 0, low_watermark: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": DeleteRecordsPartitionResult}

    def __init__(self, *, name: str = "", partitions: Sequence[DeleteRecordsPartitionResult] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DeleteRecordsResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DeleteRecordsTopicResult}

    def __init__(self, *, throttle_time: int = 0, topics: Sequence[DeleteRecordsTopicResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
