"""The `config` of a problem document: short keys or Kafka's own keys; null stands for Kafka's default."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, structs

from rackspan.model.config_list import parse_config_list
from rackspan.streams.formats.documents import convert, refuse
from rackspan.streams.problem import AssignmentConfigs, strategy_named


class ConfigsDocument(Struct):
    """The configs by short key. Ranges are those of `AssignmentConfigs`."""

    strategy: str | None = None
    enabled: bool | None = None
    traffic_cost: int | None = None
    non_overlap_cost: int | None = None
    num_standbys: int | None = None
    max_warmup_replicas: int | None = None
    acceptable_recovery_lag: int | None = None
    probing_rebalance_interval_ms: int | None = None
    rack_aware_assignment_tags: tuple[str, ...] | str | None = None
    """A string is a list as Kafka's properties have it: separated by commas."""


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


def read_configs(document: Mapping[str, object]) -> tuple[AssignmentConfigs, list[str]]:
    """Configs and warnings. Errors: InvalidProblem for a wrong type, UsageError for a value out of range."""
    given = _by_short_key(document)
    read = structs.asdict(convert(given, ConfigsDocument, "config"))
    configs: dict[str, Any] = {key: value for key, value in read.items() if value is not None}
    if "strategy" in configs:
        configs["strategy"] = strategy_named(configs["strategy"])
    tags = configs.get("rack_aware_assignment_tags")
    if isinstance(tags, str):
        configs["rack_aware_assignment_tags"] = parse_config_list(tags)
    unknown = [f"config: unknown key {key!r} ignored" for key in sorted(given.keys() - read)]
    return AssignmentConfigs(**configs), unknown


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
