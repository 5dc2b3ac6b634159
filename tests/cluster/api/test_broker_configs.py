"""Broker configs reach the part of the cluster that acts on them."""

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic, TopicPartition

from rackspan.cluster import ClusterSettings, EmbeddedCluster
from rackspan.cluster.api.broker_configs import apply_broker_configs
from rackspan.cluster.host.broker_runner import group_settings, transaction_settings
from rackspan.errors import UsageError
from tests.waiting import WITHIN_SECONDS


def test_a_config_with_a_settings_field_sets_that_field() -> None:
    config = {"min.insync.racks": "2", "auto.create.topics.enable": "false", "num.partitions": "4"}
    settings = apply_broker_configs(ClusterSettings(), config, 3)
    assert (settings.min_insync_racks, settings.auto_create_topics, settings.num_partitions) == (2, False, 4)


def test_a_config_without_a_settings_field_is_kept_by_its_name() -> None:
    config = {"replica.placer.class.name": "balanced"}
    extra = apply_broker_configs(ClusterSettings(), config, 3).extra_configs
    assert extra["replica.placer.class.name"] == "balanced"


@pytest.mark.parametrize("wrong", [{"min.insync.rack": "2"}, {"min.insync.racks": "0"}, {"num.partitions": "four"}])
def test_an_unknown_config_or_value_is_an_error(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        EmbeddedCluster(config=wrong)


SELECTOR = "replica.selector.class"
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.mark.parametrize("value", ["", " ", "com.acme.MySelector", "RackAwareReplicaSelector", "java.lang.String"])
def test_brokers_refuse_to_start_with_a_replica_selector_that_they_cannot_load(value: str) -> None:
    """As Apache Kafka does: tests/conformance/test_replica_selector.py."""
    with pytest.raises(UsageError, match=r"replica\.selector\.class '.*': the brokers refuse to start"):
        EmbeddedCluster(config={SELECTOR: value})
    with pytest.raises(UsageError, match="the brokers refuse to start"):
        EmbeddedCluster(settings=ClusterSettings(replica_selector_class=value))


def test_none_is_not_a_value_and_the_line_says_what_to_do() -> None:
    config: Any = {SELECTOR: None}
    with pytest.raises(UsageError, match="None is not a value; leave the config out"):
        EmbeddedCluster(config=config)


@pytest.mark.parametrize(("config", "value"), [({}, None), ({SELECTOR: f"{RACK_AWARE} "}, RACK_AWARE)])
def test_the_replica_selector_is_described_as_it_is_set(config: dict[str, str], value: str | None) -> None:
    with EmbeddedCluster(racks=1, brokers=1, config=config) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        resource = ConfigResource(ConfigResource.Type.BROKER, "1")
        assert admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)[SELECTOR].value == value


BROKER_TIMES = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "4000",
    "leader.imbalance.check.interval.seconds": "7",
    "replica.fetch.backoff.ms": "60",
    "replica.fetch.max.bytes": "2000000",
    "replica.fetch.response.max.bytes": "3000000",
    "replica.fetch.wait.max.ms": "400",
}
COORDINATOR_LIMITS = {
    "group.initial.rebalance.delay.ms": "300",
    "group.max.session.timeout.ms": "60000",
    "group.max.size": "5",
    "group.min.session.timeout.ms": "500",
    "offset.metadata.max.bytes": "10",
    "transaction.max.timeout.ms": "70000",
}


def test_every_setting_of_brokers_and_coordinators_is_set_by_kafkas_name() -> None:
    settings = apply_broker_configs(ClusterSettings(), {**BROKER_TIMES, **COORDINATOR_LIMITS}, 3)
    assert (settings.heartbeat_interval_ms, settings.session_timeout_ms) == (200, 4_000)
    assert (settings.fetch_backoff_ms, settings.fetch_max_wait_ms) == (60, 400)
    assert (settings.fetch_max_partition_bytes, settings.fetch_max_bytes) == (2_000_000, 3_000_000)
    assert settings.leader_imbalance_check_interval_ms == 7_000
    groups = group_settings(settings.extra_configs)
    assert (groups.group_initial_rebalance_delay_ms, groups.group_max_size) == (300, 5)
    assert (groups.group_min_session_timeout_ms, groups.group_max_session_timeout_ms) == (500, 60_000)
    assert groups.offset_metadata_max_bytes == 10
    assert transaction_settings(settings.extra_configs).transaction_max_timeout_ms == 70_000


def test_a_cluster_describes_the_settings_of_brokers_and_coordinators() -> None:
    with EmbeddedCluster(racks=1, brokers=1, config={**BROKER_TIMES, **COORDINATOR_LIMITS}) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        resource = ConfigResource(ConfigResource.Type.BROKER, "1")
        described = admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)
    given = {**BROKER_TIMES, **COORDINATOR_LIMITS}
    assert {key: described[key].value for key in given} == given


def test_two_brokers_hold_two_replicas_where_three_are_not_required() -> None:
    assert apply_broker_configs(ClusterSettings(), {}, 2).default_replication_factor == 2
    assert (
        apply_broker_configs(ClusterSettings(), {"default.replication.factor": "3"}, 2).default_replication_factor == 3
    )


def test_a_cluster_describes_and_applies_its_configs() -> None:
    config = {"default.replication.factor": "2", "num.partitions": "5", "replica.placer.class.name": "balanced"}
    with EmbeddedCluster(racks=3, brokers=3, config=config) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("defaults", -1, -1)])["defaults"].result(WITHIN_SECONDS)
        assert [len(cluster.replicas("defaults", index)) for index in range(5)] == [2] * 5
        with pytest.raises(KafkaException) as refused:
            admin.create_topics([NewTopic("huge", 50_000, 1)])["huge"].result(WITHIN_SECONDS)
        assert refused.value.args[0].code() == KafkaError.POLICY_VIOLATION


@pytest.mark.parametrize("config", [{}, {"offsets.topic.num.partitions": "4", "offsets.topic.replication.factor": "1"}])
def test_the_offsets_topic_is_created_with_its_configs(config: dict[str, str]) -> None:
    with EmbeddedCluster(racks=1, brokers=2, config=config) as cluster:
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        Consumer({**servers, "group.id": "any"}).committed([TopicPartition("orders", 0)], 30)
        admin = AdminClient(servers)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1")
        described = admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)
        partitions = (
            admin.list_topics("__consumer_offsets", WITHIN_SECONDS).topics["__consumer_offsets"].partitions.values()
        )
        assert described["offsets.topic.num.partitions"].value == str(len(partitions))
        factors = {str(len(one.replicas)) for one in partitions}
        assert factors == {described["offsets.topic.replication.factor"].value}
