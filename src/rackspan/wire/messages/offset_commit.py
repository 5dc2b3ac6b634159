"""OffsetCommit (key 8), versions 2-9. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class OffsetCommitRequestPartition(WireStruct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetCommitRequestPartition}

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetCommitRequestPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetCommitRequestData(WireStruct):
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "retention_time",
        "group_instance_id",
        "topics",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetCommitRequestTopic}

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        retention_time: int = -1,
        group_instance_id: str | None = None,
        topics: Sequence[OffsetCommitRequestTopic] = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.retention_time = retention_time
        self.group_instance_id = group_instance_id
        self.topics = topics


class OffsetCommitResponsePartition(WireStruct):
    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetCommitResponsePartition}

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetCommitResponsePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetCommitResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetCommitResponseTopic}

    def __init__(self, *, throttle_time: int = 0, topics: Sequence[OffsetCommitResponseTopic] = ()) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
