"""min.insync.racks through admin clients, and replicas from a placer, before the embedded cluster."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic

from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterUnreachable
from rackspan.gateway.core import policies
from rackspan.gateway.handlers.admin import AdminHandler
from rackspan.gateway.upstream import config_writer
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
)
from tests.conformance.wire import send
from tests.gateway.core.addresses import renamed
from tests.gateway.running import RunningGateway, running
from tests.waiting import WITHIN_SECONDS, eventually

KEY = "min.insync.racks"


@pytest.fixture(scope="module")
def admin(gateway: RunningGateway) -> AdminClient:
    return AdminClient({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})


def created(admin: AdminClient, **config: str) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    configs = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, 1, 3, config=configs)])[name].result(WITHIN_SECONDS)
    return name


def alter(admin: AdminClient, name: str, value: str | None, kind: ResourceType = ResourceType.TOPIC) -> None:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(KEY, value or "", incremental_operation=operation)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WITHIN_SECONDS)


def described(admin: AdminClient, name: str, kind: ResourceType = ResourceType.TOPIC) -> tuple[str, int]:
    resource = ConfigResource(kind, name)
    entry = admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)[KEY]
    return entry.value, entry.source


def test_a_topics_value_is_set_described_and_removed(admin: AdminClient) -> None:
    topic = created(admin)
    assert described(admin, topic) == ("1", ConfigSource.DEFAULT_CONFIG.value)
    alter(admin, topic, "2")
    assert described(admin, topic) == ("2", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    alter(admin, topic, None)
    assert described(admin, topic) == ("1", ConfigSource.DEFAULT_CONFIG.value)


def test_a_topic_is_created_with_a_value(admin: AdminClient) -> None:
    topic = created(admin, min_insync_racks="3", retention_ms="1000")
    assert described(admin, topic) == ("3", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    assert admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)["retention.ms"].value == "1000"


@pytest.mark.parametrize("value", ["0", "two", "-1", "2147483648", ""])
def test_an_invalid_value_changes_nothing(admin: AdminClient, value: str) -> None:
    topic = created(admin, min_insync_racks="2")
    if value:
        with pytest.raises(KafkaException, match=r"INVALID_CONFIG.*min\.insync\.racks"):
            alter(admin, topic, value)
    with pytest.raises(KafkaException, match="INVALID_CONFIG"):
        created(admin, min_insync_racks=value)
    assert described(admin, topic) == ("2", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)


def alter_default(gateway: RunningGateway, value: str | None) -> None:
    """As kafka-configs.sh --entity-type brokers --entity-default; librdkafka refuses a resource without a name."""
    config = {"name": KEY, "config_operation": 0 if value else 1, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    address = "{}:{}".format(*gateway.address(1))
    (response,) = send(address, "IncrementalAlterConfigs", 1, {"resources": [resource], "validate_only": False})[
        "responses"
    ]
    assert response["error_code"] == 0, response


def test_the_default_of_the_cluster_applies_to_topics_without_a_value(
    admin: AdminClient, gateway: RunningGateway
) -> None:
    topic = created(admin)
    alter_default(gateway, "2")
    try:
        assert described(admin, topic) == ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value)
        alter(admin, "1", "3", ResourceType.BROKER)
        assert described(admin, "1", ResourceType.BROKER) == ("3", ConfigSource.DYNAMIC_BROKER_CONFIG.value)
        assert described(admin, "2", ResourceType.BROKER) == ("2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value)
    finally:
        alter_default(gateway, None)
        alter(admin, "1", None, ResourceType.BROKER)
    assert described(admin, topic) == ("1", ConfigSource.DEFAULT_CONFIG.value)


def test_the_older_alter_api_keeps_the_value_that_it_does_not_name(admin: AdminClient, gateway: RunningGateway) -> None:
    topic = created(admin, min_insync_racks="2")
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "5000"})
    admin.alter_configs([resource])[resource].result(WITHIN_SECONDS)
    assert described(admin, topic) == ("2", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={KEY: "3"})
    admin.alter_configs([resource])[resource].result(WITHIN_SECONDS)
    assert described(admin, topic) == ("3", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)


def test_a_delete_that_deletes_nothing_is_refused(admin: AdminClient) -> None:
    topic = created(admin)
    with pytest.raises(KafkaException, match=r"has no min\.insync\.racks of its own that could be deleted"):
        alter(admin, topic, None)


def test_what_is_only_validated_keeps_the_value(admin: AdminClient, gateway: RunningGateway) -> None:
    topic = created(admin, min_insync_racks="2")
    address = "{}:{}".format(*gateway.address(1))
    for api, config in (
        ("AlterConfigs", {"name": "retention.ms", "value": "5000"}),
        ("AlterConfigs", {"name": KEY, "value": "3"}),
        ("IncrementalAlterConfigs", {"name": KEY, "config_operation": 0, "value": "3"}),
        ("IncrementalAlterConfigs", {"name": KEY, "config_operation": 1, "value": None}),
    ):
        resource = {"resource_type": 2, "resource_name": topic, "configs": [config]}
        (response,) = send(address, api, 1, {"resources": [resource], "validate_only": True})["responses"]
        assert response["error_code"] == 0, response
        assert described(admin, topic)[0] == "2"


def test_the_value_is_described_to_those_who_request_it(admin: AdminClient, gateway: RunningGateway) -> None:
    topic = created(admin, min_insync_racks="2")
    address = "{}:{}".format(*gateway.address(1))

    def names(*keys: str) -> set[str]:
        resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": [*keys]}
        (result,) = send(address, "DescribeConfigs", 2, {"resources": [resource]})["results"]
        return {config["name"] for config in result["configs"]}

    assert names(KEY) == {KEY}
    assert names("retention.ms") == {"retention.ms"}


def test_a_value_of_a_topic_that_does_not_exist_is_refused(admin: AdminClient) -> None:
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        alter(admin, "no-such-topic", "2")


def test_values_outlive_every_gateway(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    topic = created(admin, min_insync_racks="3")
    with running(cluster.bootstrap_servers) as another:
        other = AdminClient({"bootstrap.servers": another.bootstrap_servers, "log_level": 0})
        assert described(other, topic)[0] == "3"
        alter(other, topic, "2")
        # The first one follows.
        eventually(lambda: described(admin, topic)[0] == "2", "the other gateway follows")


def test_a_topic_created_anew_starts_without_a_value(
    cluster: EmbeddedCluster, admin: AdminClient, gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "GONE_SECONDS", 0.2)
    topic = created(admin, min_insync_racks="3")
    direct = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    direct.delete_topics([topic])[topic].result(WITHIN_SECONDS)
    direct.create_topics([NewTopic(topic, 1, 3)])[topic].result(WITHIN_SECONDS)
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "acks": "all", "log_level": 0})

    def is_gone() -> bool:
        producer.produce(topic, b"x")
        assert producer.flush(WITHIN_SECONDS) == 0
        return gateway.gateway.policies.requirement(topic, 1) is None

    eventually(is_gone, "the earlier topic's value is gone")


def test_a_topic_created_anew_through_the_gateway_starts_without_a_value_at_once(
    admin: AdminClient, gateway: RunningGateway
) -> None:
    topic = created(admin, min_insync_racks="3")
    admin.delete_topics([topic])[topic].result(WITHIN_SECONDS)
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(WITHIN_SECONDS)
    assert gateway.gateway.policies.requirement(topic, 1) is None


def test_kafka_python_alters_and_creates_too(gateway: RunningGateway, admin: AdminClient) -> None:
    python = KafkaAdminClient(bootstrap_servers=gateway.bootstrap_servers)
    topic = f"topic-{uuid4().hex[:8]}"
    python.create_topics([PythonNewTopic(topic, 1, 3, topic_configs={KEY: "2"})])
    python.close()
    assert described(admin, topic)[0] == "2"


def test_the_config_topic_is_not_altered_or_emptied_through_a_gateway(
    cluster: EmbeddedCluster, admin: AdminClient, gateway: RunningGateway
) -> None:
    topic = created(admin, min_insync_racks="2")
    configs = gateway.gateway.config.config_topic
    assert configs is not None
    resource = ConfigResource(
        ResourceType.TOPIC,
        configs,
        incremental_configs=[ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)],
    )
    for refused in (
        admin.incremental_alter_configs([resource])[resource],
        admin.delete_topics([configs])[configs],
        admin.create_partitions([NewPartitions(configs, 2)])[configs],
        *admin.delete_records([TopicPartition(configs, 0, 1)]).values(),
    ):
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            refused.result(WITHIN_SECONDS)
    with running(cluster.bootstrap_servers) as another:
        assert another.gateway.policies.topic_value(topic, None)[0] == 2


def test_topics_beside_the_config_topic_are_deleted(admin: AdminClient, gateway: RunningGateway) -> None:
    topic, configs = created(admin), str(gateway.gateway.config.config_topic)
    deleted = admin.delete_topics([topic, configs])
    assert deleted[topic].result(WITHIN_SECONDS) is None
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        deleted[configs].result(WITHIN_SECONDS)


def test_a_value_above_the_known_racks_is_refused(admin: AdminClient) -> None:
    topic = created(admin)
    with pytest.raises(KafkaException, match="the cluster has 3 racks, so that no produce could be acknowledged"):
        alter(admin, topic, "4")
    assert described(admin, topic)[0] == "1"


async def altered_at(address: tuple[str, int], topic: str, value: str) -> str:
    """The topic and the error message of an alteration that is sent to one broker."""
    config = IncrementalAlterConfigsRequestAlterableConfig(name=KEY, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=2, resource_name=topic, configs=[config]
    )
    connection = await BrokerConnection.open(*address, Login())
    try:
        request = IncrementalAlterConfigsRequestData(resources=[resource])
        response = await connection.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, seconds=WITHIN_SECONDS)
    finally:
        connection.close()
    return f"{response.responses[0].resource_name}: {response.responses[0].error_message}"


@pytest.mark.slow
def test_a_value_is_acknowledged_when_its_record_is_in_as_many_racks_as_any_value_requires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Brokers 1 and 2 in rack a, 3 in b, which is paused: the config topic's ISR is a alone, and loses with it what it has."""
    monkeypatch.setattr(config_writer, "WRITE_SECONDS", 3.0)
    with EmbeddedCluster(racks=("a", "a", "b"), brokers=3, seed=5) as cluster:
        for topic in ("t", "u"):
            cluster.create_topic(topic, partitions=1, replication_factor=3)
        with running(cluster.bootstrap_servers) as gateway:
            admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})
            alter(admin, "t", "2")
            with pytest.raises(KafkaException, match="the cluster has 2 racks"):
                alter(admin, "t", "3")
            cluster.pause(3)
            eventually(lambda: len(cluster.isr("__rackspan_configs", 0)) == 2, "rack b is out")
            # Not by the admin client, which may send it to the broker that is paused.
            assert "u: min.insync.racks may not be kept" in asyncio.run(altered_at(gateway.address(1), "u", "2"))
            cluster.resume(3)
            eventually(lambda: len(cluster.isr("__rackspan_configs", 0)) == 3, "rack b is back")
            alter(admin, "u", "2")


