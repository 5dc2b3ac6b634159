"""Requests and responses: topics. Generated from kio's schemas by tools/wire_messages.py: do not edit.

CreateTopics (key 19), versions 2-7; DeleteTopics (key 20), versions 1-6; CreatePartitions (key 37), versions 0-3;
DescribeTopicPartitions (key 75), version 0.
"""

from collections.abc import Sequence
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class CreatableReplicaAssignment(WireStruct):
    partition_index: int = 0
    broker_ids: Sequence[int] = ()


class CreatableTopicConfig(WireStruct):
    name: str = ""
    value: str | None = None


class CreatableTopic(WireStruct):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: Sequence[CreatableReplicaAssignment] = ()
    configs: Sequence[CreatableTopicConfig] = ()


class CreateTopicsRequestData(WireStruct):
    topics: Sequence[CreatableTopic] = ()
    timeout: int = 60000
    validate_only: bool = False


class CreatableTopicConfigs(WireStruct):
    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(WireStruct):
    name: str = ""
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[CreatableTopicConfigs] | None = None


class CreateTopicsResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[CreatableTopicResult] = ()


class DeleteTopicState(WireStruct):
    name: str | None = None
    topic_id: UUID | None = None


class DeleteTopicsRequestData(WireStruct):
    topic_names: Sequence[str] = ()
    topics: Sequence[DeleteTopicState] = ()
    timeout: int = 0


class DeletableTopicResult(WireStruct):
    name: str | None = None
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = None


class DeleteTopicsResponseData(WireStruct):
    throttle_time: int = 0
    responses: Sequence[DeletableTopicResult] = ()


class CreatePartitionsAssignment(WireStruct):
    broker_ids: Sequence[int] = ()


class CreatePartitionsTopic(WireStruct):
    name: str = ""
    count: int = 0
    assignments: Sequence[CreatePartitionsAssignment] | None = None


class CreatePartitionsRequestData(WireStruct):
    topics: Sequence[CreatePartitionsTopic] = ()
    timeout: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(WireStruct):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponseData(WireStruct):
    throttle_time: int = 0
    results: Sequence[CreatePartitionsTopicResult] = ()


class DescribeTopicPartitionsRequestTopicRequest(WireStruct):
    name: str = ""


class DescribeTopicPartitionsRequestCursor(WireStruct):
    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsRequestData(WireStruct):
    topics: Sequence[DescribeTopicPartitionsRequestTopicRequest] = ()
    response_partition_limit: int = 2000
    cursor: DescribeTopicPartitionsRequestCursor | None = None


class DescribeTopicPartitionsResponsePartition(WireStruct):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    eligible_leader_replicas: Sequence[int] | None = None
    last_known_elr: Sequence[int] | None = None
    offline_replicas: Sequence[int] = ()


class DescribeTopicPartitionsResponseTopic(WireStruct):
    error_code: int = 0
    name: str | None = None
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class DescribeTopicPartitionsResponseCursor(WireStruct):
    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: DescribeTopicPartitionsResponseCursor | None = None
