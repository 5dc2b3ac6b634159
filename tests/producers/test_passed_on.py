"""What a guarded or rack-local producer passes on to the library it stands before, and what it gives back."""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaConsumer, TopicPartition

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import NotEnoughRacks, UsageError
from rackspan.producers import GuardedAIOKafkaProducer, GuardedKafkaProducer, GuardedProducer, aiokafka, kafka_python
from rackspan.producers.confluent import acknowledged_offset
from rackspan.producers.in_rack.aiokafka import InRackAIOKafkaProducer
from rackspan.producers.in_rack.confluent import InRackProducer
from rackspan.producers.in_rack.kafka_python import KafkaPythonPartitioner, in_rack
from rackspan.producers.in_rack.partitioner import InRackPartitioner
from rackspan.producers.verifier import RecordVerifier
from tests.waiting import WITHIN_SECONDS

Send = Callable[[EmbeddedCluster, str, dict[str, int]], None]

KEY = b"key-1"
"""Without a partition, every one of the libraries would send it to partition 0 of two."""


def by_confluent(cluster: EmbeddedCluster, topic: str, required: dict[str, int]) -> None:
    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}, required)
    producer.produce(topic, b"value", KEY, partition=1)
    assert producer.flush(WITHIN_SECONDS) == 0
    producer.close()


def by_kafka_python(cluster: EmbeddedCluster, topic: str, required: dict[str, int]) -> None:
    producer = GuardedKafkaProducer(required, bootstrap_servers=cluster.address(1))
    assert producer.send(topic, b"value", KEY, 1).result(WITHIN_SECONDS).partition == 1
    producer.close()


def by_aiokafka(cluster: EmbeddedCluster, topic: str, required: dict[str, int]) -> None:
    async def send() -> None:
        producer = GuardedAIOKafkaProducer(required, bootstrap_servers=cluster.bootstrap_servers)
        await producer.start()
        assert (await producer.send_and_wait(topic, b"value", KEY, 1)).partition == 1
        await producer.stop()

    asyncio.run(send())


@pytest.mark.parametrize("send", [by_confluent, by_kafka_python, by_aiokafka])
@pytest.mark.parametrize("racks", [1, 2])
def test_value_key_and_partition_reach_the_log(send: Send, racks: int, cluster: EmbeddedCluster) -> None:
    cluster.create_topic(topic := f"passed-on-{uuid4().hex[:8]}", replicas=[[1, 2, 3], [2, 3, 1]])
    send(cluster, topic, {topic: racks})
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    consumer.assign([TopicPartition(topic, 1)])
    consumer.seek_to_beginning()
    record = next(consumer)
    consumer.close()
    assert (record.offset, record.key, record.value) == (0, KEY, b"value")


@pytest.mark.parametrize("send", [by_confluent, by_kafka_python, by_aiokafka])
@pytest.mark.parametrize("racks", [1, 2])
def test_a_topic_is_read_and_verified_only_if_it_requires_more_than_one_rack(
    send: Send, racks: int, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic(topic := f"verified-{uuid4().hex[:8]}", replicas=[[1, 2, 3], [2, 3, 1]])
    before, verified, guarded = RecordVerifier.before, RecordVerifier.verified, list[tuple[Any, ...]]()

    async def counted_before(records: RecordVerifier, topic: str, partition: int | None) -> Any:
        guarded.append(("before", topic, partition))
        return await before(records, topic, partition)

    async def counted_verified(records: RecordVerifier, topic: str, partition: int, offset: int) -> Any:
        guarded.append(("verified", topic, partition))
        return await verified(records, topic, partition, offset)

    monkeypatch.setattr(RecordVerifier, "before", counted_before)
    monkeypatch.setattr(RecordVerifier, "verified", counted_verified)
    send(cluster, topic, {topic: racks})
    assert guarded == ([] if racks == 1 else [("before", topic, 1), ("verified", topic, 1)])


def test_a_poll_returns_how_many_reports_it_served(cluster: EmbeddedCluster) -> None:
    cluster.create_topic(topic := f"polled-{uuid4().hex[:8]}", replicas=[[1, 2, 3]])
    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}, {})
    producer.produce(topic, b"x")
    assert producer.poll(WITHIN_SECONDS) == 1
    producer.close()


