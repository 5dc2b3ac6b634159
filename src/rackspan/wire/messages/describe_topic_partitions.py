"""DescribeTopicPartitions (key 75), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class DescribeTopicPartitionsRequestTopicRequest(WireStruct):
    __slots__ = ("name",)

    def __init__(self, *, name: str = "") -> None:
        self.name = name


class DescribeTopicPartitionsRequestCursor(WireStruct):
    __slots__ = ("topic_name", "partition_index")

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequestData(WireStruct):
    __slots__ = ("topics", "response_partition_limit", "cursor")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "topics": DescribeTopicPartitionsRequestTopicRequest,
        "cursor": DescribeTopicPartitionsRequestCursor,
    }

    def __init__(
        self,
        *,
        topics: Sequence[DescribeTopicPartitionsRequestTopicRequest] = (),
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequestCursor | None = None,
    ) -> None:
        self.topics = topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


class DescribeTopicPartitionsResponsePartition(WireStruct):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: Sequence[int] = (),
        isr_nodes: Sequence[int] = (),
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = replica_nodes
        self.isr_nodes = isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = offline_replicas


class DescribeTopicPartitionsResponseTopic(WireStruct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": DescribeTopicPartitionsResponsePartition}

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = None,
        topic_id: UUID | None = None,
        is_internal: bool = False,
        partitions: Sequence[DescribeTopicPartitionsResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.topic_authorized_operations = topic_authorized_operations


class DescribeTopicPartitionsResponseCursor(WireStruct):
    __slots__ = ("topic_name", "partition_index")

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics", "next_cursor")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "topics": DescribeTopicPartitionsResponseTopic,
        "next_cursor": DescribeTopicPartitionsResponseCursor,
    }

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        topics: Sequence[DescribeTopicPartitionsResponseTopic] = (),
        next_cursor: DescribeTopicPartitionsResponseCursor | None = None,
    ) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
        self.next_cursor = next_cursor
