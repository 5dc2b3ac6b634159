"""Requests and responses: metadata. Generated from kio's schemas by tools/wire_messages.py: do not edit.

Metadata (key 3), versions 0-13.
"""

from collections.abc import Sequence
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class MetadataRequestTopic(WireStruct):
    topic_id: UUID | None = None
    name: str | None = None


class MetadataRequestData(WireStruct):
    topics: Sequence[MetadataRequestTopic] | None = None
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


class MetadataResponseBroker(WireStruct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class MetadataResponsePartition(WireStruct):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    offline_replicas: Sequence[int] = ()


class MetadataResponseTopic(WireStruct):
    error_code: int = 0
    name: str | None = None
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: Sequence[MetadataResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class MetadataResponseData(WireStruct):
    throttle_time: int = 0
    brokers: Sequence[MetadataResponseBroker] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: Sequence[MetadataResponseTopic] = ()
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0