@pytest.fixture(scope="module")
def placing(cluster: EmbeddedCluster) -> Iterator[AdminClient]:
    tables = {
        "placement": {"replica": {"placer": {"class": {"name": "tests.gateway.handlers.last_broker:LastBroker"}}}}
    }
    with running(cluster.bootstrap_servers, **tables) as gateway:
        yield AdminClient({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})


def test_new_topics_and_partitions_are_placed_by_the_placer(placing: AdminClient, cluster: EmbeddedCluster) -> None:
    topic = f"placed-{uuid4().hex[:8]}"
    placing.create_topics([NewTopic(topic, 2, 2)])[topic].result(WITHIN_SECONDS)
    assert [cluster.replicas(topic, one) for one in range(2)] == [(3, 2), (3, 2)]
    placing.create_partitions([NewPartitions(topic, 3)])[topic].result(WITHIN_SECONDS)
    assert cluster.replicas(topic, 2) == (3, 2)


def test_topics_with_the_brokers_default_counts_are_placed_too() -> None:
    placer = {"class": {"name": "tests.gateway.handlers.last_broker:LastBroker"}}
    config = {"num.partitions": "2", "default.replication.factor": "2"}
    with (
        EmbeddedCluster(racks=3, brokers=3, seed=3, config=config) as cluster,
        running(cluster.bootstrap_servers, placement={"replica": {"placer": placer}}) as gateway,
    ):
        admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})
        for name, partitions, factor, replicas in (
            ("partitions", -1, 3, [(3, 2, 1)] * 2),
            ("factor", 1, -1, [(3, 2)]),
            ("both", -1, -1, [(3, 2)] * 2),
        ):
            admin.create_topics([NewTopic(name, partitions, factor)])[name].result(WITHIN_SECONDS)
            assert len(admin.list_topics(name, timeout=WITHIN_SECONDS).topics[name].partitions) == len(replicas)
            assert [cluster.replicas(name, number) for number in range(len(replicas))] == replicas


