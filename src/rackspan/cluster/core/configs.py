"""Configs of topics, brokers and groups: the keys, their valid values, and the value in effect: topic over broker over
cluster-wide over static over default.

Keys that only steer files on a disk, logins or throttles are kept and shown, and change nothing here: tools expect them. So
are those of groups, which Kafka applies to the group protocol of KIP-848, to share and to streams groups. Source: Kafka's
LogConfig, ServerLogConfigs, DynamicBrokerConfig and GroupConfig; min.insync.racks is the proposal's. Alterations are in
controller/admin/alter_configs.py.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rackspan.acks import Thresholds
from rackspan.cluster.core.metadata import ConfigResource, MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.model import INT32_MAX, INT64_MAX, MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, REPLICA_SELECTOR, BrokerId
from rackspan.model.topic import parse_config_list


class ConfigType(IntEnum):
    """The types of config values, by Kafka's numbers (DescribeConfigs)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


_RANGES: Final[Mapping[ConfigType, tuple[float, float]]] = {
    ConfigType.INT: (-(2**31), INT32_MAX),
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.LONG: (-(2**63), INT64_MAX),
    ConfigType.DOUBLE: (0, 1),
}


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """One key. `default` None means unset. `choices`, if given, are all valid values, or items of a list.

    A value that matches `pattern` is valid beside them. A `per_broker` config has no default for the whole cluster.
    """

    key: str
    type: ConfigType
    default: str | None
    broker_key: str | None = None
    least: int | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = False
    most: int | None = None
    pattern: str | None = None
    per_broker: bool = False

    def complaint(self, text: str) -> str | None:
        """Why `text` is no valid value of this key, in Kafka's words; None if it is."""
        check = _CHECKS[self.type]
        trouble = check(self, text.strip())
        return f"Invalid value {text} for configuration {self.key}: {trouble}" if trouble else None


def _boolean(_definition: ConfigDefinition, text: str) -> str | None:
    return None if text.lower() in ("true", "false") else "Expected value to be either true or false"


def _number(definition: ConfigDefinition, text: str) -> str | None:
    kind = float if definition.type is ConfigType.DOUBLE else int
    try:
        value = kind(text)
    except ValueError:
        return f"Not a number of type {definition.type.name}"
    low, high = _RANGES[definition.type]
    least = low if definition.least is None else definition.least
    if value < least:
        return f"Value must be at least {least}"
    most = high if definition.most is None else definition.most
    return None if value <= most else f"Value must be no more than {most}"


def _string(definition: ConfigDefinition, text: str) -> str | None:
    if definition.pattern and re.fullmatch(definition.pattern, text):
        return None
    if definition.choices and text not in definition.choices:
        return f"String must be one of: {', '.join(definition.choices)}"
    return None


def _list(definition: ConfigDefinition, text: str) -> str | None:
    troubles = (_string(definition, item) for item in parse_config_list(text))
    return next((trouble for trouble in troubles if trouble), None)


_CHECKS: Final = {
    ConfigType.BOOLEAN: _boolean,
    ConfigType.STRING: _string,
    ConfigType.INT: _number,
    ConfigType.SHORT: _number,
    ConfigType.LONG: _number,
    ConfigType.DOUBLE: _number,
    ConfigType.LIST: _list,
}

PROTOCOL_VERSION: Final = "inter.broker.protocol.version"
LATEST_PROTOCOL: Final = "4.1"

_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIMES = ("CreateTime", "LogAppendTime")
_WEEK_MS = str(7 * 24 * 3_600_000)
_DAY_MS = str(24 * 3_600_000)
_FOREVER = str(INT64_MAX)
_COORDINATED = "10"
"""Partitions of the coordinators' topics: Kafka's default is 50; ten are created quickly and suffice for tests."""


def _table(*definitions: ConfigDefinition) -> Mapping[str, ConfigDefinition]:
    return {definition.key: definition for definition in definitions}


_D, _T = ConfigDefinition, ConfigType

