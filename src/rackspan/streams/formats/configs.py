"""The `config` of a problem document: short keys or Kafka's own keys; null stands for Kafka's default."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from rackspan.streams.formats.json_values import a_boolean, a_number, a_string, an_object, refuse, strings, unknown_keys
from rackspan.streams.problem import AssignmentConfigs, strategy_named

_NUMBERS: Final = (
    "traffic_cost",
    "non_overlap_cost",
    "num_standbys",
    "max_warmup_replicas",
    "acceptable_recovery_lag",
    "probing_rebalance_interval_ms",
)

KAFKA_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rack.aware.assignment.strategy": "strategy",
        "rack.aware.assignment.enabled": "enabled",
        "rack.aware.assignment.traffic_cost": "traffic_cost",
        "rack.aware.assignment.non_overlap_cost": "non_overlap_cost",
        "rack.aware.assignment.tags": "rack_aware_assignment_tags",
        "num.standby.replicas": "num_standbys",
        "max.warmup.replicas": "max_warmup_replicas",
        "acceptable.recovery.lag": "acceptable_recovery_lag",
        "probing.rebalance.interval.ms": "probing_rebalance_interval_ms",
    }
)


def read_configs(value: object) -> tuple[AssignmentConfigs, list[str]]:
    """Configs and warnings. Errors: InvalidProblem for a wrong type, UsageError for a value out of range."""
    document = an_object({} if value is None else value, "config")
    given = _by_short_key(document)
    numbers: dict[str, Any] = {key: a_number(given[key], f"config: {key}") for key in _NUMBERS if key in given}
    configs = AssignmentConfigs(**numbers, **_strategy(given), **_tags(given))
    return configs, unknown_keys(given, frozenset(KAFKA_KEYS.values()), "config")


def _by_short_key(document: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for key, value in document.items():
        short = KAFKA_KEYS.get(key, key)
        if short in given:
            refuse("config", f"{short} is given twice, also as {key}; leave one of them out")
        if value is not None:
            given[short] = value
    return given


def _strategy(given: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    if "strategy" in given:
        read["strategy"] = strategy_named(a_string(given["strategy"], "config: strategy"))
    if "enabled" in given:
        read["enabled"] = a_boolean(given["enabled"], "config: enabled")
    return read


def _tags(given: Mapping[str, Any]) -> dict[str, Any]:
    key = "rack_aware_assignment_tags"
    return {key: tuple(strings(given[key], f"config: {key}"))} if key in given else {}
