"""The value of a config in effect, and its source: topic over broker over cluster-wide over static over default."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rackspan.acks import Thresholds
from rackspan.cluster.core.configs.definitions import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS
from rackspan.cluster.core.metadata import ConfigResource, MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, BrokerId

DEFAULT_BROKER: Final = ConfigResource(ConfigResourceType.BROKER, "")
"""The configs of every broker that has no value of its own."""


class ConfigSource(IntEnum):
    """Where a value comes from, by Kafka's numbers (DescribeConfigs)."""

    TOPIC = 1
    BROKER = 2
    DEFAULT_BROKER = 3
    STATIC = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A config's value and source. `synonyms` are all its values, the most specific first (DescribeConfigs)."""

    key: str
    value: str | None
    source: ConfigSource
    synonyms: tuple[tuple[str, str | None, ConfigSource], ...]


def topic_resource(topic: str) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, topic)


def broker_resource(broker: BrokerId) -> ConfigResource:
    return ConfigResource(ConfigResourceType.BROKER, str(broker))


def topic_values(
    image: MetadataImage, settings: ClusterSettings, topic: str, broker: BrokerId | None
) -> tuple[ConfigValue, ...]:
    """Every config of a topic, in effect on `broker`."""
    return tuple(topic_value(image, settings, topic, key, broker) for key in TOPIC_CONFIGS)


def topic_value(
    image: MetadataImage, settings: ClusterSettings, topic: str, key: str, broker: BrokerId | None
) -> ConfigValue:
    """One config of a topic. Without a broker, as for the controller: without any broker's own values."""
    definition = TOPIC_CONFIGS[key]
    own = image.config_of(topic_resource(topic)).get(key)
    values = [] if own is None else [(key, own, ConfigSource.TOPIC)]
    if definition.broker_key is not None:
        values.extend(_of_broker(image, settings, definition.broker_key, broker))
    return _value(key, values, definition.default)


def broker_values(image: MetadataImage, settings: ClusterSettings, broker: BrokerId) -> tuple[ConfigValue, ...]:
    """Every config of a broker."""
    return tuple(broker_value(image, settings, key, broker) for key in BROKER_CONFIGS)


def broker_value(image: MetadataImage, settings: ClusterSettings, key: str, broker: BrokerId) -> ConfigValue:
    """One config of a broker, registered or not."""
    return _value(key, list(_of_broker(image, settings, key, broker)), BROKER_CONFIGS[key].default)


def group_values(image: MetadataImage, group: str) -> tuple[ConfigValue, ...]:
    """Every config of a consumer group, which need not exist."""
    own = image.config_of(ConfigResource(ConfigResourceType.GROUP, group))
    return tuple(
        _value(key, [(key, own[key], ConfigSource.GROUP)] if key in own else [], definition.default)
        for key, definition in GROUP_CONFIGS.items()
    )


def thresholds_of(image: MetadataImage, settings: ClusterSettings, topic: str, broker: BrokerId | None) -> Thresholds:
    """The thresholds of acks=all for the topic's partitions on `broker`."""

    def number(key: str) -> int:
        return int(topic_value(image, settings, topic, key, broker).value or 1)

    return Thresholds(number(MIN_INSYNC_REPLICAS), number(MIN_INSYNC_RACKS))


def _of_broker(
    image: MetadataImage, settings: ClusterSettings, key: str, broker: BrokerId | None
) -> Iterator[tuple[str, str, ConfigSource]]:
    own = image.config_of(broker_resource(broker)).get(key) if broker is not None else None
    everyones = image.config_of(DEFAULT_BROKER).get(key)
    static = _registered(image, broker).get(key) or static_configs(settings).get(key)
    for value, source in (
        (own, ConfigSource.BROKER),
        (everyones, ConfigSource.DEFAULT_BROKER),
        (static, ConfigSource.STATIC),
    ):
        if value is not None:
            yield key, value, source


def _registered(image: MetadataImage, broker: BrokerId | None) -> Mapping[str, str]:
    """The static configs that a broker registered with."""
    registered = image.brokers.get(broker) if broker is not None else None
    if registered is None:
        return {}
    rack = {} if registered.rack is None else {"broker.rack": str(registered.rack)}
    return {"broker.id": str(registered.id), "node.id": str(registered.id), **rack}


def static_configs(settings: ClusterSettings) -> Mapping[str, str]:
    """The settings by their names in Kafka's server.properties, where they differ from Kafka's defaults."""
    chosen = {
        MIN_INSYNC_REPLICAS: str(settings.min_insync_replicas),
        MIN_INSYNC_RACKS: str(settings.min_insync_racks),
        "unclean.leader.election.enable": str(settings.unclean_leader_election).lower(),
        "auto.create.topics.enable": str(settings.auto_create_topics).lower(),
        "auto.leader.rebalance.enable": str(settings.auto_leader_rebalance).lower(),
        "default.replication.factor": str(settings.default_replication_factor),
        "num.partitions": str(settings.num_partitions),
        "replica.lag.time.max.ms": str(settings.replica_lag_time_max_ms),
        "broker.heartbeat.interval.ms": str(settings.heartbeat_interval_ms),
        "broker.session.timeout.ms": str(settings.session_timeout_ms),
        "leader.imbalance.check.interval.seconds": str(settings.leader_imbalance_check_interval_ms // 1000),
        "replica.fetch.backoff.ms": str(settings.fetch_backoff_ms),
        "replica.fetch.max.bytes": str(settings.fetch_max_partition_bytes),
        "replica.fetch.response.max.bytes": str(settings.fetch_max_bytes),
        "replica.fetch.wait.max.ms": str(settings.fetch_max_wait_ms),
        "log.cleaner.backoff.ms": str(settings.cleaner_backoff_ms),
        "log.retention.check.interval.ms": str(settings.retention_check_interval_ms),
        "message.max.bytes": str(settings.message_max_bytes),
        "extended.error.codes": str(settings.extended_error_codes).lower(),
        # Not a choice: leaders here always name the replica in the reader's rack.
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }
    static = {key: value for key, value in chosen.items() if value != BROKER_CONFIGS[key].default}
    return {**static, **settings.extra_configs}


def _value(key: str, values: list[tuple[str, str, ConfigSource]], default: str | None) -> ConfigValue:
    synonyms = (*values, (key, default, ConfigSource.DEFAULT))
    _, value, source = synonyms[0]
    return ConfigValue(key, value, source, synonyms)
