"""The `config` of a problem document: short keys or Kafka's own keys; null stands for Kafka's default."""

from collections.abc import Mapping
from difflib import get_close_matches
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

_RACK_AWARE_KEYS: Final = tuple(
    key for key in (*KAFKA_KEYS, *KAFKA_KEYS.values()) if key.startswith(("rack.aware.", "rack_aware_"))
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
        _refuse_misspelt(key)
        short = KAFKA_KEYS.get(key, key)
        if short in given:
            refuse("config", f"{short} is given twice, also as {key}; leave one of them out")
        if value is not None:
            given[short] = value
    return given


def _refuse_misspelt(key: str) -> None:
    """Refuse an unknown rack.aware.* key: with a warning alone, rack awareness would be off or at other costs than meant.

    Other unknown keys are configs of Kafka Streams that do not count for an assignment, and are warned of.
    """
    if key.replace("_", ".").startswith("rack.aware") and key not in _RACK_AWARE_KEYS:
        [nearest] = get_close_matches(key, _RACK_AWARE_KEYS, n=1, cutoff=0)
        refuse("config", f"{key} is unknown; the nearest key is {nearest}")


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
