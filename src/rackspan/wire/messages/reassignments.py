"""Requests and responses: reassignments. Generated from kio's schemas by tools/wire_messages.py: do not edit.

ElectLeaders (key 43), versions 0-2; AlterPartitionReassignments (key 45), versions 0-1; ListPartitionReassignments (key
46), version 0.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class ElectLeadersRequestTopicPartitions(WireStruct):
    topic: str = ""
    partitions: Sequence[int] = ()


class ElectLeadersRequestData(WireStruct):
    election_type: int = 0
    topic_partitions: Sequence[ElectLeadersRequestTopicPartitions] | None = None
    timeout: int = 60000


class PartitionResult(WireStruct):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = None


class ReplicaElectionResult(WireStruct):
    topic: str = ""
    partition_result: Sequence[PartitionResult] = ()


class ElectLeadersResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    replica_election_results: Sequence[ReplicaElectionResult] = ()


class AlterPartitionReassignmentsRequestReassignablePartition(WireStruct):
    partition_index: int = 0
    replicas: Sequence[int] | None = None


class ReassignableTopic(WireStruct):
    name: str = ""
    partitions: Sequence[AlterPartitionReassignmentsRequestReassignablePartition] = ()


class AlterPartitionReassignmentsRequestData(WireStruct):
    timeout: int = 60000
    allow_replication_factor_change: bool = True
    topics: Sequence[ReassignableTopic] = ()


class ReassignablePartitionResponse(WireStruct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


class ReassignableTopicResponse(WireStruct):
    name: str = ""
    partitions: Sequence[ReassignablePartitionResponse] = ()


class AlterPartitionReassignmentsResponseData(WireStruct):
    throttle_time: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[ReassignableTopicResponse] = ()


class ListPartitionReassignmentsTopics(WireStruct):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class ListPartitionReassignmentsRequestData(WireStruct):
    timeout: int = 60000
    topics: Sequence[ListPartitionReassignmentsTopics] | None = None


class OngoingPartitionReassignment(WireStruct):
    partition_index: int = 0
    replicas: Sequence[int] = ()
    adding_replicas: Sequence[int] = ()
    removing_replicas: Sequence[int] = ()


class OngoingTopicReassignment(WireStruct):
    name: str = ""
    partitions: Sequence[OngoingPartitionReassignment] = ()


class ListPartitionReassignmentsResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    error_message: str | None = None
    topics: Sequence[OngoingTopicReassignment] = ()
