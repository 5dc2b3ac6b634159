"""An embedded cluster for a module's tests, and real Kafka for a whole test run: started once, when the first test needs it, and shared.

A test that stops something starts it again (`whole` waits until it has), and names its own topics.
"""

from collections.abc import Iterator
from typing import Protocol

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, TopicPartition

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MissingRequirement
from rackspan.kafka_process import KafkaCluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic
from tests.kafka_versions import KAFKA, OLDEST
from tests.waiting import WITHIN_SECONDS, eventually

TOPIC_TOOL = "org.apache.kafka.tools.TopicCommand"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Three brokers in three racks. Files whose tests need others have a fixture of this name."""
    with EmbeddedCluster(racks=3, brokers=3, seed=3) as started:
        yield started


def started(cluster: KafkaCluster) -> Iterator[KafkaCluster]:
    try:
        cluster.start()
    except MissingRequirement as missing:
        cluster.close()
        pytest.skip(f"NOT TESTED against Apache Kafka {cluster.version}: {missing}")
    except BaseException:
        cluster.close()
        raise
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """Six brokers in three racks, Kafka 4; brokers 1 to 3 are also the controllers."""
    # A log is compacted soon after it is written: by default the cleaner looks every 15 s.
    yield from started(
        KafkaCluster(racks=("r1", "r2", "r3"), brokers=6, version=KAFKA, config={"log.cleaner.backoff.ms": "200"})
    )


@pytest.fixture(scope="session")
def kafka3() -> Iterator[KafkaCluster]:
    """Two brokers in two racks, Kafka 3.9; controller 101 stands apart."""
    yield from started(KafkaCluster(racks=("r1", "r2"), brokers=2, version=OLDEST, controllers={101: "r1"}))


@pytest.fixture(scope="module")
def uneven_kafka() -> Iterator[KafkaCluster]:
    """Five brokers in racks of two, two and one, Kafka 4; broker 1 alone is the controller, so all others may stop.

    Ends with the one module that uses it: five idle brokers slow down all tests after it.
    """
    yield from started(KafkaCluster(racks=("r1", "r2", "r3"), brokers=5, version=KAFKA, controllers={1: "r1"}))


@pytest.fixture(scope="session")
def secured_kafka() -> Iterator[KafkaCluster]:
    """`secured_cluster` for the tests that count what a user sees: others start their own."""
    yield from secured_cluster()


USERS = {name: f"{name}-secret" for name in ("admin", "reader", "nobody")}

_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required username={name!r} password={password!r} {users};"
)

SECURED = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": _JAAS.format(
        name="admin",
        password=USERS["admin"],
        users=" ".join(f"user_{name}={password!r}" for name, password in USERS.items()),
    ).replace("'", '"'),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The controllers' listener has no passwords: a client of that listener is anonymous.
    "super.users": "User:admin;User:ANONYMOUS",
}


def secured_cluster(*racks: str) -> Iterator[KafkaCluster]:
    """One broker, or one in each rack, that require a password and check rights: of `USERS`, only admin may do everything."""
    racks = racks or ("r1",)
    yield from started(KafkaCluster(racks=racks, brokers=len(racks), version=KAFKA, config=SECURED))


def client_properties(user: str, password: str | None = None) -> dict[str, str]:
    """What a user of the secured cluster writes into --command-config."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{user}" password="{password or USERS[user]}";',
    }


class Servers(Protocol):
    """A cluster that clients connect to, embedded or of Java processes."""

    @property
    def bootstrap_servers(self) -> str: ...


def create_topic(
    cluster: Servers,
    name: str,
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    assignment: list[list[int]] | None = None,
    config: dict[str, str] | None = None,
    seconds: float = WITHIN_SECONDS,
) -> None:
    """By librdkafka, a second quicker than Kafka's tool; `assignment` lists each partition's replicas. Every broker lists it."""
    layout = {"replication_factor": replication_factor} if assignment is None else {"replica_assignment": assignment}
    wanted = NewTopic(name, len(assignment or ()) or partitions, config=config or {}, **layout)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([wanted], request_timeout=seconds)[name].result(seconds + 5)
    await_partitions(cluster, name, len(assignment or ()) or partitions)


def await_partitions(cluster: Servers, topic: str, partitions: int) -> None:
    """Until every broker that runs lists so many partitions with their leaders: each learns of a change in its own time."""
    servers = cluster.bootstrap_servers.split(",")
    eventually(
        lambda: all(_lists(address, topic, partitions) for address in servers), f"every broker lists topic {topic}"
    )


def _lists(address: str, topic: str, partitions: int) -> bool:
    # Imported only here: every test process imports this file.
    from tests.cluster.raw import response_to

    request = MetadataRequestData(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    try:
        response = response_to(address, ApiKey.METADATA, 8, request)
    except ConnectionRefusedError:
        return True
    found = response.topics[0].partitions
    return len(found) == partitions and all(one.leader_id >= 0 for one in found)


def records_in(cluster: Servers, topic: str) -> list[bytes]:
    """The values of all records of a topic, up to the high watermarks of when it is called."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        ends, values = consumer.end_offsets(partitions), []
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            values += [record.value for records in consumer.poll(timeout_ms=200).values() for record in records]
        return values
    finally:
        consumer.close()
