"""AlterPartitionReassignments (key 45), versions 0-1. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class AlterPartitionReassignmentsRequestReassignablePartition(WireStruct):
    __slots__ = ("partition_index", "replicas")

    def __init__(self, *, partition_index: int = 0, replicas: Sequence[int] | None = None) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "partitions": AlterPartitionReassignmentsRequestReassignablePartition,
    }

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[AlterPartitionReassignmentsRequestReassignablePartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions


class AlterPartitionReassignmentsRequestData(WireStruct):
    __slots__ = ("timeout", "allow_replication_factor_change", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": ReassignableTopic}

    def __init__(
        self,
        *,
        timeout: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: Sequence[ReassignableTopic] = (),
    ) -> None:
        self.timeout = timeout
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = topics


class ReassignablePartitionResponse(WireStruct):
    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class ReassignableTopicResponse(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": ReassignablePartitionResponse}

    def __init__(self, *, name: str = "", partitions: Sequence[ReassignablePartitionResponse] = ()) -> None:
        self.name = name
        self.partitions = partitions


class AlterPartitionReassignmentsResponseData(WireStruct):
    __slots__ = ("throttle_time", "allow_replication_factor_change", "error_code", "error_message", "responses")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"responses": ReassignableTopicResponse}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = None,
        responses: Sequence[ReassignableTopicResponse] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = responses