@pytest.mark.parametrize(("only_errors", "reports"), [(False, [(None, "m"), ("e", "m")]), (True, [("e", "m")])])
def test_a_report_has_its_error_and_its_message(only_errors: bool, reports: list[tuple[Any, Any]]) -> None:
    config = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "delivery.report.only.error": only_errors}
    producer, reported = GuardedProducer(config, {}), list[tuple[Any, Any]]()
    report = producer._reporting(lambda error, message: reported.append((error, message)))
    assert report is not None
    report(None, "m")
    report("e", "m")
    producer._verifier.close()
    assert reported == reports


def test_a_callback_that_fails_is_logged_with_its_record(caplog: pytest.LogCaptureFixture) -> None:
    producer = GuardedProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, {})
    message = SimpleNamespace(topic=lambda: "orders", partition=lambda: 3)
    record, reported = object(), list[Any]()

    def fail(_error: object, _message: object) -> None:
        raise RuntimeError("a callback of the user")

    for on_delivery in (fail, lambda error, message: reported.append((error, message)), None):
        producer._unreported.add(record)
        with caplog.at_level(logging.ERROR):
            producer._report(record, on_delivery, message, None)
        assert producer._unreported == set()
    producer._verifier.close()
    assert [entry.getMessage() for entry in caplog.records] == ["orders-3: on_delivery failed"]
    assert reported == [(None, message)]


@pytest.mark.parametrize(("offset", "known"), [(0, 0), (7, 7), (-1001, -1001), (None, -1)])
def test_the_offset_of_a_report_is_that_of_its_message(offset: int | None, known: int) -> None:
    assert acknowledged_offset(SimpleNamespace(offset=lambda: offset)) == known


@pytest.mark.parametrize("module", [aiokafka, kafka_python])
def test_without_servers_the_guard_connects_where_the_library_does(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        module,
        "RecordVerifier",
        lambda servers, _, racks, seconds, identity: made.append((servers, racks, seconds, identity.value)),
    )
    for name in ("AIOKafkaProducer", "KafkaProducer", "VerifierThread"):
        monkeypatch.setattr(module, name, lambda *_, **__: SimpleNamespace(start=lambda: None), raising=False)
    producer = module.GuardedAIOKafkaProducer if module is aiokafka else module.GuardedKafkaProducer
    producer({})
    producer({"orders": 2}, verify_seconds=3.0, broker_identity="address")
    assert made == [("localhost", {}, 30.0, "proved"), ("localhost", {"orders": 2}, 3.0, "address")]


def test_the_time_to_verify_is_that_of_a_producer_of_confluent() -> None:
    config = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    producers = GuardedProducer(config, {}), GuardedProducer(config, {}, verify_seconds=3.0)
    assert [producer._verifier.records.seconds for producer in producers] == [30.0, 3.0]
    for producer in producers:
        producer.close()


def test_a_rack_local_producer_of_confluent_passes_on_its_options(cluster: EmbeddedCluster) -> None:
    cluster.create_topic(topic := f"options-{uuid4().hex[:8]}", replicas=[[1, 2, 3]])
    producer, delivered = (
        InRackProducer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}, "r1"),
        list[Any](),
    )
    producer.produce(topic, b"x", on_delivery=lambda _, message: delivered.append(message.value()))
    assert producer.flush(WITHIN_SECONDS) == 0
    assert delivered == [b"x"]


def test_a_record_with_a_key_is_left_to_the_other_partitioner_as_it_is() -> None:
    given: list[tuple[Any, ...]] = []

    def partition(*words: Any) -> int:
        given.append(words)
        return 7

    partitioner = KafkaPythonPartitioner("r1", others=SimpleNamespace(partition=partition))
    record = ("orders", "key", b"key", "value", b"value", None)
    assert partitioner.partition(*record) == 7
    assert given == [record]


def test_partitions_without_a_leader_that_is_known_are_in_no_rack_for_aiokafka() -> None:
    partitions = {at: SimpleNamespace(partition=at, leader=leader) for at, leader in enumerate((1, -1, 2, 9))}
    brokers = [SimpleNamespace(nodeId=1, rack="r1"), SimpleNamespace(nodeId=2, rack=None)]
    metadata = SimpleNamespace(brokers=lambda: brokers, _partitions={"orders": partitions})
    producer: Any = SimpleNamespace(_metadata=metadata)
    assert InRackAIOKafkaProducer._leader_racks(producer, "orders") == {0: "r1", 2: None}


