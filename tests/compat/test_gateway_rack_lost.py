"""The procedure of docs/how-to/gateway.md for a rack that is lost for good, before real Kafka with ELR."""

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from rackspan.errors import KafkaProcessFailed
from rackspan.kafka_process import KafkaCluster, console_tool
from rackspan.model import GATEWAY_CONFIG_TOPIC
from tests.gateway.process import GatewayProcess, broker_ports, gateway_process
from tests.kafka_fixtures import create_topic, started
from tests.kafka_tools import ELECTION_TOOL, reassign
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

TOPIC = "orders"
OVERRIDE = "acknowledgements.override.min.insync.racks = 1\n"


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    """Brokers 1 and 2 in rack A, 3 in B, the controller apart."""
    config = {"replica.lag.time.max.ms": "3000"}
    yield from started(
        KafkaCluster(racks=("A", "A", "B"), brokers=3, controllers={101: None}, config=config, version=KAFKA)
    )


def admin_of(bootstrap_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})


def alter(bootstrap_servers: str, topic: str, key: str, value: str) -> None:
    """By a new client each time: librdkafka's keeps to the controller of its first metadata, though that broker is gone."""

    def is_altered() -> bool:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        with suppress(KafkaException, TimeoutError):
            admin = admin_of(bootstrap_servers)
            admin.incremental_alter_configs([resource])[resource].result(WITHIN_SECONDS)
            return True
        return False

    eventually(is_altered, f"{key} of {topic} is {value}")


def is_isr(admin: AdminClient, topic: str, brokers: list[int]) -> bool:
    return sorted(admin.list_topics(topic, WITHIN_SECONDS).topics[topic].partitions[0].isrs) == brokers


def is_led_by_3(cluster: KafkaCluster, admin: AdminClient, topic: str) -> bool:
    """After an unclean election by Kafka's own tool: the future of librdkafka's may never end while brokers are down.

    The tool does nothing, and does not fail, until the controller has fenced the leader that was killed.
    """
    with suppress(KafkaProcessFailed):
        console_tool(cluster, ELECTION_TOOL, "--election-type", "unclean", "--topic", topic, "--partition", "0")
    return bool(admin.list_topics(topic, WITHIN_SECONDS).topics[topic].partitions[0].leader == 3)


def is_acknowledged(gateway: GatewayProcess, value: bytes) -> bool:
    errors: list[str] = []  # librdkafka's errors cannot be compared with None: TypeError, at some later line.
    producer = Producer(
        {"bootstrap.servers": gateway.bootstrap_servers, "message.timeout.ms": 8000, "retries": 0, "log_level": 0}
    )
    producer.produce(TOPIC, value, on_delivery=lambda error, _message: errors.append(str(error)))
    producer.flush(WITHIN_SECONDS)
    return errors == ["None"]


def values_in(bootstrap_servers: str, until: Callable[[list[bytes]], bool]) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes] = []

    def are_read() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value() or b"")
        return until(values)

    try:
        eventually(are_read, "every record is read")
    finally:
        consumer.close()
    return values


def test_one_rack_alone_serves_again_by_the_override(cluster: KafkaCluster, tmp_path: Path) -> None:
    create_topic(cluster, TOPIC, partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    with gateway_process(tmp_path, cluster.bootstrap_servers, broker_ports()) as gateway:
        alter(gateway.bootstrap_servers, TOPIC, "min.insync.racks", "2")
        assert is_acknowledged(gateway, b"before")
        # Rack B falls behind, then A is lost for good: neither topic has a leader.
        direct = admin_of(cluster.bootstrap_servers)
        cluster.kill(3)
        for topic in (TOPIC, GATEWAY_CONFIG_TOPIC):
            eventually(partial(is_isr, direct, topic, [1, 2]), "rack B is out")
        cluster.kill(1, 2)
        cluster.restart(3)
        # 1. At the brokers: min.insync.replicas of what is left, then leaders. A leader alone that was elected before that
        # serves nothing until the next append: ListOffsets fails with OFFSET_NOT_AVAILABLE.
        for topic in (TOPIC, GATEWAY_CONFIG_TOPIC):
            alter(cluster.bootstrap_servers, topic, "min.insync.replicas", "1")
            eventually(partial(is_led_by_3, cluster, direct, topic), "broker 3 leads")
        # Two racks are still required.
        assert not is_acknowledged(gateway, b"refused")
        # 2. In the gateway's file.
        config = tmp_path / "gateway.toml"
        config.write_text(OVERRIDE + config.read_text())
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: "override.min.insync.racks is 1" in gateway.log.read_text(), "the file is read again")
        eventually(lambda: is_acknowledged(gateway, b"after"), "the rack alone acknowledges")
        # 3. The value itself, which one rack can hold now, and the config topic on what is left, whose end one replica shows;
        # the override can go.
        alter(gateway.bootstrap_servers, TOPIC, "min.insync.racks", "1")
        reassign(cluster, tmp_path, "--execute", **{f"{GATEWAY_CONFIG_TOPIC}_0": [3]})
    with gateway_process(tmp_path, cluster.bootstrap_servers, broker_ports()) as another:
        assert is_acknowledged(another, b"without")
        assert "override" not in another.log.read_text()
    values = values_in(cluster.bootstrap_servers, lambda read: b"without" in read)
    assert values[0] == b"before"
    assert {b"after", b"without"} <= {*values}
