"""The `config` argument of EmbeddedCluster: broker configs by Kafka's names, validated and merged into ClusterSettings."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from rackspan.acks.config import ConfigOutcome, SetAt, judge_broker_config
from rackspan.cluster.core.configs import BROKER_CONFIGS, PROTOCOL_VERSION
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.errors import UsageError
from rackspan.model import RACK_AWARE_SELECTOR, REPLICA_SELECTOR
from rackspan.model.ids import BrokerId, RackId


def apply_broker_configs(settings: ClusterSettings, config: Mapping[str, str], brokers: int) -> ClusterSettings:
    """The settings with `config` applied. A config without a field in ClusterSettings goes to `extra_configs`.

    A default replication factor above the number of `brokers` is lowered, unless `config` sets it.
    Errors: UsageError for an unknown key or an invalid value.
    """
    config = {_LISTENER_CONFIGS.get(key, key): value for key, value in config.items()}
    for key, value in config.items():
        _check(key, value)
    fields = {name: parse(config[key]) for key, (name, parse) in _FIELDS.items() if key in config}
    # Any: mypy cannot match the keys with the arguments of replace().
    default_factor: dict[str, Any] = {"default_replication_factor": min(settings.default_replication_factor, brokers)}
    with_fields = replace(settings, **{**default_factor, **fields})
    others = {key: value for key, value in config.items() if key not in _FIELDS}
    # Set explicitly, so that DescribeConfigs shows the factor that the coordinators' topics are created with.
    coordinators = dict.fromkeys(_INTERNAL_TOPIC_FACTORS, str(with_fields.default_replication_factor))
    return replace(with_fields, extra_configs={**coordinators, **settings.extra_configs, **others})


def check_start(settings: ClusterSettings, rack_of: Mapping[BrokerId, RackId | None]) -> None:
    """Errors: UsageError for brokers that would refuse to start: a class that they cannot load, min.insync.racks (Validation)."""
    check_selector(settings.replica_selector_class)
    for broker, rack in rack_of.items():
        verdict = judge_broker_config(str(settings.min_insync_racks), SetAt.BROKER_START, rack, ())
        if verdict.outcome is ConfigOutcome.REFUSES_TO_START:
            raise UsageError(f"broker {broker} refuses to start: {verdict.error}")


def check_selector(selector: str | None) -> None:
    """Errors: UsageError for a replica.selector.class that brokers cannot load."""
    # As for Kafka's own brokers, the empty name is that of a class that does not exist.
    if selector not in (None, RACK_AWARE_SELECTOR):
        raise UsageError(
            f"{REPLICA_SELECTOR} {selector!r}: the brokers refuse to start, since they have no such class; give "
            f"{RACK_AWARE_SELECTOR}, or leave it out: then leaders serve every consumer"
        )


def _check(key: str, value: object) -> None:
    definition = BROKER_CONFIGS.get(key)
    if definition is None:
        raise UsageError(f"config {key!r}: not a broker config of this cluster; correct its name")
    if value is None:
        raise UsageError(f"config {key!r}: None is not a value; leave the config out for Kafka's default")
    if not isinstance(value, str):
        raise UsageError(f"config {key!r}: {value!r} is not a string, as Kafka's configs are; write {str(value)!r}")
    complaint = definition.complaint(value)
    if key == PROTOCOL_VERSION:
        from rackspan.cluster.zookeeper_era.protocol_version import version_error

        complaint = version_error(value)
    if complaint is not None:
        raise UsageError(complaint)


def _parse_bool(text: str) -> bool:
    return text.strip().lower() == "true"


def _parse_seconds(text: str) -> int:
    """Milliseconds."""
    return int(text) * 1000


_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "auto.create.topics.enable": ("auto_create_topics", _parse_bool),
    "auto.leader.rebalance.enable": ("auto_leader_rebalance", _parse_bool),
    "broker.heartbeat.interval.ms": ("heartbeat_interval_ms", int),
    "broker.session.timeout.ms": ("session_timeout_ms", int),
    "default.replication.factor": ("default_replication_factor", int),
    "extended.error.codes": ("extended_error_codes", _parse_bool),
    "leader.imbalance.check.interval.seconds": ("leader_imbalance_check_interval_ms", _parse_seconds),
    "log.cleaner.backoff.ms": ("cleaner_backoff_ms", int),
    "log.retention.check.interval.ms": ("retention_check_interval_ms", int),
    "message.max.bytes": ("message_max_bytes", int),
    "min.insync.racks": ("min_insync_racks", int),
    "min.insync.replicas": ("min_insync_replicas", int),
    "num.partitions": ("num_partitions", int),
    "replica.fetch.backoff.ms": ("fetch_backoff_ms", int),
    "replica.fetch.max.bytes": ("fetch_max_partition_bytes", int),
    "replica.fetch.response.max.bytes": ("fetch_max_bytes", int),
    "replica.fetch.wait.max.ms": ("fetch_max_wait_ms", int),
    "replica.lag.time.max.ms": ("replica_lag_time_max_ms", int),
    REPLICA_SELECTOR: ("replica_selector_class", str.strip),
    "unclean.leader.election.enable": ("unclean_leader_election", _parse_bool),
}
_LISTENER_CONFIGS: Final = {"listener.name.plaintext.extended.error.codes": "extended.error.codes"}
"""Kafka's names for configs of one listener. A broker of this cluster has one listener, PLAINTEXT."""

_INTERNAL_TOPIC_FACTORS: Final = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
