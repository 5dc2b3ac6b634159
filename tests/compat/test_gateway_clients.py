"""Unmodified clients through a gateway before Apache Kafka: its console tools, three Python clients, and Kafka Streams.

Topics made by any of them are placed by the gateway's placer, min.insync.racks is a config as any other, and what is produced
to a guarded topic is consumed.
"""

import asyncio
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from rackspan.kafka_process import KafkaCluster
from tests.compat.streams_app import StreamsProcess
from tests.gateway.running import RunningGateway, running
from tests.kafka_fixtures import TOPIC_TOOL, create_topic
from tests.kafka_tools import CONFIG_TOOL, Described, described
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUP_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PLACER = "tests.gateway.handlers.last_broker:LastBroker"
LAST_BROKERS = (6, 5, 4)
"""What the placer gives every partition of three replicas: one in each rack, and never what Kafka would choose for all."""

VALUES = [b"%d" % number for number in range(200)]


@pytest.fixture(scope="module")
def gateway(kafka: KafkaCluster) -> Iterator[RunningGateway]:
    """Every topic requires two racks, unless it has a value of its own."""
    tables = {
        "acknowledgements": {"min": {"insync": {"racks": 2}}, "config": {"topic": f"configs-{uuid4().hex[:8]}"}},
        "placement": {"replica": {"placer": {"class": {"name": PLACER}}}},
    }
    with running(kafka.bootstrap_servers, **tables) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def run_tool(kafka: KafkaCluster, gateway: RunningGateway) -> Callable[..., str]:
    """Kafka's console tools of this release, connected to the gateway alone."""

    def run(main_class: str, *arguments: str, stdin: str | None = None) -> str:
        server = ("--bootstrap-server", gateway.bootstrap_servers)
        done = subprocess.run(
            kafka.runtime.command(main_class, *server, *arguments, log_level="error"),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WITHIN_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def of_topic(cluster: KafkaCluster, topic: str) -> list[Described]:
    """Its partitions, as Kafka's own tool describes them without the gateway."""
    return [one for (name, _), one in sorted(described(cluster).items()) if name == topic]


@pytest.mark.rest
def test_kafkas_own_tools(kafka: KafkaCluster, gateway: RunningGateway, run_tool: Callable[..., str]) -> None:
    topic = f"tools-{uuid4().hex[:8]}"
    run_tool(TOPIC_TOOL, "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "3")
    run_tool(TOPIC_TOOL, "--alter", "--topic", topic, "--partitions", "3")
    assert [one.replicas for one in of_topic(kafka, topic)] == [LAST_BROKERS] * 3
    through = run_tool(TOPIC_TOOL, "--describe", "--topic", topic)
    assert re.findall(r"Partition: (\d)\tLeader: \d\tReplicas: (\S+)", through) == [(str(n), "6,5,4") for n in range(3)]

    assert sources(run_tool, topic) == ("2", "STATIC_BROKER_CONFIG")
    run_tool(CONFIG_TOOL, "--alter", "--topic", topic, "--add-config", "min.insync.racks=3,retention.ms=86400000")
    output = run_tool(CONFIG_TOOL, "--describe", "--topic", topic)
    assert {"min.insync.racks=3", "retention.ms=86400000"} <= set(output.split())
    assert sources(run_tool, topic) == ("3", "DYNAMIC_TOPIC_CONFIG")

    lines = [value.decode() for value in VALUES]
    run_tool(CONSOLE_PRODUCER, "--topic", topic, "--request-required-acks", "all", stdin="\n".join(lines) + "\n")
    group = f"readers-{uuid4().hex[:8]}"
    output = run_tool(
        *(CONSOLE_CONSUMER, "--topic", topic, "--from-beginning", "--group", group),
        *("--max-messages", str(len(lines)), "--timeout-ms", "40000"),
    )
    assert sorted(re.findall(r"^\d+$", output, re.M)) == sorted(lines)
    lags = re.findall(
        rf"^{group} +{topic} +\d +\d+ +\d+ +(\d+)", run_tool(GROUP_TOOL, "--describe", "--group", group), re.M
    )
    assert lags == ["0"] * 3

    run_tool(CONFIG_TOOL, "--alter", "--topic", topic, "--delete-config", "min.insync.racks")
    assert sources(run_tool, topic) == ("2", "STATIC_BROKER_CONFIG")
    run_tool(TOPIC_TOOL, "--delete", "--topic", topic)
    eventually(lambda: of_topic(kafka, topic) == [], "the topic is deleted")


def sources(run_tool: Callable[..., str], topic: str) -> tuple[str, str]:
    """The value of min.insync.racks, and where the describing tool says it comes from."""
    output = run_tool(CONFIG_TOOL, "--describe", "--topic", topic, "--all")
    match = re.search(r"^ *min\.insync\.racks=(\S+) sensitive=false synonyms=\{(\w+):", output, re.M)
    assert match, output
    return match[1], match[2]


def by_librdkafka(servers: str, topic: str) -> Sequence[bytes | None]:
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "transactional.id": topic})
    producer.init_transactions(WITHIN_SECONDS)
    producer.begin_transaction()
    for value in VALUES:
        producer.produce(topic, value, on_delivery=lambda error, _: failed.append(error) if error else None)
    producer.commit_transaction(WITHIN_SECONDS)
    assert failed == []
    reading = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": servers, **reading})
    consumer.subscribe([topic])
    found: list[bytes | None] = []
    while len(found) < len(VALUES):
        message = consumer.poll(WITHIN_SECONDS)
        assert message is not None
        assert message.error() is None, message.error()
        found.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def by_kafka_python(servers: str, topic: str) -> Sequence[bytes]:
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    for sent in [producer.send(topic, value) for value in VALUES]:
        sent.get(WITHIN_SECONDS)
    producer.close()
    settings = {"auto_offset_reset": "earliest", "consumer_timeout_ms": WITHIN_SECONDS * 1000}
    consumer = KafkaConsumer(topic, bootstrap_servers=servers, group_id=topic, **settings)
    found = [next(consumer).value for _ in VALUES]
    consumer.close()
    return found


