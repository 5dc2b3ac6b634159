"""Rights on real Kafka with ACLs: the cluster decides who may set min.insync.racks; SASL passes through the gateway."""

import asyncio
import socket
from collections.abc import Iterator
from struct import pack
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.kafka_process import KafkaCluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.produce import PartitionProduceData, ProduceRequestData, TopicProduceData
from tests.gateway.running import RunningGateway, running
from tests.kafka_fixtures import USERS, client_properties, secured_cluster
from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.kafka

KEY = "min.insync.racks"


def login(servers: str, user: str, password: str | None = None) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password or USERS[user],
        "log_level": 0,
    }


@pytest.fixture(scope="module")
def secured_kafka() -> Iterator[KafkaCluster]:
    """A cluster of these tests' own: rights given here must not exist where rights are counted. Two racks can be required."""
    yield from secured_cluster("r1", "r2")


@pytest.fixture(scope="module")
def gateway(secured_kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    path = tmp_path_factory.mktemp("gateway") / "admin.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in client_properties("admin").items()))
    with running(secured_kafka.bootstrap_servers, command={"config": str(path)}) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def topic(gateway: RunningGateway) -> str:
    """Has one replica, on broker 1. May be described, its configs read, and written by User:reader, no more."""
    admin = AdminClient(login(gateway.bootstrap_servers, "admin"))
    name = f"topic-{uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, 1, replica_assignment=[[1]])])[name].result(WITHIN_SECONDS)
    rights = [
        AclBinding(
            ResourceType.TOPIC,
            name,
            ResourcePatternType.LITERAL,
            "User:reader",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.WRITE)
    ]
    for created in admin.create_acls(rights).values():
        created.result(WITHIN_SECONDS)
    return name


def alter(servers: str, user: str, topic: str, value: str) -> None:
    admin = AdminClient(login(servers, user))
    entry = ConfigEntry(KEY, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WITHIN_SECONDS)


def described(servers: str, user: str, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient(
        login(servers, user)
    )  # Kept by name: librdkafka drops what is requested once its client is gone.
    value: str = admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)[KEY].value
    return value


def test_who_may_alter_the_topics_configs_may_set_the_policy(gateway: RunningGateway, topic: str) -> None:
    alter(gateway.bootstrap_servers, "admin", topic, "2")
    assert described(gateway.bootstrap_servers, "reader", topic) == "2"


def test_who_may_not_is_refused_by_the_cluster_and_nothing_changes(gateway: RunningGateway, topic: str) -> None:
    alter(gateway.bootstrap_servers, "admin", topic, "2")
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        alter(gateway.bootstrap_servers, "reader", topic, "1")
    assert described(gateway.bootstrap_servers, "admin", topic) == "2"


def test_a_client_without_the_right_cannot_write_the_config_topic(
    gateway: RunningGateway, secured_kafka: KafkaCluster
) -> None:
    for servers in (gateway.bootstrap_servers, secured_kafka.bootstrap_servers):
        errors: list[object] = []
        producer = Producer({**login(servers, "reader"), "message.timeout.ms": 5000})
        producer.produce("__rackspan_configs", b"x", on_delivery=lambda error, _, errors=errors: errors.append(error))  # type: ignore[misc]
        producer.flush(WITHIN_SECONDS)
        assert errors
        assert errors[0] is not None


async def produced(gateway: RunningGateway, user: str, topic: str) -> tuple[int, str | None]:
    """Error code and message of a Produce that the user sends without looking at metadata first."""
    sasl = {"sasl_mechanism": "PLAIN", "sasl_plain_username": user, "sasl_plain_password": USERS[user]}
    connection = await BrokerConnection.open(*gateway.address(1), Login(sasl=sasl))
    data = PartitionProduceData(index=0, records=memoryview(b""))
    request = ProduceRequestData(
        acks=-1, timeout=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    try:
        response = await connection.call(ApiKey.PRODUCE, request, 9)
    finally:
        connection.close()
    partition = response.responses[0].partition_responses[0]
    return partition.error_code, partition.error_message


def test_racks_are_named_only_to_a_client_that_may_write(gateway: RunningGateway, topic: str) -> None:
    """The topic's only replica is in one rack, two are required."""
    alter(gateway.bootstrap_servers, "admin", topic, "2")
    code, message = asyncio.run(produced(gateway, "reader", topic))
    assert (code, message) == (19, f"{topic}-0: in-sync racks r1 = 1 < min.insync.racks 2")
    assert asyncio.run(produced(gateway, "nobody", topic)) == (29, None)


def test_a_client_that_has_not_logged_in_gets_no_response(gateway: RunningGateway, topic: str) -> None:
    alter(gateway.bootstrap_servers, "admin", topic, "2")
    name = topic.encode()
    produce = pack(">hhii", -1, -1, 1000, 1) + pack(">h", len(name)) + name + pack(">iii", 1, 0, -1)
    request = pack(">hhih", 0, 3, 9, -1) + produce
    with socket.create_connection(gateway.address(1), timeout=WITHIN_SECONDS) as link:
        link.sendall(pack(">i", len(request)) + request)
        assert link.recv(1) == b""


def test_a_wrong_password_is_refused_by_the_cluster(gateway: RunningGateway) -> None:
    admin = AdminClient(login(gateway.bootstrap_servers, "admin", "wrong"))
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)  # short: it is refused, which ends by this limit
