"""AlterConfigs (key 33), versions 0-2. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class AlterConfigsRequestAlterableConfig(WireStruct):
    __slots__ = ("name", "value")

    def __init__(self, *, name: str = "", value: str | None = None) -> None:
        self.name = name
        self.value = value


class AlterConfigsResource(WireStruct):
    __slots__ = ("resource_type", "resource_name", "configs")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"configs": AlterConfigsRequestAlterableConfig}

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: Sequence[AlterConfigsRequestAlterableConfig] = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = configs


class AlterConfigsRequestData(WireStruct):
    __slots__ = ("resources", "validate_only")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"resources": AlterConfigsResource}

    def __init__(self, *, resources: Sequence[AlterConfigsResource] = (), validate_only: bool = False) -> None:
        self.resources = resources
        self.validate_only = validate_only


class AlterConfigsResourceResponse(WireStruct):
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


class AlterConfigsResponseData(WireStruct):
    __slots__ = ("throttle_time", "responses")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"responses": AlterConfigsResourceResponse}

    def __init__(self, *, throttle_time: int = 0, responses: Sequence[AlterConfigsResourceResponse] = ()) -> None:
        self.throttle_time = throttle_time
        self.responses = responses