def test_automatic_creation_is_placed_too(placing: AdminClient, cluster: EmbeddedCluster) -> None:
    topic = f"automatic-{uuid4().hex[:8]}"
    placing.list_topics(topic, timeout=WITHIN_SECONDS)
    eventually(lambda: topic in placing.list_topics(timeout=WITHIN_SECONDS).topics, "the topic is created")
    assert cluster.replicas(topic, 0) == (3, 2, 1)


def test_manual_assignments_pass(placing: AdminClient, cluster: EmbeddedCluster) -> None:
    topic = f"manual-{uuid4().hex[:8]}"
    placing.create_topics([NewTopic(topic, 1, replica_assignment=[[1, 3]])])[topic].result(WITHIN_SECONDS)
    assert cluster.replicas(topic, 0) == (1, 3)


def test_a_placer_that_fails_refuses_its_topic_alone_with_its_reason(
    placing: AdminClient, cluster: EmbeddedCluster
) -> None:
    good, bad = f"good-{uuid4().hex[:8]}", f"refused-{uuid4().hex[:8]}"
    results = placing.create_topics([NewTopic(good, 1, 1), NewTopic(bad, 7, 1)])
    results[good].result(WITHIN_SECONDS)
    with pytest.raises(KafkaException, match="seven is refused") as refused:
        results[bad].result(WITHIN_SECONDS)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN
    with pytest.raises(KafkaException, match="seven is refused") as refused:
        placing.create_partitions([NewPartitions(good, 8)])[good].result(WITHIN_SECONDS)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN
    assert bad not in placing.list_topics(timeout=WITHIN_SECONDS).topics


