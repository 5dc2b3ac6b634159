"""The configs of the `balanced` placer, its only input beside the brokers (KIP-660, Proposed Changes)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeVar

from rackspan.errors import ReplicaPlacementException
from rackspan.model.ids import INT32_MAX
from rackspan.model.topic import parse_config_list
from rackspan.placement.rack_modes import RACK_AWARE_CONFIG, RackAwareMode

PREFIX: Final = "replica.placer.balanced."
LEADERS_CONFIG: Final = PREFIX + "leaders"
REPLICAS_CONFIG: Final = PREFIX + "replicas"
TOPIC_LEADERS_CONFIG: Final = PREFIX + "topic.leaders"
TOPIC_REPLICAS_CONFIG: Final = PREFIX + "topic.replicas"
WEIGHTS_CONFIG: Final = PREFIX + "weights"
DRAINING_CONFIG: Final = PREFIX + "draining"
NEAR_CAPACITY_CONFIG: Final = PREFIX + "near.capacity"
NEW_CONFIG: Final = PREFIX + "new"
NEW_PREFERENCE_CONFIG: Final = PREFIX + "new.preference"
SPREAD_FIRST_CONFIG: Final = PREFIX + "spread.before.liveness"
FIRST_GOAL_CONFIG: Final = PREFIX + "first.goal"
LEVEL_CONFIG: Final = PREFIX + "level"

CONFIGS: Final = (
    *(RACK_AWARE_CONFIG, LEADERS_CONFIG, REPLICAS_CONFIG, TOPIC_LEADERS_CONFIG, TOPIC_REPLICAS_CONFIG, WEIGHTS_CONFIG),
    *(DRAINING_CONFIG, NEAR_CAPACITY_CONFIG, NEW_CONFIG, NEW_PREFERENCE_CONFIG, SPREAD_FIRST_CONFIG),
    *(FIRST_GOAL_CONFIG, LEVEL_CONFIG),
)
"""Every config that the balanced placer reads."""

MIN_WEIGHT: Final = 0.01
MAX_WEIGHT: Final = 100.0
"""Brokers may differ ten-thousand-fold; a larger difference means draining, or wrong units."""

MAX_COUNT: Final = 10_000_000
"""Replicas on one broker: a thousand times what brokers can hold. Levels are exact in floating point up to here."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class BalancedSettings:
    """The settings of the placer. A broker that is named and not offered has no effect.

    `leaders`, `replicas`: what brokers hold already; 0 where absent. `topic_leaders`, `topic_replicas`: what of that
    belongs to the topic that gains partitions. `weights`: capacity shares; 1 where absent.
    `draining`: get nothing unless the spread over racks leaves no choice. `near_capacity`: get something only where all
    others are full. `spread_first`: use a fenced broker rather than give up the spread over racks. `leaders_first`: which
    goal has precedence where both cannot be met. `level_cluster`: level what brokers hold in all, rather than what they
    hold of the topic. Then `new`, `new_preference`: how much of their lag behind the mean new brokers make up: with 1
    they take everything until they are level, as any broker with less load does; with 0 only their share of what is being
    placed.
    """

    rack_aware: RackAwareMode = RackAwareMode.ENFORCED
    leaders: Mapping[int, int] = field(default_factory=dict)
    replicas: Mapping[int, int] = field(default_factory=dict)
    topic_leaders: Mapping[int, int] = field(default_factory=dict)
    topic_replicas: Mapping[int, int] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)
    draining: frozenset[int] = frozenset()
    near_capacity: frozenset[int] = frozenset()
    new: frozenset[int] = frozenset()
    new_preference: float = 1.0
    spread_first: bool = True
    leaders_first: bool = True
    level_cluster: bool = False


