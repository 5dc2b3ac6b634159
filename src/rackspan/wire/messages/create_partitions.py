"""CreatePartitions (key 37), versions 0-3. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class CreatePartitionsAssignment(WireStruct):
    __slots__ = ("broker_ids",)

    def __init__(self, *, broker_ids: Sequence[int] = ()) -> None:
        self.broker_ids = broker_ids


class CreatePartitionsTopic(WireStruct):
    __slots__ = ("name", "count", "assignments")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"assignments": CreatePartitionsAssignment}

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: Sequence[CreatePartitionsAssignment] | None = None,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = assignments


class CreatePartitionsRequestData(WireStruct):
    __slots__ = ("topics", "timeout", "validate_only")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": CreatePartitionsTopic}

    def __init__(
        self,
        *,
        topics: Sequence[CreatePartitionsTopic] = (),
        timeout: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = topics
        self.timeout = timeout
        self.validate_only = validate_only


class CreatePartitionsTopicResult(WireStruct):
    __slots__ = ("name", "error_code", "error_message")

    def __init__(self, *, name: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponseData(WireStruct):
    __slots__ = ("throttle_time", "results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results": CreatePartitionsTopicResult}

    def __init__(self, *, throttle_time: int = 0, results: Sequence[CreatePartitionsTopicResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.results = results