def test_a_record_with_a_key_is_left_to_aiokafka_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Any, ...]] = []

    def partition(_producer: object, *words: Any) -> int:
        given.append(words)
        return 7

    monkeypatch.setattr(AIOKafkaProducer, "_partition", partition)
    producer = object.__new__(InRackAIOKafkaProducer)
    producer._closed = True  # It was never made, and would warn of that when it is collected.
    record = ("orders", None, "key", "value", b"key", b"value")
    assert producer._partition(*record) == 7
    assert given == [record]


@pytest.mark.parametrize(
    "made",
    [
        lambda skew: InRackProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "r1", skew_max=skew),
        lambda skew: KafkaPythonPartitioner("r1", skew_max=skew),
        lambda skew: in_rack("r1", skew_max=skew),
        lambda skew: InRackAIOKafkaProducer("r1", skew_max=skew),
    ],
    ids=["confluent", "kafka-python", "in_rack", "aiokafka"],
)
def test_a_bound_on_skew_is_passed_on_by_every_client(made: Callable[[float], object]) -> None:
    with pytest.raises(UsageError, match=r"^skew_max is 0\.5, and no partition can get less than an even share"):
        made(0.5)


def test_each_topic_of_kafka_python_has_its_own_leaders_and_bytes() -> None:
    brokers = [SimpleNamespace(node_id=1, rack="r1"), SimpleNamespace(node_id=2, rack="r2")]
    near = {"orders": 2, "payments": 5}
    partitions = {
        topic: {
            at: SimpleNamespace(partition_index=at, leader_id=1 if at == one else 2) for at in (*range(one), one, 9)
        }
        for topic, one in near.items()
    }
    partitions["payments"][7] = SimpleNamespace(partition_index=7, leader_id=-1)
    metadata: Any = SimpleNamespace(brokers=lambda: brokers, _partitions=partitions)
    partitioner = KafkaPythonPartitioner("r1", skew_max=100.0)
    chosen = [partitioner.partition(topic, None, None, "v", b"v", metadata) for topic in (*near, *near)]
    assert chosen == [2, 5, 2, 5]
    assert partitioner.partition("orders", None, None, None, None, metadata) == 2
    assert partitioner._in_rack._topics["orders"].sent_bytes == {2: 2}


def test_each_topic_of_aiokafka_has_its_own_leaders_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AIOKafkaProducer, "_partition", lambda _producer, _topic, partition, *_: partition)
    partitions = {
        "orders": {2: SimpleNamespace(partition=2, leader=1)},
        "payments": {5: SimpleNamespace(partition=5, leader=1)},
    }
    producer: Any = object.__new__(InRackAIOKafkaProducer)
    producer._closed = True  # As above.
    producer._in_rack = InRackPartitioner("r1", Random(1))
    brokers = [SimpleNamespace(nodeId=1, rack="r1")]
    producer._metadata = SimpleNamespace(brokers=lambda: brokers, _partitions=partitions)
    topics = ("orders", "payments", "orders", "unknown")
    assert [producer._partition(topic, None, None, "v", None, b"12345") for topic in topics] == [2, 5, 2, None]
    assert producer._partition("orders", None, None, None, None, None) == 2
    assert producer._in_rack._topics["orders"].sent_bytes == {2: 10}


def test_the_racks_are_counted_before_a_record_is_sent_to_its_partition() -> None:
    refused: list[tuple[str, int | None]] = []

    async def before(topic: str, partition: int | None) -> NotEnoughRacks:
        refused.append((topic, partition))
        return NotEnoughRacks("one rack is in sync")

    async def by_aiokafka() -> None:
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1")
        producer._producer._closed = True  # It was never started.
        producer._records.before = before  # type: ignore[method-assign]
        for partition in (1, None):
            with pytest.raises(NotEnoughRacks, match="one rack is in sync"):
                await producer.send_and_wait("orders", b"value", partition=partition)
        producer._records.close()

    asyncio.run(by_aiokafka())
    producer = GuardedProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, {"orders": 2})
    producer._verifier.records.before = before  # type: ignore[method-assign]
    reported = list[tuple[type, int | None]]()
    for partition in (1, None):
        producer.produce(
            "orders",
            b"value",
            partition=partition,
            on_delivery=lambda error, message: reported.append((type(error), message.partition())),
        )
    assert producer.flush(WITHIN_SECONDS) == 0
    producer.close()
    assert refused == [("orders", 1), ("orders", None)] * 2
    assert reported == [(NotEnoughRacks, 1), (NotEnoughRacks, None)]