@pytest.mark.parametrize(
    ("keeps_values", "places", "handled"),
    [
        (True, False, {19, 20, 21, 32, 33, 37, 44}),
        (False, True, {3, 19, 37}),
        (True, True, {3, 19, 20, 21, 32, 33, 37, 44}),
    ],
)
def test_requests_for_values_and_for_placement_are_both_handled(
    keeps_values: bool, places: bool, handled: set[int]
) -> None:
    parts: Any = SimpleNamespace(cluster=None, policies=None, placer=object() if places else None)
    store: Any = SimpleNamespace(topic="configs") if keeps_values else None
    assert AdminHandler(parts, renamed(), store).api_keys == handled


def test_one_request_cannot_have_more_partitions_placed_than_kafka_creates(
    placing: AdminClient, cluster: EmbeddedCluster
) -> None:
    """A number of four bytes would otherwise become gigabytes of replicas here, whatever the client's rights."""
    good, bad = f"good-{uuid4().hex[:8]}", f"huge-{uuid4().hex[:8]}"
    results = placing.create_topics([NewTopic(good, 1, 1), NewTopic(bad, 10_000, 1)])
    results[good].result(WITHIN_SECONDS)
    with pytest.raises(KafkaException, match="10,000 partitions: one request may add 10,000 at most"):
        results[bad].result(WITHIN_SECONDS)
    with pytest.raises(KafkaException, match="100,000 partitions: one request may add 10,000 at most"):
        placing.create_topics([NewTopic(bad, 100_000, 1)])[bad].result(WITHIN_SECONDS)
    with pytest.raises(KafkaException, match="99,999 partitions: one request may add 10,000 at most"):
        placing.create_partitions([NewPartitions(good, 100_000)])[good].result(WITHIN_SECONDS)


@pytest.fixture
def unreadable(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningGateway]:
    """Before a placing gateway, whose own connections to the cluster fail."""
    tables = {
        "placement": {"replica": {"placer": {"class": {"name": "tests.gateway.handlers.last_broker:LastBroker"}}}}
    }

    async def fails() -> None:
        raise ClusterUnreachable("no broker responds")

    with running(cluster.bootstrap_servers, **tables) as gateway:
        monkeypatch.setattr(gateway.gateway.cluster, "any_broker", fails)
        yield gateway


def test_new_partitions_that_cannot_be_placed_are_refused_with_the_reason(
    unreadable: RunningGateway, cluster: EmbeddedCluster
) -> None:
    name = f"topic-{uuid4().hex[:8]}"
    cluster.create_topic(name, replicas=[[1, 2]])
    address = "{}:{}".format(*unreadable.address(1))
    body = {
        "topics": [{"name": name, "count": 3, "assignments": None}],
        "timeout_ms": 1000,
        "validate_only": False,
    }
    (result,) = send(address, "CreatePartitions", 1, body)["results"]
    assert result["error_code"] == -1
    assert "no broker responds" in result["error_message"]


def test_a_topic_that_cannot_be_placed_is_not_created_automatically(unreadable: RunningGateway) -> None:
    address = "{}:{}".format(*unreadable.address(1))
    body = {"topics": [{"name": f"topic-{uuid4().hex[:8]}"}], "allow_auto_topic_creation": True}
    (topic,) = send(address, "Metadata", 4, body)["topics"]
    assert topic["error_code"] == 3
