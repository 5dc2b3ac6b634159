"""ListConfigResources (key 74), versions 0-1. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ListConfigResourcesRequestData(WireStruct):
    __slots__ = ("resource_types",)

    def __init__(self, *, resource_types: Sequence[int] = ()) -> None:
        self.resource_types = resource_types


class ListConfigResourcesResponseConfigResource(WireStruct):
    __slots__ = ("resource_name", "resource_type")

    def __init__(self, *, resource_name: str = "", resource_type: int = 16) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


class ListConfigResourcesResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "config_resources")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"config_resources": ListConfigResourcesResponseConfigResource}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        config_resources: Sequence[ListConfigResourcesResponseConfigResource] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.config_resources = config_resources
