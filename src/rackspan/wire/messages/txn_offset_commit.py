"""TxnOffsetCommit (key 28), versions 0-5. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class TxnOffsetCommitRequestPartition(WireStruct):
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


class TxnOffsetCommitRequestTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": TxnOffsetCommitRequestPartition}

    def __init__(self, *, name: str = "", partitions: Sequence[TxnOffsetCommitRequestPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class TxnOffsetCommitRequestData(WireStruct):
    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": TxnOffsetCommitRequestTopic}

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: Sequence[TxnOffsetCommitRequestTopic] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = topics


class TxnOffsetCommitResponsePartition(WireStruct):
    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": TxnOffsetCommitResponsePartition}

    def __init__(self, *, name: str = "", partitions: Sequence[TxnOffsetCommitResponsePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class TxnOffsetCommitResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": TxnOffsetCommitResponseTopic}

    def __init__(self, *, throttle_time: int = 0, topics: Sequence[TxnOffsetCommitResponseTopic] = ()) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
