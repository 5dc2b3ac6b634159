"""DescribeConfigs (key 32), versions 1-4: every config of a topic or broker, its source and what it would be otherwise."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.configs import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigValue,
    broker_values,
    topic_values,
)
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.metadata import NO_LEADER

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8


def handle(call: Call) -> Body:
    return {"results": [_described(call, one) for one in call.body["resources"]]}


def _described(call: Call, resource: dict[str, Any]) -> dict[str, Any]:
    kind, name = resource["resource_type"], resource["resource_name"]
    said = {"resource_type": kind, "resource_name": name}
    found = _values(call, kind, name)
    if isinstance(found, KafkaError):
        return {**said, "error_code": found, "error_message": f"{name}: no such topic or broker here", "configs": []}
    wanted = resource["configuration_keys"]
    definitions = TOPIC_CONFIGS if kind == TOPIC else BROKER_CONFIGS
    return {
        **said,
        "error_code": KafkaError.NONE,
        "configs": [
            _config(call, one, definitions) for one in found if wanted is None or one.key in wanted
        ],
    }  # fmt: skip


def _values(call: Call, kind: int, name: str) -> Sequence[ConfigValue] | KafkaError:
    broker = call.broker
    if kind == TOPIC:
        if name not in broker.image.topics:
            return KafkaError.UNKNOWN_TOPIC_OR_PARTITION
        return topic_values(broker.image, broker.settings, name, broker.id)
    if kind == BROKER:
        # The empty name is the default of all brokers; others are asked of the broker itself.
        return _of_broker(call, name)
    return () if kind == BROKER_LOGGER else KafkaError.INVALID_REQUEST


def _of_broker(call: Call, name: str) -> Sequence[ConfigValue] | KafkaError:
    broker = call.broker
    if name == "":
        values = broker_values(broker.image, broker.settings, NO_LEADER)
        return [value for value in values if value.source == DEFAULT_BROKER_SOURCE]
    if name != str(broker.id):
        return KafkaError.INVALID_REQUEST
    return [broker.own_config(value) for value in broker_values(broker.image, broker.settings, broker.id)]


DEFAULT_BROKER_SOURCE: Final = 3


def _config(call: Call, value: ConfigValue, definitions: Mapping[str, ConfigDefinition]) -> dict[str, Any]:
    synonyms = value.synonyms if call.body["include_synonyms"] else ()
    definition = definitions[value.key]
    return {
        "name": value.key,
        "value": value.value,
        "read_only": definition.read_only,
        "config_source": value.source,
        "is_sensitive": False,
        "config_type": definition.type,
        "synonyms": [{"name": key, "value": text, "source": source} for key, text, source in synonyms],
        "documentation": None,
    }
