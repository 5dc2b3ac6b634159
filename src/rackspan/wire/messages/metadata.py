"""Metadata (key 3), versions 0-13. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class MetadataRequestTopic(WireStruct):
    __slots__ = ("topic_id", "name")

    def __init__(self, *, topic_id: UUID | None = None, name: str | None = None) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequestData(WireStruct):
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": MetadataRequestTopic}

    def __init__(
        self,
        *,
        topics: Sequence[MetadataRequestTopic] | None = None,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


class MetadataResponseBroker(WireStruct):
    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(WireStruct):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
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
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = replica_nodes
        self.isr_nodes = isr_nodes
        self.offline_replicas = offline_replicas


class MetadataResponseTopic(WireStruct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": MetadataResponsePartition}

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = None,
        topic_id: UUID | None = None,
        is_internal: bool = False,
        partitions: Sequence[MetadataResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponseData(WireStruct):
    __slots__ = (
        "throttle_time",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "brokers": MetadataResponseBroker,
        "topics": MetadataResponseTopic,
    }

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        brokers: Sequence[MetadataResponseBroker] = (),
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: Sequence[MetadataResponseTopic] = (),
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time = throttle_time
        self.brokers = brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