TOPIC_CONFIGS: Final = _table(
    _D("cleanup.policy", _T.LIST, "delete", "log.cleanup.policy", choices=("compact", "delete")),
    _D("compression.type", _T.STRING, "producer", "compression.type", choices=_COMPRESSIONS),
    _D("delete.retention.ms", _T.LONG, _DAY_MS, "log.cleaner.delete.retention.ms", 0),
    _D("file.delete.delay.ms", _T.LONG, "60000", "log.segment.delete.delay.ms", 0),
    _D("flush.messages", _T.LONG, _FOREVER, "log.flush.interval.messages", 1),
    _D("flush.ms", _T.LONG, _FOREVER, "log.flush.interval.ms", 0),
    _D("follower.replication.throttled.replicas", _T.LIST, ""),
    _D("index.interval.bytes", _T.INT, "4096", "log.index.interval.bytes", 0),
    _D("leader.replication.throttled.replicas", _T.LIST, ""),
    _D("local.retention.bytes", _T.LONG, "-2", "log.local.retention.bytes", -2),
    _D("local.retention.ms", _T.LONG, "-2", "log.local.retention.ms", -2),
    _D("max.compaction.lag.ms", _T.LONG, _FOREVER, "log.cleaner.max.compaction.lag.ms", 1),
    _D("max.message.bytes", _T.INT, "1048588", "message.max.bytes", 0),
    _D("message.timestamp.after.max.ms", _T.LONG, "3600000", "log.message.timestamp.after.max.ms", 0),
    _D("message.timestamp.before.max.ms", _T.LONG, _FOREVER, "log.message.timestamp.before.max.ms", 0),
    _D("message.timestamp.type", _T.STRING, "CreateTime", "log.message.timestamp.type", choices=_TIMES),
    _D("min.cleanable.dirty.ratio", _T.DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", 0),
    _D("min.compaction.lag.ms", _T.LONG, "0", "log.cleaner.min.compaction.lag.ms", 0),
    _D(MIN_INSYNC_RACKS, _T.INT, "1", MIN_INSYNC_RACKS, 1),
    _D(MIN_INSYNC_REPLICAS, _T.INT, "1", MIN_INSYNC_REPLICAS, 1),
    _D("preallocate", _T.BOOLEAN, "false", "log.preallocate"),
    _D("remote.storage.enable", _T.BOOLEAN, "false"),
    _D("retention.bytes", _T.LONG, "-1", "log.retention.bytes"),
    _D("retention.ms", _T.LONG, _WEEK_MS, "log.retention.ms", -1),
    _D("segment.bytes", _T.INT, str(2**30), "log.segment.bytes", 2**20),
    _D("segment.index.bytes", _T.INT, str(10 * 2**20), "log.index.size.max.bytes", 4),
    _D("segment.jitter.ms", _T.LONG, "0", "log.roll.jitter.ms", 0),
    _D("segment.ms", _T.LONG, _WEEK_MS, "log.roll.ms", 1),
    _D("unclean.leader.election.enable", _T.BOOLEAN, "false", "unclean.leader.election.enable"),
)

_OF_TOPICS = {
    definition.broker_key: _D(
        definition.broker_key, definition.type, definition.default, None, definition.least, definition.choices
    )
    for definition in TOPIC_CONFIGS.values()
    if definition.broker_key is not None
}

_KERBEROS_CONFIGS = (
    _D("sasl.kerberos.kinit.cmd", _T.STRING, "/usr/bin/kinit", per_broker=True),
    _D("sasl.kerberos.min.time.before.relogin", _T.LONG, "60000", per_broker=True),
    _D("sasl.kerberos.principal.to.local.rules", _T.LIST, "DEFAULT", per_broker=True),
    _D("sasl.kerberos.service.name", _T.STRING, None, per_broker=True),
    _D("sasl.kerberos.ticket.renew.jitter", _T.DOUBLE, "0.05", per_broker=True),
    _D("sasl.kerberos.ticket.renew.window.factor", _T.DOUBLE, "0.8", per_broker=True),
)

_DURATION = r"by_duration:P(?=[\dT])(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
"""PnDTnHnMn.nS, as of java.time.Duration."""

_GROUP_KINDS = ("consumer", "share", "streams")
"""Kinds of groups whose members the brokers assign (KIP-848, KIP-932, KIP-1071)."""

GROUP_CONFIGS: Final = _table(
    *(_D(f"{kind}.assignment.interval.ms", _T.INT, "1000", least=0, most=15_000) for kind in _GROUP_KINDS),
    *(_D(f"{kind}.assignor.offload.enable", _T.BOOLEAN, "true") for kind in _GROUP_KINDS),
    _D("consumer.heartbeat.interval.ms", _T.INT, "5000", least=5_000, most=15_000),
    _D("consumer.session.timeout.ms", _T.INT, "45000", least=45_000, most=60_000),
    _D("share.auto.offset.reset", _T.STRING, "latest", choices=("earliest", "latest"), pattern=_DURATION),
    _D("share.heartbeat.interval.ms", _T.INT, "5000", least=5_000, most=15_000),
    _D(
        "share.isolation.level",
        _T.STRING,
        "read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
    ),
    _D("share.record.lock.duration.ms", _T.INT, "30000", least=15_000, most=60_000),
    _D("share.session.timeout.ms", _T.INT, "45000", least=45_000, most=60_000),
    _D("streams.heartbeat.interval.ms", _T.INT, "5000", least=5_000, most=15_000),
    _D("streams.num.standby.replicas", _T.INT, "0", least=0, most=2),
    _D("streams.session.timeout.ms", _T.INT, "45000", least=45_000, most=60_000),
)
"""The limits are Kafka's defaults of group.consumer.min.session.timeout.ms and the like."""

BROKER_CONFIGS: Final[Mapping[str, ConfigDefinition]] = {
    **_OF_TOPICS,
    **_table(
        _D("advertised.listeners", _T.LIST, None, read_only=True),
        _D("auto.create.topics.enable", _T.BOOLEAN, "true", read_only=True),
        _D("auto.leader.rebalance.enable", _T.BOOLEAN, "false", read_only=True),
        _D("broker.id", _T.INT, None, read_only=True),
        _D("broker.rack", _T.STRING, None, read_only=True),
        _D("broker.heartbeat.interval.ms", _T.INT, "2000", read_only=True),
        _D("broker.session.timeout.ms", _T.INT, "9000", read_only=True),
        _D("default.replication.factor", _T.INT, "3", least=1, read_only=True),
        _D("extended.error.codes", _T.BOOLEAN, "false"),
        _D("follower.replication.throttled.rate", _T.LONG, _FOREVER, least=0),
        *(_D(f"group.{kind}.assignment.interval.ms", _T.INT, "1000", least=0) for kind in _GROUP_KINDS),
        *(_D(f"group.{kind}.assignor.offload.enable", _T.BOOLEAN, "true") for kind in _GROUP_KINDS),
        _D("group.initial.rebalance.delay.ms", _T.INT, "0", least=0, read_only=True),
        _D("group.max.session.timeout.ms", _T.INT, "1800000", read_only=True),
        _D("group.max.size", _T.INT, str(INT32_MAX), least=1, read_only=True),
        _D("group.min.session.timeout.ms", _T.INT, "6000", read_only=True),
        _D(PROTOCOL_VERSION, _T.STRING, LATEST_PROTOCOL, read_only=True),
        _D("leader.imbalance.check.interval.seconds", _T.LONG, "300", least=1, read_only=True),
        _D("leader.replication.throttled.rate", _T.LONG, _FOREVER, least=0),
        _D("log.dirs", _T.LIST, None, read_only=True),
        _D("log.cleaner.backoff.ms", _T.LONG, "15000", least=0),
        _D("log.retention.check.interval.ms", _T.LONG, "300000", least=1, read_only=True),
        _D("node.id", _T.INT, None, read_only=True),
        _D("num.partitions", _T.INT, "1", least=1, read_only=True),
        _D("offset.metadata.max.bytes", _T.INT, "4096", read_only=True),
        _D("offsets.topic.num.partitions", _T.INT, _COORDINATED, least=1, read_only=True),
        _D("offsets.topic.replication.factor", _T.SHORT, "3", least=1, read_only=True),
        _D("rack.locator.class", _T.STRING, None, read_only=True),
        _D("rack.locator.properties", _T.STRING, None, read_only=True),
        _D("replica.alter.log.dirs.io.max.bytes.per.second", _T.LONG, _FOREVER, least=0),
        _D("replica.fetch.backoff.ms", _T.INT, "1000", least=0, read_only=True),
        _D("replica.fetch.max.bytes", _T.INT, str(2**20), least=0, read_only=True),
        _D("replica.fetch.response.max.bytes", _T.INT, str(10 * 2**20), least=0, read_only=True),
        _D("replica.fetch.wait.max.ms", _T.INT, "500", read_only=True),
        _D("replica.lag.time.max.ms", _T.LONG, "30000", least=1, read_only=True),
        _D("replica.placer.class.name", _T.STRING, "striped", read_only=True),
        _D(REPLICA_SELECTOR, _T.STRING, None, read_only=True),
        *_KERBEROS_CONFIGS,
        _D("transaction.max.timeout.ms", _T.INT, "900000", least=1, read_only=True),
        _D("transaction.state.log.num.partitions", _T.INT, _COORDINATED, least=1, read_only=True),
        _D("transaction.state.log.replication.factor", _T.SHORT, "3", least=1, read_only=True),
    ),
}


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
        REPLICA_SELECTOR: settings.replica_selector_class,
    }
    static = {key: value for key, value in chosen.items() if value is not None and value != BROKER_CONFIGS[key].default}
    return {**static, **settings.extra_configs}


def _value(key: str, values: list[tuple[str, str, ConfigSource]], default: str | None) -> ConfigValue:
    synonyms = (*values, (key, default, ConfigSource.DEFAULT))
    _, value, source = synonyms[0]
    return ConfigValue(key, value, source, synonyms)
