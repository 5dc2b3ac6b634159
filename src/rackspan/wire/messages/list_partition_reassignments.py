"""ListPartitionReassignments (key 46), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ListPartitionReassignmentsTopics(WireStruct):
    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class ListPartitionReassignmentsRequestData(WireStruct):
    __slots__ = ("timeout", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": ListPartitionReassignmentsTopics}

    def __init__(
        self,
        *,
        timeout: int = 60000,
        topics: Sequence[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout = timeout
        self.topics = topics


class OngoingPartitionReassignment(WireStruct):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: Sequence[int] = (),
        adding_replicas: Sequence[int] = (),
        removing_replicas: Sequence[int] = (),
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.adding_replicas = adding_replicas
        self.removing_replicas = removing_replicas


class OngoingTopicReassignment(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OngoingPartitionReassignment}

    def __init__(self, *, name: str = "", partitions: Sequence[OngoingPartitionReassignment] = ()) -> None:
        self.name = name
        self.partitions = partitions


class ListPartitionReassignmentsResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "error_message", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OngoingTopicReassignment}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        topics: Sequence[OngoingTopicReassignment] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.error_message = error_message
        self.topics = topics
