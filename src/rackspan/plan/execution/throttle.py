"""Replication throttles, as kafka-reassign-partitions sets them, and what they leave of a user's own.

Two pairs of configs work together: the topic's lists say which replicas are held back, the broker's rates to how much.
Source: ReassignPartitionsCommand of Apache Kafka 4, calculateLeaderThrottles, calculateFollowerThrottles and
calculateReassigningBrokers; KIP-73.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from rackspan.model.config_list import parse_config_list
from rackspan.plan.written import PartitionMove, Toward, WrittenStep

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
"""Bytes a second, for all throttled replicas of a broker together."""

EVERY_REPLICA: Final = "*"
"""A list's word for all replicas of the topic."""


class Holder(StrEnum):
    """Whose config it is."""

    BROKER = "broker"
    TOPIC = "topic"


class ConfigKey(NamedTuple):
    """One config of one topic, or of one broker by its id."""

    holder: Holder
    name: str
    key: str


def throttle(step: WrittenStep, toward: Toward, bytes_per_second: int) -> dict[ConfigKey, str]:
    """What Kafka's tool sets before it starts the step. Lists are sorted as strings, as the tool does it."""
    lists: dict[ConfigKey, list[str]] = {}
    for move in step.moves:
        for key, brokers in _throttled(move, toward):
            config = ConfigKey(Holder.TOPIC, move.topic, key)
            lists.setdefault(config, []).extend(f"{move.partition}:{broker}" for broker in brokers)
    return {config: ",".join(sorted(replicas)) for config, replicas in lists.items() if replicas} | {
        ConfigKey(Holder.BROKER, str(broker), key): str(bytes_per_second)
        for broker in throttled_brokers(step.moves)
        for key in (LEADER_RATE, FOLLOWER_RATE)
    }


def throttled_brokers(moves: Iterable[PartitionMove]) -> list[int]:
    """Whoever sends or receives."""
    return sorted({broker for move in moves for broker in (*move.undo, *move.replicas)})


def beside(own: str | None, throttled: str) -> str:
    """A list of replicas that also holds what the user throttles already, so that nothing of theirs is let loose."""
    if own is None or not own.strip():
        return throttled
    if own.strip() == EVERY_REPLICA:
        return EVERY_REPLICA
    theirs = parse_config_list(own)
    return ",".join(sorted({*theirs, *parse_config_list(throttled)}))


def with_own(wanted: Mapping[ConfigKey, str], own: Mapping[ConfigKey, str | None]) -> dict[ConfigKey, str]:
    """What to set where the user has set `own`: rates replace theirs, lists join theirs."""
    return {
        config: beside(own.get(config), value) if config.holder is Holder.TOPIC else value
        for config, value in wanted.items()
    }


def _throttled(move: PartitionMove, toward: Toward) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return (LEADER_REPLICAS, move.start(toward)), (FOLLOWER_REPLICAS, move.arrivals(toward))
