"""DescribeConfigs (key 32), versions 1-4: every config of a topic, broker or group, its source, and its values of lower precedence."""

from collections.abc import Mapping, Sequence
from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.configs import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigSource,
    ConfigValue,
    broker_values,
    group_values,
    topic_values,
)
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.configs import (
    DescribeConfigsRequestData,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_DEFINITIONS: Final[Mapping[int, Mapping[str, ConfigDefinition]]] = {
    ConfigResourceType.TOPIC: TOPIC_CONFIGS,
    ConfigResourceType.GROUP: GROUP_CONFIGS,
}


def handle(call: Call[DescribeConfigsRequestData]) -> DescribeConfigsResponseData:
    return DescribeConfigsResponseData(results=[_describe(call, resource) for resource in call.request.resources])


def _describe(call: Call[DescribeConfigsRequestData], resource: DescribeConfigsResource) -> DescribeConfigsResult:
    described = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    values = _values(call, resource.resource_type, resource.resource_name)
    if isinstance(values, ErrorCode):
        described.error_code = values
        described.error_message = f"{resource.resource_name!r}: no such topic or broker here, or no name of a group"
        return described
    keys = resource.configuration_keys
    definitions = _DEFINITIONS.get(resource.resource_type, BROKER_CONFIGS)
    # As in Kafka no keys are all keys.
    described.configs = [_config(call, value, definitions) for value in values if not keys or value.key in keys]
    return described


def _values(call: Call[object], resource_type: int, name: str) -> Sequence[ConfigValue] | ErrorCode:
    broker = call.broker
    match resource_type:
        case ConfigResourceType.TOPIC if name in broker.image.topics:
            return topic_values(broker.image, broker.settings, name, broker.id)
        case ConfigResourceType.TOPIC:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        case ConfigResourceType.BROKER:
            return _broker_values(call, name)
        case ConfigResourceType.BROKER_LOGGER:
            return ()
        case ConfigResourceType.GROUP if name:
            return group_values(broker.image, name)
        case _:
            return ErrorCode.INVALID_REQUEST


def _broker_values(call: Call[object], name: str) -> Sequence[ConfigValue] | ErrorCode:
    """The configs of this broker or, for the empty name, the default of all brokers."""
    broker = call.broker
    if name == "":
        values = broker_values(broker.image, broker.settings, NO_LEADER)
        return [value for value in values if value.source == ConfigSource.DEFAULT_BROKER]
    if name != str(broker.id):
        return ErrorCode.INVALID_REQUEST
    return [broker.own_config(value) for value in broker_values(broker.image, broker.settings, broker.id)]


def _config(
    call: Call[DescribeConfigsRequestData], value: ConfigValue, definitions: Mapping[str, ConfigDefinition]
) -> DescribeConfigsResourceResult:
    synonyms = value.synonyms if call.request.include_synonyms else ()
    definition = definitions[value.key]
    return DescribeConfigsResourceResult(
        name=value.key,
        value=value.value,
        read_only=definition.read_only,
        config_source=value.source,
        is_sensitive=False,
        config_type=definition.type,
        synonyms=[DescribeConfigsSynonym(name=key, value=text, source=source) for key, text, source in synonyms],
    )
