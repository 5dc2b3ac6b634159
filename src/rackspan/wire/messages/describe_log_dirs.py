"""DescribeLogDirs (key 35), versions 1-4. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DescribableLogDirTopic(WireStruct):
    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class DescribeLogDirsRequestData(WireStruct):
    __slots__ = ("topics",)
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DescribableLogDirTopic}

    def __init__(self, *, topics: Sequence[DescribableLogDirTopic] | None = None) -> None:
        self.topics = topics


class DescribeLogDirsPartition(WireStruct):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": DescribeLogDirsPartition}

    def __init__(self, *, name: str = "", partitions: Sequence[DescribeLogDirsPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DescribeLogDirsResult(WireStruct):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DescribeLogDirsTopic}

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: Sequence[DescribeLogDirsTopic] = (),
        total_bytes: int = -1,
        usable_bytes: int = -1,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes


class DescribeLogDirsResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results": DescribeLogDirsResult}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        results: Sequence[DescribeLogDirsResult] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.results = results
