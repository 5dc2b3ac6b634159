"""Requests and responses: describe quorum. Generated from kio's schemas by tools/wire_messages.py: do not edit.

DescribeQuorum (key 55), versions 0-2.
"""

from collections.abc import Sequence
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class DescribeQuorumRequestPartitionData(WireStruct):
    partition_index: int = 0


class DescribeQuorumRequestTopicData(WireStruct):
    topic_name: str = ""
    partitions: Sequence[DescribeQuorumRequestPartitionData] = ()


class DescribeQuorumRequestData(WireStruct):
    topics: Sequence[DescribeQuorumRequestTopicData] = ()


class DescribeQuorumResponseReplicaState(WireStruct):
    replica_id: int = 0
    replica_directory_id: UUID | None = None
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


class DescribeQuorumResponsePartitionData(WireStruct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: Sequence[DescribeQuorumResponseReplicaState] = ()
    observers: Sequence[DescribeQuorumResponseReplicaState] = ()


class DescribeQuorumResponseTopicData(WireStruct):
    topic_name: str = ""
    partitions: Sequence[DescribeQuorumResponsePartitionData] = ()


class DescribeQuorumResponseListener(WireStruct):
    name: str = ""
    host: str = ""
    port: int = 0


class DescribeQuorumResponseNode(WireStruct):
    node_id: int = 0
    listeners: Sequence[DescribeQuorumResponseListener] = ()


class DescribeQuorumResponseData(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    topics: Sequence[DescribeQuorumResponseTopicData] = ()
    nodes: Sequence[DescribeQuorumResponseNode] = ()
