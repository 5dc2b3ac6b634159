"""OffsetForLeaderEpoch (key 23), versions 2-4. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class OffsetForLeaderPartition(WireStruct):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")

    def __init__(self, *, partition: int = 0, current_leader_epoch: int = -1, leader_epoch: int = 0) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(WireStruct):
    __slots__ = ("topic", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetForLeaderPartition}

    def __init__(self, *, topic: str = "", partitions: Sequence[OffsetForLeaderPartition] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class OffsetForLeaderEpochRequestData(WireStruct):
    __slots__ = ("replica_id", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetForLeaderTopic}

    def __init__(self, *, replica_id: int = -2, topics: Sequence[OffsetForLeaderTopic] = ()) -> None:
        self.replica_id = replica_id
        self.topics = topics


class OffsetForLeaderEpochResponseEpochEndOffset(WireStruct):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(WireStruct):
    __slots__ = ("topic", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetForLeaderEpochResponseEpochEndOffset}

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: Sequence[OffsetForLeaderEpochResponseEpochEndOffset] = (),
    ) -> None:
        self.topic = topic
        self.partitions = partitions


class OffsetForLeaderEpochResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetForLeaderTopicResult}

    def __init__(self, *, throttle_time: int = 0, topics: Sequence[OffsetForLeaderTopicResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
