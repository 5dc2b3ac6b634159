"""IncrementalAlterConfigs (key 44), versions 0-1. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class IncrementalAlterConfigsRequestAlterableConfig(WireStruct):
    __slots__ = ("name", "config_operation", "value")

    def __init__(self, *, name: str = "", config_operation: int = 0, value: str | None = None) -> None:
        self.name = name
        self.config_operation = config_operation
        self.value = value


class IncrementalAlterConfigsRequestAlterConfigsResource(WireStruct):
    __slots__ = ("resource_type", "resource_name", "configs")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"configs": IncrementalAlterConfigsRequestAlterableConfig}

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: Sequence[IncrementalAlterConfigsRequestAlterableConfig] = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = configs


class IncrementalAlterConfigsRequestData(WireStruct):
    __slots__ = ("resources", "validate_only")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "resources": IncrementalAlterConfigsRequestAlterConfigsResource,
    }

    def __init__(
        self,
        *,
        resources: Sequence[IncrementalAlterConfigsRequestAlterConfigsResource] = (),
        validate_only: bool = False,
    ) -> None:
        self.resources = resources
        self.validate_only = validate_only


class IncrementalAlterConfigsResponseAlterConfigsResourceResponse(WireStruct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class IncrementalAlterConfigsResponseData(WireStruct):
    __slots__ = ("throttle_time", "responses")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "responses": IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    }

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        responses: Sequence[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.responses = responses
