"""Replication throttles, as kafka-reassign-partitions sets them, beside those that a user has set.

Two pairs of configs work together: the topic's lists say which replicas are held back, the broker's rates to how much.
Source: ReassignPartitionsCommand of Apache Kafka 4, calculateLeaderThrottles, calculateFollowerThrottles and
calculateReassigningBrokers; KIP-73.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from rackspan.model.topic import FOLLOWER_REPLICAS, LEADER_REPLICAS, parse_config_list
from rackspan.reassign import Direction, PartitionReassignment, Step

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
"""Bytes a second, for all throttled replicas of a broker together."""

EVERY_REPLICA: Final = "*"
"""In a list: all replicas of the topic."""


class Holder(StrEnum):
    """The kind of resource that has a config."""

    BROKER = "broker"
    TOPIC = "topic"


class ConfigKey(NamedTuple):
    """One config of one topic, or of one broker by its id."""

    holder: Holder
    name: str
    key: str


def throttle(step: Step, direction: Direction, bytes_per_second: int) -> dict[ConfigKey, str]:
    """What Kafka's tool sets before it starts the step. Lists are sorted as strings, as the tool does it."""
    lists: dict[ConfigKey, list[str]] = {}
    for partition in step.partitions:
        for key, brokers in _throttled_lists(partition, direction):
            config = ConfigKey(Holder.TOPIC, partition.topic, key)
            lists.setdefault(config, []).extend(f"{partition.partition}:{broker}" for broker in brokers)
    return {config: ",".join(sorted(replicas)) for config, replicas in lists.items() if replicas} | {
        ConfigKey(Holder.BROKER, str(broker), key): str(bytes_per_second)
        for broker in throttled_brokers(step.partitions)
        for key in (LEADER_RATE, FOLLOWER_RATE)
    }


def throttled_brokers(partitions: Iterable[PartitionReassignment]) -> list[int]:
    """Brokers that send or receive a copy."""
    return sorted({broker for partition in partitions for broker in (*partition.undo, *partition.replicas)})


def merged_list(own: str | None, throttled: str) -> str:
    """The throttled replicas together with those that the user throttles already, which stay throttled."""
    if own is None or not own.strip():
        return throttled
    if own.strip() == EVERY_REPLICA:
        return EVERY_REPLICA
    theirs = parse_config_list(own)
    return ",".join(sorted({*theirs, *parse_config_list(throttled)}))


def with_user_values(throttles: Mapping[ConfigKey, str], own: Mapping[ConfigKey, str | None]) -> dict[ConfigKey, str]:
    """What to set where the user has set `own`: rates replace theirs, lists join theirs."""
    return {
        config: merged_list(own.get(config), value) if config.holder is Holder.TOPIC else value
        for config, value in throttles.items()
    }


def _throttled_lists(one: PartitionReassignment, direction: Direction) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return (LEADER_REPLICAS, one.start(direction)), (FOLLOWER_REPLICAS, one.additions(direction))