def balanced_settings(configs: Mapping[str, str]) -> BalancedSettings:
    """Read the placer's own keys from a broker's configs; an absent or empty one has its default.

    Errors: ReplicaPlacementException for an invalid value, and for an unknown key with our prefix.
    """
    _refuse_unknown(configs)

    def read(key: str, reader: Callable[[str, str], _Value], default: str) -> _Value:
        return reader(key, configs.get(key, "").strip() or default)

    new = read(NEW_CONFIG, _brokers, "")
    settings = BalancedSettings(
        rack_aware=RackAwareMode(read(RACK_AWARE_CONFIG, _one_of(*RackAwareMode), RackAwareMode.ENFORCED)),
        leaders=read(LEADERS_CONFIG, _counts, ""),
        replicas=read(REPLICAS_CONFIG, _counts, ""),
        topic_leaders=read(TOPIC_LEADERS_CONFIG, _counts, ""),
        topic_replicas=read(TOPIC_REPLICAS_CONFIG, _counts, ""),
        weights=read(WEIGHTS_CONFIG, _weights, ""),
        draining=read(DRAINING_CONFIG, _brokers, ""),
        near_capacity=read(NEAR_CAPACITY_CONFIG, _brokers, ""),
        new=new,
        new_preference=read(NEW_PREFERENCE_CONFIG, _share, "1"),
        spread_first=read(SPREAD_FIRST_CONFIG, _one_of("true", "false"), "true") == "true",
        leaders_first=read(FIRST_GOAL_CONFIG, _one_of("leaders", "replicas"), "leaders") == "leaders",
        # New brokers are named so that they get more than their share of a topic.
        level_cluster=read(LEVEL_CONFIG, _one_of("topic", "cluster"), "cluster" if new else "topic") == "cluster",
    )
    if new and not settings.replicas:
        _refuse(NEW_CONFIG, "set", f"without {REPLICAS_CONFIG} no broker is known to be behind")
    if new and not settings.level_cluster:
        _refuse(NEW_CONFIG, "set", f"{LEVEL_CONFIG}=topic gives every broker its share; use {LEVEL_CONFIG}=cluster")
    return settings


def _refuse_unknown(configs: Mapping[str, str]) -> None:
    known = {value for name, value in globals().items() if name.endswith("_CONFIG")}
    for key in sorted(configs):
        if key.startswith(PREFIX) and key not in known:
            raise ReplicaPlacementException(
                f"{key}: there is no such config; there are {', '.join(sorted(known))}; fix the config"
            )


def _one_of(*choices: str) -> Callable[[str, str], str]:
    def reader(key: str, text: str) -> str:
        if text not in choices:
            _refuse(key, repr(text), f"expected {', '.join(choices[:-1])} or {choices[-1]}")
        return text

    return reader


def _counts(key: str, text: str) -> Mapping[int, int]:
    return {broker: _whole(key, value, MAX_COUNT) for broker, value in _pairs(key, text).items()}


def _weights(key: str, text: str) -> Mapping[int, float]:
    weights = {broker: _number(key, value) for broker, value in _pairs(key, text).items()}
    for broker, weight in weights.items():
        if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
            _refuse(
                key,
                f"{weight:g} for broker {broker}",
                f"a weight is {MIN_WEIGHT:g} to {MAX_WEIGHT:g}; name a broker that shall get nothing in {DRAINING_CONFIG}",
            )
    return weights


def _brokers(key: str, text: str) -> frozenset[int]:
    return frozenset(_whole(key, item) for item in parse_config_list(text))


def _share(key: str, text: str) -> float:
    share = _number(key, text)
    if not 0 <= share <= 1:
        _refuse(key, repr(text), "expected a number between 0 and 1")
    return share


def _pairs(key: str, text: str) -> dict[int, str]:
    pairs: dict[int, str] = {}
    for item in parse_config_list(text):
        broker, colon, value = item.partition(":")
        if not colon:
            _refuse(key, repr(item), "expected a list of broker:value, such as 0:12,1:9")
        if _whole(key, broker) in pairs:
            _refuse(key, repr(text), f"it names broker {broker.strip()} twice")
        pairs[_whole(key, broker)] = value
    return pairs


def _whole(key: str, text: str, most: int = INT32_MAX) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or int(digits) > most:
        _refuse(key, repr(text), f"it names whole numbers of 0 to {most}")
    return int(digits)


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        _refuse(key, repr(text), "expected a number, such as 0.5")
    if not math.isfinite(number):
        _refuse(key, repr(text), "expected a finite number, such as 0.5")
    return number


def _refuse(key: str, found: str, why: str) -> NoReturn:
    because = why if why.startswith("expected ") else f"but {why}"
    raise ReplicaPlacementException(f"{key} is {found}, {because}; fix the config")
