"""CreateTopics (key 19), versions 2-7. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class CreatableReplicaAssignment(WireStruct):
    __slots__ = ("partition_index", "broker_ids")

    def __init__(self, *, partition_index: int = 0, broker_ids: Sequence[int] = ()) -> None:
        self.partition_index = partition_index
        self.broker_ids = broker_ids


class CreatableTopicConfig(WireStruct):
    __slots__ = ("name", "value")

    def __init__(self, *, name: str = "", value: str | None = None) -> None:
        self.name = name
        self.value = value


class CreatableTopic(WireStruct):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "assignments": CreatableReplicaAssignment,
        "configs": CreatableTopicConfig,
    }

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: Sequence[CreatableReplicaAssignment] = (),
        configs: Sequence[CreatableTopicConfig] = (),
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = assignments
        self.configs = configs


class CreateTopicsRequestData(WireStruct):
    __slots__ = ("topics", "timeout", "validate_only")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": CreatableTopic}

    def __init__(
        self,
        *,
        topics: Sequence[CreatableTopic] = (),
        timeout: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = topics
        self.timeout = timeout
        self.validate_only = validate_only


class CreatableTopicConfigs(WireStruct):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = None,
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(WireStruct):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"configs": CreatableTopicConfigs}

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        error_code: int = 0,
        error_message: str | None = None,
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: Sequence[CreatableTopicConfigs] | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = configs


class CreateTopicsResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": CreatableTopicResult}

    def __init__(self, *, throttle_time: int = 0, topics: Sequence[CreatableTopicResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
