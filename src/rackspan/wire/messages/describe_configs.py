"""DescribeConfigs (key 32), versions 1-4. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DescribeConfigsResource(WireStruct):
    __slots__ = ("resource_type", "resource_name", "configuration_keys")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: Sequence[str] | None = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = configuration_keys


class DescribeConfigsRequestData(WireStruct):
    __slots__ = ("resources", "include_synonyms", "include_documentation")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"resources": DescribeConfigsResource}

    def __init__(
        self,
        *,
        resources: Sequence[DescribeConfigsResource] = (),
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


class DescribeConfigsSynonym(WireStruct):
    __slots__ = ("name", "value", "source")

    def __init__(self, *, name: str = "", value: str | None = None, source: int = 0) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(WireStruct):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"synonyms": DescribeConfigsSynonym}

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = None,
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: Sequence[DescribeConfigsSynonym] = (),
        config_type: int = 0,
        documentation: str | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(WireStruct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"configs": DescribeConfigsResourceResult}

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
        configs: Sequence[DescribeConfigsResourceResult] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = configs


class DescribeConfigsResponseData(WireStruct):
    __slots__ = ("throttle_time", "results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results": DescribeConfigsResult}

    def __init__(self, *, throttle_time: int = 0, results: Sequence[DescribeConfigsResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.results = results
