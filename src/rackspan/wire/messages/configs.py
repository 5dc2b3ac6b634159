"""Requests and responses: configs. Generated from kio's schemas by tools/wire_messages.py: do not edit.

DescribeConfigs (key 32), versions 1-4; AlterConfigs (key 33), versions 0-2; IncrementalAlterConfigs (key 44), versions
0-1; ListConfigResources (key 74), versions 0-1.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class DescribeConfigsResource(WireStruct):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: Sequence[str] | None = ()


class DescribeConfigsRequestData(WireStruct):
    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(WireStruct):
    name: str = ""
    value: str | None = None
    source: int = 0


class DescribeConfigsResourceResult(WireStruct):
    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: int = 0
    documentation: str | None = None


class DescribeConfigsResult(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[DescribeConfigsResourceResult] = ()


class DescribeConfigsResponseData(WireStruct):
    throttle_time: int = 0
    results: Sequence[DescribeConfigsResult] = ()


class AlterConfigsRequestAlterableConfig(WireStruct):
    name: str = ""
    value: str | None = None


class AlterConfigsResource(WireStruct):
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[AlterConfigsRequestAlterableConfig] = ()


class AlterConfigsRequestData(WireStruct):
    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


class AlterConfigsResponseData(WireStruct):
    throttle_time: int = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()


class IncrementalAlterConfigsRequestAlterableConfig(WireStruct):
    name: str = ""
    config_operation: int = 0
    value: str | None = None


class IncrementalAlterConfigsRequestAlterConfigsResource(WireStruct):
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[IncrementalAlterConfigsRequestAlterableConfig] = ()


class IncrementalAlterConfigsRequestData(WireStruct):
    resources: Sequence[IncrementalAlterConfigsRequestAlterConfigsResource] = ()
    validate_only: bool = False


class IncrementalAlterConfigsResponseAlterConfigsResourceResponse(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""


class IncrementalAlterConfigsResponseData(WireStruct):
    throttle_time: int = 0
    responses: Sequence[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = ()


class ListConfigResourcesRequestData(WireStruct):
    resource_types: Sequence[int] = ()


class ListConfigResourcesResponseConfigResource(WireStruct):
    resource_name: str = ""
    resource_type: int = 16


class ListConfigResourcesResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    config_resources: Sequence[ListConfigResourcesResponseConfigResource] = ()
