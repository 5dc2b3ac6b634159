"""Transactions with librdkafka: isolation levels, fencing, timeouts, and the loss of a coordinator."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process.release.runtime import KafkaRuntime
from rackspan.model.ids import BrokerId
from tests.cluster.conftest import RunTool
from tests.cluster.test_groups import consumed
from tests.waiting import WITHIN_SECONDS

TRANSACTIONS_TOOL = "org.apache.kafka.tools.TransactionsCommand"

PRODUCER_TOOL = "org.apache.kafka.tools.ProducerPerformance"


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid4().hex[:8]}"


@pytest.fixture
def topic(cluster: EmbeddedCluster) -> str:
    made = unique("transacted")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(made, 2, 3)])[made].result(WITHIN_SECONDS)
    return made


def producer(cluster: EmbeddedCluster, transactional_id: str, **config: object) -> Producer:
    made = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": transactional_id, **config})
    made.init_transactions(WITHIN_SECONDS)
    return made


def write(producer: Producer, topic: str, *values: str) -> None:
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
    producer.flush(WITHIN_SECONDS)


def reader(cluster: EmbeddedCluster, topic: str, isolation: str = "read_committed") -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": unique("reader"),
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    made.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
    return made


def values(consumer: Consumer, count: int) -> list[bytes]:
    return sorted(message.value() or b"" for message in consumed(consumer, count))


def test_committed_records_are_read_and_aborted_ones_are_not(cluster: EmbeddedCluster, topic: str) -> None:
    writer = producer(cluster, unique("id"))
    for number, end in enumerate([writer.commit_transaction, writer.abort_transaction, writer.commit_transaction]):
        writer.begin_transaction()
        write(writer, topic, f"{number}-a", f"{number}-b")
        end(WITHIN_SECONDS)
    assert values(reader(cluster, topic), 4) == [b"0-a", b"0-b", b"2-a", b"2-b"]
    assert len(values(reader(cluster, topic, "read_uncommitted"), 6)) == 6


def test_read_committed_does_not_read_an_open_transaction(cluster: EmbeddedCluster, topic: str) -> None:
    writer = producer(cluster, unique("id"))
    writer.begin_transaction()
    write(writer, topic, "open")
    careful = reader(cluster, topic)
    assert careful.poll(1.0) is None
    writer.commit_transaction(WITHIN_SECONDS)
    assert values(careful, 1) == [b"open"]


def test_a_second_producer_fences_the_first_and_aborts_its_open_transaction(
    cluster: EmbeddedCluster, topic: str
) -> None:
    name = unique("id")
    first = producer(cluster, name)
    first.begin_transaction()
    write(first, topic, "undone")
    second = producer(cluster, name)
    second.begin_transaction()
    write(second, topic, "kept")
    second.commit_transaction(WITHIN_SECONDS)
    assert values(reader(cluster, topic), 1) == [b"kept"]
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(WITHIN_SECONDS)
    assert fenced.value.args[0].fatal()


def test_a_transaction_is_aborted_after_its_timeout(cluster: EmbeddedCluster, topic: str) -> None:
    slow = producer(cluster, unique("id"), **{"transaction.timeout.ms": 1_000})
    slow.begin_transaction()
    write(slow, topic, "late")
    other = producer(cluster, unique("id"))
    other.begin_transaction()
    write(other, topic, "in time")
    other.commit_transaction(WITHIN_SECONDS)
    assert values(reader(cluster, topic), 1) == [b"in time"]
    with pytest.raises(KafkaException):
        slow.commit_transaction(WITHIN_SECONDS)


@pytest.mark.parametrize(("end", "found"), [("commit", 5), ("abort", -1001)])
def test_offsets_are_committed_with_the_transaction(cluster: EmbeddedCluster, topic: str, end: str, found: int) -> None:
    group = unique("group")
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    writer = producer(cluster, unique("id"))
    writer.begin_transaction()
    write(writer, topic, "result")
    metadata = consumer.consumer_group_metadata()
    writer.send_offsets_to_transaction([TopicPartition(topic, 0, 5)], metadata, WITHIN_SECONDS)
    ends: dict[str, Callable[[float], object]] = {
        "commit": writer.commit_transaction,
        "abort": writer.abort_transaction,
    }
    ends[end](WITHIN_SECONDS)
    assert consumer.committed([TopicPartition(topic, 0)], WITHIN_SECONDS)[0].offset == found
    consumer.close()


def test_a_transaction_survives_the_loss_of_its_coordinators_rack(cluster: EmbeddedCluster, topic: str) -> None:
    writer = producer(cluster, unique("id"))
    writer.begin_transaction()
    write(writer, topic, "before")
    lost = cluster.rack(BrokerId(1))
    cluster.lose_rack(lost)
    try:
        write(writer, topic, "during")
        writer.commit_transaction(WITHIN_SECONDS)
    finally:
        cluster.restore_rack(lost)
        cluster.wait_for_isr()
    assert values(reader(cluster, topic), 2) == [b"before", b"during"]


@pytest.mark.java
def test_the_java_producer_writes_in_transactions(cluster: EmbeddedCluster, runtime: KafkaRuntime, topic: str) -> None:
    runtime.run_tool(
        PRODUCER_TOOL,
        *("--producer-props", f"bootstrap.servers={cluster.bootstrap_servers}"),
        *("--topic", topic, "--num-records", "500", "--record-size", "100", "--throughput", "-1"),
        *("--transactional-id", unique("java"), "--transaction-duration-ms", "50"),
    )
    assert len(values(reader(cluster, topic), 500)) == 500


@pytest.mark.java
def test_kafka_transactions_lists_and_describes(cluster: EmbeddedCluster, run_tool: RunTool, topic: str) -> None:
    name = unique("id")
    writer = producer(cluster, name)
    writer.begin_transaction()
    write(writer, topic, "open")
    described = run_tool(TRANSACTIONS_TOOL, "describe", "--transactional-id", name)
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    assert name in run_tool(TRANSACTIONS_TOOL, "list")
    producers = run_tool(TRANSACTIONS_TOOL, "describe-producers", "--topic", topic, "--partition", "0")
    assert len(producers.splitlines()) == 2
    writer.abort_transaction(WITHIN_SECONDS)