def by_aiokafka(servers: str, topic: str) -> Sequence[bytes]:
    async def through() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
            for sent in [await producer.send(topic, value) for value in VALUES]:
                await sent
        settings = {"group_id": topic, "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(topic, bootstrap_servers=servers, **settings) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(asyncio.wait_for(through(), WITHIN_SECONDS))


@pytest.mark.parametrize("client", [by_librdkafka, by_kafka_python, by_aiokafka])
def test_what_a_python_client_produces_it_consumes(
    kafka: KafkaCluster, gateway: RunningGateway, client: Callable[[str, str], Sequence[bytes | None]]
) -> None:
    topic = f"python-{uuid4().hex[:8]}"
    create_topic(gateway, topic, replication_factor=3)
    assert gateway.gateway.policies.requirement(topic, 6) is not None, "the topic is guarded"
    assert client(gateway.bootstrap_servers, topic) == VALUES


@pytest.mark.soak
def test_a_kafka_streams_application(kafka: KafkaCluster, gateway: RunningGateway, tmp_path: Path) -> None:
    """Its repartition and changelog topics are created, placed and guarded as those of any other client."""
    prefix = f"app-{uuid4().hex[:8]}-"
    for name in ("clicks", "orders", "customers", "kept"):
        create_topic(gateway, prefix + name, partitions=2, replication_factor=3)
    settings = {
        "application.id": prefix + "group",
        "bootstrap.servers": gateway.bootstrap_servers,
        "client.id": "only",
        "replication.factor": "3",
        "processing.guarantee": "exactly_once_v2",
        "commit.interval.ms": "200",
        "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
        "sources.prefix": prefix,
    }
    with StreamsProcess(tmp_path, settings) as process:
        eventually(lambda: process.tasks().state == "RUNNING", "the application runs")
        producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "acks": "all"})
        for value in VALUES:
            producer.produce(prefix + "clicks", value, key=b"k")
        producer.produce(prefix + "customers", b"-of-somebody", key=b"c")
        producer.produce(prefix + "orders", b"order", key=b"c")
        assert producer.flush(WITHIN_SECONDS) == 0
        reading = {"group.id": prefix, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        consumer = Consumer({"bootstrap.servers": gateway.bootstrap_servers, **reading})
        consumer.subscribe([prefix + "kept"])
        found: list[bytes | None] = []
        while len(found) < len(VALUES):
            message = consumer.poll(WITHIN_SECONDS)
            assert message is not None, f"{len(found)} of {len(VALUES)} records"
            assert message.error() is None, message.error()
            if message.key() == b"k":
                found.append(message.value())
        consumer.close()
        assert found == VALUES
    placed = {name: one.replicas for (name, _), one in described(kafka).items() if name.startswith(prefix + "group")}
    assert placed == dict.fromkeys(
        (f"{prefix}group-{name}" for name in ("counts-changelog", "counts-repartition", "customers-changelog")),
        LAST_BROKERS,
    )
