"""DescribeQuorum (key 55), versions 0-2. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class DescribeQuorumRequestPartitionData(WireStruct):
    __slots__ = ("partition_index",)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index = partition_index


class DescribeQuorumRequestTopicData(WireStruct):
    __slots__ = ("topic_name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": DescribeQuorumRequestPartitionData}

    def __init__(self, *, topic_name: str = "", partitions: Sequence[DescribeQuorumRequestPartitionData] = ()) -> None:
        self.topic_name = topic_name
        self.partitions = partitions


class DescribeQuorumRequestData(WireStruct):
    __slots__ = ("topics",)
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DescribeQuorumRequestTopicData}

    def __init__(self, *, topics: Sequence[DescribeQuorumRequestTopicData] = ()) -> None:
        self.topics = topics


class DescribeQuorumResponseReplicaState(WireStruct):
    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: UUID | None = None,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class DescribeQuorumResponsePartitionData(WireStruct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "current_voters": DescribeQuorumResponseReplicaState,
        "observers": DescribeQuorumResponseReplicaState,
    }

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: Sequence[DescribeQuorumResponseReplicaState] = (),
        observers: Sequence[DescribeQuorumResponseReplicaState] = (),
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = current_voters
        self.observers = observers


class DescribeQuorumResponseTopicData(WireStruct):
    __slots__ = ("topic_name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": DescribeQuorumResponsePartitionData}

    def __init__(self, *, topic_name: str = "", partitions: Sequence[DescribeQuorumResponsePartitionData] = ()) -> None:
        self.topic_name = topic_name
        self.partitions = partitions


class DescribeQuorumResponseListener(WireStruct):
    __slots__ = ("name", "host", "port")

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port


class DescribeQuorumResponseNode(WireStruct):
    __slots__ = ("node_id", "listeners")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"listeners": DescribeQuorumResponseListener}

    def __init__(self, *, node_id: int = 0, listeners: Sequence[DescribeQuorumResponseListener] = ()) -> None:
        self.node_id = node_id
        self.listeners = listeners


class DescribeQuorumResponseData(WireStruct):
    __slots__ = ("error_code", "error_message", "topics", "nodes")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "topics": DescribeQuorumResponseTopicData,
        "nodes": DescribeQuorumResponseNode,
    }

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        topics: Sequence[DescribeQuorumResponseTopicData] = (),
        nodes: Sequence[DescribeQuorumResponseNode] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = topics
        self.nodes = nodes
