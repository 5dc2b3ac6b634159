"""min.insync.racks over the wire: the responses to clients and admin clients, and the log. The rule itself is tested in core/."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from rackspan.acks import min_insync_racks
from rackspan.cluster import ClusterSettings, EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.testing import losing, pausing
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
    IncrementalAlterConfigsResponseData,
)
from tests.cluster import raw
from tests.waiting import WITHIN_SECONDS

NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT = 19, 20, 7
NOT_ENOUGH_RACKS = 1001


@contextmanager
def cluster_of(racks: Any = 3, brokers: int = 3, **config: str) -> Iterator[EmbeddedCluster]:
    wanted = {key.replace("_", "."): value for key, value in config.items()}
    settings = ClusterSettings(replica_lag_time_max_ms=1_000)
    with EmbeddedCluster(racks, brokers, config=wanted, settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with cluster_of() as started:
        yield started


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """One partition in three racks that requires three. All replicas are in sync before and after the test."""
    name = f"t-{abs(hash(request.node.name))}"
    cluster.create_topic(name, 1, 3, config={"min.insync.racks": "3"})
    yield name
    cluster.wait_for_isr(seconds=WITHIN_SECONDS)


def leader_of(cluster: EmbeddedCluster, topic: str) -> str:
    leader = cluster.leader(topic, 0)
    assert leader is not None
    return cluster.address(leader)


# Sections 1 and 4: when a produce is refused, and with which message.


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_a_refusal_has_code_19_and_names_the_racks_from_version_8_on(
    cluster: EmbeddedCluster, topic: str, version: int
) -> None:
    with losing(cluster, "r1"):
        response = raw.produced(leader_of(cluster, topic), topic, version=version)
    assert response.error_code == NOT_ENOUGH_REPLICAS
    words = f"{topic}-0: in-sync racks r2,r3 = 2 < min.insync.racks 3"
    assert response.error_message == (words if version >= 8 else None)


def test_min_insync_replicas_is_checked_first_and_refused_with_kafkas_message(
    cluster: EmbeddedCluster, topic: str
) -> None:
    cluster.alter_topic(topic, min_insync_replicas=3)
    with losing(cluster, "r1"):
        response = raw.produced(leader_of(cluster, topic), topic)
    assert response.error_code == NOT_ENOUGH_REPLICAS
    assert "min.isr requirement of 3" in (response.error_message or "")


@pytest.mark.parametrize("acks", [0, 1])
def test_acks_0_and_1_are_never_checked(cluster: EmbeddedCluster, topic: str, acks: int) -> None:
    acknowledged: list[bool] = []
    with losing(cluster, "r1"):
        config = {"bootstrap.servers": cluster.bootstrap_servers, "acks": acks, "log_level": 0}
        producer = Producer(config)
        producer.produce(topic, b"x", on_delivery=lambda error, _: acknowledged.append(error is None))
        producer.flush(WITHIN_SECONDS)
    assert acknowledged == [True]


def test_a_waiting_produce_fails_when_racks_are_lost_and_nothing_is_acknowledged(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """The two follower racks freeze: the record is in the leader's log, and must not be acknowledged from there."""
    leader = cluster.leader(topic, 0)
    assert leader is not None
    with pausing(cluster, *(broker for broker in cluster.brokers if broker != leader)):
        response = raw.produced(cluster.address(leader), topic, timeout_ms=4_000)
    assert response.error_code in (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert sum(metrics["rackspan_rack_check_failures_total"] for metrics in cluster.metrics().values()) > 0


def test_a_changed_value_holds_for_the_next_request(cluster: EmbeddedCluster, topic: str) -> None:
    with losing(cluster, "r2"):
        leader = leader_of(cluster, topic)
        for value, error in ((3, NOT_ENOUGH_REPLICAS), (2, 0), (3, NOT_ENOUGH_REPLICAS), (1, 0)):
            cluster.alter_topic(topic, min_insync_racks=value)
            assert raw.produced(leader, topic).error_code == error


@pytest.mark.parametrize("prefix", ["", "listener_name_plaintext_"])
def test_the_new_error_codes_are_sent_only_with_extended_error_codes(prefix: str) -> None:
    config: dict[str, Any] = {f"{prefix}extended_error_codes": "true"}
    with cluster_of(**config) as cluster:
        cluster.create_topic("orders", 1, 3, config={"min.insync.racks": "3"})
        cluster.lose_rack("r1")
        response = raw.produced(leader_of(cluster, "orders"), "orders")
        assert response.error_code == NOT_ENOUGH_RACKS
        assert response.error_message == "orders-0: in-sync racks r2,r3 = 2 < min.insync.racks 3"
        # A client without this code fails at once, which is why it is not the default.
        failed: list[KafkaError | None] = []
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        producer.produce("orders", b"x", on_delivery=lambda error, _: failed.append(error))
        producer.flush(WITHIN_SECONDS)
        assert [error.code() for error in failed if error] == [NOT_ENOUGH_RACKS]


def test_brokers_without_a_rack_are_one_unnamed_rack() -> None:
    with cluster_of(racks=("r1", None), brokers=4) as cluster:
        cluster.create_topic("orders", replicas=[[2, 4]], config={"min.insync.racks": "2"})
        response = raw.produced(cluster.address(2), "orders")
        assert response.error_code == NOT_ENOUGH_REPLICAS
        assert "= 1 < min.insync.racks 2" in (response.error_message or "")


def test_with_the_value_1_racks_are_never_counted(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"in all": 0}

    def count(bits: min_insync_racks.RackBits, isr: tuple[int, ...]) -> int:
        counted["in all"] += 1
        return 9

    cluster.create_topic("plain", 1, 3, config={"min.insync.replicas": "2"})
    cluster.create_topic("asking", 1, 3, config={"min.insync.racks": "2"})
    monkeypatch.setattr(min_insync_racks.RackBits, "count", count)
    for _ in range(20):
        assert raw.produced(leader_of(cluster, "plain"), "plain").error_code == 0
    assert counted == {"in all": 0}
    assert raw.produced(leader_of(cluster, "asking"), "asking").error_code == 0
    assert counted["in all"] > 0


# Section 3: validation of an admin client's values.


@pytest.fixture
def admin(cluster: EmbeddedCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def altered(admin: AdminClient, kind: ResourceType, name: str, value: str) -> None:
    entry = ConfigEntry("min.insync.racks", value, incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(kind, name, incremental_configs=[entry])
    admin.incremental_alter_configs([wanted])[wanted].result(WITHIN_SECONDS)


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_an_invalid_value_is_refused_with_key_and_value(
    cluster: EmbeddedCluster, topic: str, admin: AdminClient, value: str
) -> None:
    for kind, name in ((ResourceType.TOPIC, topic), (ResourceType.BROKER, "1")):
        with pytest.raises(KafkaException, match=rf"Invalid value {value} for configuration min\.insync\.racks"):
            altered(admin, kind, name, value)
    with pytest.raises(KafkaException, match=r"min\.insync\.racks"):
        admin.create_topics([NewTopic("refused", 1, 3, config={"min.insync.racks": value})])["refused"].result(
            WITHIN_SECONDS
        )


def test_a_broker_without_a_rack_accepts_no_value_above_1_dynamically_or_at_start() -> None:
    with cluster_of(racks=("r1", None)) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        with pytest.raises(KafkaException, match=r"has no broker\.rack"):
            altered(admin, ResourceType.BROKER, "2", "2")
        altered(admin, ResourceType.BROKER, "1", "2")
    with pytest.raises(UsageError, match=r"broker 2 refuses to start: min\.insync\.racks 2: .* no broker\.rack"):
        EmbeddedCluster(racks=("r1", None), config={"min.insync.racks": "2"})


def test_a_broker_that_loses_its_rack_ends_with_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    reason = "min.insync.racks 2: this broker has no broker.rack; set it, or leave the value at 1"
    with cluster_of() as cluster:
        set_default_of_brokers(cluster, "2")
        with pytest.raises(UsageError, match=f"broker 1 refuses to start: {reason}"):
            cluster.change_rack(1, None)
        assert ("ERROR", f"broker 1 refuses to start: {reason}") in [
            (record.levelname, record.getMessage()) for record in caplog.records
        ]
        cluster.change_rack(1, "r1")
        cluster.create_topic("orders", 3, 3)
        cluster.wait_for_isr("orders")


def test_an_accepted_but_unusual_value_is_warned_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with cluster_of(racks=("r1", "r2", None)) as cluster, caplog.at_level(logging.WARNING):
        cluster.create_topic("orders", 1, 3, config={"min.insync.racks": "4"})
        warned = [record.getMessage() for record in caplog.records]
    assert any(
        "min.insync.racks 4: brokers without broker.rack count as one unnamed rack: 3" in line for line in warned
    )
    assert any("min.insync.racks 4: the cluster has" in line and "racks" in line for line in warned)


def set_default_of_brokers(cluster: EmbeddedCluster, value: str) -> None:
    """Set the default of all brokers, which librdkafka cannot name."""
    config = IncrementalAlterConfigsRequestAlterableConfig(name="min.insync.racks", config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    request = IncrementalAlterConfigsRequestData(resources=[resource])
    response: IncrementalAlterConfigsResponseData = raw.response_to(
        cluster.address(1), ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request
    )
    assert response.responses[0].error_code == 0


def test_a_topic_config_overrides_the_brokers_and_that_the_default(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("plain-too", 1, 3)
    set_default_of_brokers(cluster, "3")
    try:
        with losing(cluster, "r3"):
            assert raw.produced(leader_of(cluster, "plain-too"), "plain-too").error_code == NOT_ENOUGH_REPLICAS
            cluster.alter_topic("plain-too", min_insync_racks=1)
            assert raw.produced(leader_of(cluster, "plain-too"), "plain-too").error_code == 0
    finally:
        set_default_of_brokers(cluster, "1")


# Section 9: what else k racks require.


def test_a_restarted_broker_leads_its_only_replica_again_with_all_records(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("single", replicas=[[1]])
    assert [raw.produced(cluster.address(1), "single").base_offset for _ in range(3)] == [0, 1, 2]
    cluster.kill(1)
    assert cluster.leader("single", 0) is None
    cluster.restart(1)
    assert cluster.leader("single", 0) == 1
    assert raw.produced(cluster.address(1), "single").base_offset == 3


def test_after_a_power_loss_the_only_replica_is_not_trusted() -> None:
    with cluster_of() as cluster:
        cluster.create_topic("single", replicas=[[1]])
        assert raw.produced(cluster.address(1), "single").error_code == 0
        cluster.kill(1, power_loss=True)
        cluster.restart(1)
        assert (cluster.leader("single", 0), cluster.isr("single", 0)) == (None, set())
