"""DeleteTopics (key 20), versions 1-6. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class DeleteTopicState(WireStruct):
    __slots__ = ("name", "topic_id")

    def __init__(self, *, name: str | None = None, topic_id: UUID | None = None) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequestData(WireStruct):
    __slots__ = ("topic_names", "topics", "timeout")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DeleteTopicState}

    def __init__(
        self,
        *,
        topic_names: Sequence[str] = (),
        topics: Sequence[DeleteTopicState] = (),
        timeout: int = 0,
    ) -> None:
        self.topic_names = topic_names
        self.topics = topics
        self.timeout = timeout


class DeletableTopicResult(WireStruct):
    __slots__ = ("name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: UUID | None = None,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponseData(WireStruct):
    __slots__ = ("throttle_time", "responses")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"responses": DeletableTopicResult}

    def __init__(self, *, throttle_time: int = 0, responses: Sequence[DeletableTopicResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.responses = responses
