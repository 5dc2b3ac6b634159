"""Configs of topics, brokers and groups: the keys, their valid values, and the value in effect.

Begin with definitions.py, then effective.py. Alterations are in controller/admin/alter_configs.py.
"""

from rackspan.cluster.core.configs.definitions import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    LATEST_PROTOCOL,
    PROTOCOL_VERSION,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigType,
)
from rackspan.cluster.core.configs.effective import (
    DEFAULT_BROKER,
    ConfigSource,
    ConfigValue,
    broker_resource,
    broker_value,
    broker_values,
    group_values,
    thresholds_of,
    topic_resource,
    topic_value,
    topic_values,
)

__all__ = [
    "BROKER_CONFIGS",
    "DEFAULT_BROKER",
    "GROUP_CONFIGS",
    "LATEST_PROTOCOL",
    "PROTOCOL_VERSION",
    "TOPIC_CONFIGS",
    "ConfigDefinition",
    "ConfigSource",
    "ConfigType",
    "ConfigValue",
    "broker_resource",
    "broker_value",
    "broker_values",
    "group_values",
    "thresholds_of",
    "topic_resource",
    "topic_value",
    "topic_values",
]
