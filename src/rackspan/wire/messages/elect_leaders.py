"""ElectLeaders (key 43), versions 0-2. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class TopicPartitions(WireStruct):
    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class ElectLeadersRequestData(WireStruct):
    __slots__ = ("election_type", "topic_partitions", "timeout")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topic_partitions": TopicPartitions}

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: Sequence[TopicPartitions] | None = None,
        timeout: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = topic_partitions
        self.timeout = timeout


class PartitionResult(WireStruct):
    __slots__ = ("partition_id", "error_code", "error_message")

    def __init__(self, *, partition_id: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(WireStruct):
    __slots__ = ("topic", "partition_result")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partition_result": PartitionResult}

    def __init__(self, *, topic: str = "", partition_result: Sequence[PartitionResult] = ()) -> None:
        self.topic = topic
        self.partition_result = partition_result


class ElectLeadersResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "replica_election_results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"replica_election_results": ReplicaElectionResult}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        replica_election_results: Sequence[ReplicaElectionResult] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.replica_election_results = replica_election_results
