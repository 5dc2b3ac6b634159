"""The placement spec as a document: parsed JSON in, a checked `PlacementSpec` out.

This checks keys, types and ranges. Figures that no cluster can meet, such as more replicas than brokers, are refused by
the placers, in Kafka's words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NoReturn, TypeVar

from rackspan.errors import UsageError
from rackspan.json_text import shown
from rackspan.model.ids import INT32_MAX, INT64_MAX, UNNAMED_RACK, BrokerId, RackId
from rackspan.placement.rack_modes import RackAwareMode
from rackspan.placement.usable_brokers import UsableBroker

PARTITIONS_MAX: Final = 10_000_000
"""Ten times the largest clusters; with a larger figure, a typing mistake would fill the memory."""

DEFAULT_PLACER: Final = "balanced"

_BROKER_KEYS: Final = ("id", "rack", "fenced", "host", "port")
_REQUIRED: Final = ("brokers", "partitions", "replication_factor")
_KEYS: Final = (
    *_REQUIRED,
    *("placer", "start_index", "start_partition", "rack_aware", "seed", "rng", "configs"),
)

_Choice = TypeVar("_Choice", bound=StrEnum)


class Rng(StrEnum):
    """The random number generator that a seed is for."""

    JAVA = "java"
    """java.util.Random."""
    LCG64 = "lcg64"
    """The generator of Kafka's own placer tests."""


@dataclass(frozen=True, slots=True)
class PlacementSpec:
    """What to place, and with which placer.

    `start_index` fixes where rack-alternated begins (None: drawn); `rack_aware` None leaves partial racks to the placer;
    `seed` None leaves the rng to the caller. `configs` go to the placer as a broker's configs would.
    """

    brokers: tuple[UsableBroker, ...]
    partitions: int
    replication_factor: int
    placer: str = DEFAULT_PLACER
    start_index: int | None = None
    start_partition: int = 0
    rack_aware: RackAwareMode | None = None
    seed: int | None = None
    rng: Rng = Rng.JAVA
    configs: Mapping[str, str] = field(default_factory=dict)


def read(document: object) -> PlacementSpec:
    """Check a parsed spec. Null means an absent key, and so does -1 where Kafka treats it so. Errors: UsageError."""
    given = _object(document, "spec", _KEYS, _REQUIRED)
    partitions = _integer(given, "partitions", "spec", -INT32_MAX, PARTITIONS_MAX)
    start_index = _integer(given, "start_index", "spec", -1, INT32_MAX, absent=-1)
    start_partition = _integer(given, "start_partition", "spec", -1, INT32_MAX - PARTITIONS_MAX, absent=0)
    return PlacementSpec(
        brokers=_brokers(given["brokers"]),
        partitions=partitions,
        replication_factor=_integer(given, "replication_factor", "spec", -INT32_MAX, INT32_MAX),
        placer=_string(given, "placer", "spec") or DEFAULT_PLACER,
        start_index=start_index if start_index >= 0 else None,
        start_partition=max(0, start_partition),
        rack_aware=_choice(given, "rack_aware", RackAwareMode),
        seed=None if given.get("seed") is None else _integer(given, "seed", "spec", -INT64_MAX - 1, INT64_MAX),
        rng=_choice(given, "rng", Rng) or Rng.JAVA,
        configs=_configs(given.get("configs")),
    )


def _brokers(value: object) -> tuple[UsableBroker, ...]:
    if not isinstance(value, list):
        _refuse("brokers", f"is {shown(value)}, not a list; fix it in the file")
    if not value:
        _refuse("brokers", "is empty; list at least one")
    brokers = tuple(_broker(item, f"brokers[{index}]") for index, item in enumerate(value))
    listed: set[BrokerId] = set()
    for broker in brokers:
        if broker.id in listed:
            _refuse(f"broker {broker.id}", "listed twice; leave one of them out")
        listed.add(broker.id)
    return brokers


def _broker(value: object, place: str) -> UsableBroker:
    given = _object(value, place, _BROKER_KEYS, ("id",))
    fenced = given.get("fenced", False)
    if not isinstance(fenced, bool):
        _refuse(place, f"fenced is {shown(fenced)}, not true or false; fix it in the file")
    rack = _string(given, "rack", place)
    return UsableBroker(
        id=BrokerId(_integer(given, "id", place, 0, INT32_MAX)),
        rack=None if rack in (None, UNNAMED_RACK) else RackId(rack),
        fenced=fenced,
    )


def _object(value: object, place: str, known: tuple[str, ...], required: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _refuse(place, f"is {shown(value)}, not an object; fix it in the file")
    for key in required:
        if key not in value:
            _refuse(place, f"{key} is missing; add it and run again")
    for key in value:
        if key not in known:
            _refuse(place, f"there is no key {shown(key)}; there are {', '.join(known)}")
    return value


def _integer(given: Mapping[str, Any], key: str, place: str, least: int, most: int, absent: int | None = None) -> int:
    value = given.get(key)
    if value is None and absent is not None:
        return absent
    # type(), not isinstance: JSON's true is no number, though Python's True is an int.
    if type(value) is not int:
        _refuse(place, f"{key} is {shown(value)}, not a whole number; fix it in the file")
    if not least <= value <= most:
        _refuse(place, f"{key} is {shown(value)}, outside {least} to {most}; fix it in the file")
    return value


def _string(given: Mapping[str, Any], key: str, place: str) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        _refuse(place, f"{key} is {shown(value)}, not a string; fix it in the file")
    return value


def _choice(given: Mapping[str, Any], key: str, kind: type[_Choice]) -> _Choice | None:
    value = given.get(key)
    if value is None:
        return None
    if value not in list(kind):
        _refuse("spec", f"{key} is {shown(value)}, expected {' or '.join(kind)}; fix it in the file")
    return kind(value)


def _configs(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        _refuse("spec", f"configs is {shown(value)}, but keys and values are strings; fix it in the file")
    return value


def _refuse(place: str, why: str) -> NoReturn:
    raise UsageError(f"{place}: {why}")
