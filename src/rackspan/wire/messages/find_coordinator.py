"""FindCoordinator (key 10), versions 0-6. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class FindCoordinatorRequestData(WireStruct):
    __slots__ = ("key", "key_type", "coordinator_keys")

    def __init__(self, *, key: str = "", key_type: int = 0, coordinator_keys: Sequence[str] = ()) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = coordinator_keys


class FindCoordinatorResponseCoordinator(WireStruct):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "error_message", "node_id", "host", "port", "coordinators")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"coordinators": FindCoordinatorResponseCoordinator}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: Sequence[FindCoordinatorResponseCoordinator] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = coordinators
