"""Bytes that three Python clients produce across racks, before and after, as the brokers count them; keys stay where they were."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaProducer

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.context import Path
from rackspan.producers.in_rack.aiokafka import InRackAIOKafkaProducer
from rackspan.producers.in_rack.confluent import InRackProducer
from rackspan.producers.in_rack.kafka_python import in_rack
from tests.waiting import WITHIN_SECONDS

RECORDS = 600
RECORD_BYTES = 1_000
RACK = "r2"

Record = tuple[bytes | None, int | None]
"""Key and partition."""

Send = Callable[[str, str, list[Record], str | None], None]
"""(servers, topic, records, rack or None): sends each record."""


def by_confluent(servers: str, topic: str, records: list[Record], rack: str | None) -> None:
    config: dict[str, Any] = {"bootstrap.servers": servers, "client.id": topic, "log_level": 0}
    # Otherwise librdkafka may send all of them to one partition, by chance one in the rack.
    config["sticky.partitioning.linger.ms"] = 0
    producer = Producer(config) if rack is None else InRackProducer(config, rack)
    for key, partition in records:
        producer.produce(topic, bytes(RECORD_BYTES), key, -1 if partition is None else partition)
    assert producer.flush(WITHIN_SECONDS) == 0


def by_kafka_python(servers: str, topic: str, records: list[Record], rack: str | None) -> None:
    options = {} if rack is None else in_rack(rack)
    producer = KafkaProducer(bootstrap_servers=servers, client_id=topic, **options)
    for key, partition in records:
        producer.send(topic, bytes(RECORD_BYTES), key=key, partition=partition)
    producer.flush(WITHIN_SECONDS)
    producer.close()


def by_aiokafka(servers: str, topic: str, records: list[Record], rack: str | None) -> None:
    async def send() -> None:
        config: dict[str, Any] = {"bootstrap_servers": servers, "client_id": topic}
        producer = AIOKafkaProducer(**config) if rack is None else InRackAIOKafkaProducer(rack, **config)
        await producer.start()
        for key, partition in records:
            await producer.send(topic, bytes(RECORD_BYTES), key=key, partition=partition)
        await producer.stop()

    asyncio.run(send())


CLIENTS = pytest.mark.parametrize("send", [by_confluent, by_kafka_python, by_aiokafka])


def share_across(cluster: EmbeddedCluster, topic: str) -> float:
    """The share of the bytes produced that left the producer's rack."""
    by_rack: Counter[str | None] = Counter()
    for flow, size in cluster.traffic().items():
        if flow.path is Path.PRODUCE and flow.topic == topic:
            by_rack[flow.to_rack] += size
    return 1 - by_rack[RACK] / by_rack.total()


@pytest.mark.slow
@CLIENTS
def test_records_without_a_key_stay_in_the_producers_rack(cluster: EmbeddedCluster, send: Send) -> None:
    for rack, most in ((None, 1.0), (RACK, 0.0)):
        topic = f"keyless-{send.__name__}-{rack}"
        cluster.create_topic(topic, partitions=6)
        send(cluster.bootstrap_servers, topic, [(None, None)] * RECORDS, rack)
        across = share_across(cluster, topic)
        assert across <= most
        assert rack is not None or across > 0.4, "two leaders of three are in other racks"


@CLIENTS
def test_records_with_a_key_or_a_partition_go_where_they_went(cluster: EmbeddedCluster, send: Send) -> None:
    records: list[Record] = [(f"key-{number}".encode(), None) for number in range(100)]
    records += [(None, number % 6) for number in range(100)]
    shares = []
    for rack in (None, RACK):
        topic = f"keyed-{send.__name__}-{rack}"
        cluster.create_topic(topic, replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]])
        send(cluster.bootstrap_servers, topic, records, rack)
        shares.append(log_ends(cluster, topic))
    assert shares[0] == shares[1]
    assert sum(shares[0]) == len(records)


@CLIENTS
def test_a_rack_without_leaders_changes_nothing(cluster: EmbeddedCluster, send: Send) -> None:
    topic = f"nowhere-{send.__name__}"
    cluster.create_topic(topic, replicas=[[1, 2, 3], [3, 1, 2]])
    send(cluster.bootstrap_servers, topic, [(None, None)] * RECORDS, RACK)
    assert min(log_ends(cluster, topic)) > 0


def log_ends(cluster: EmbeddedCluster, topic: str) -> list[int]:
    """Records by partition."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "ends", "log_level": 0})
    partitions = len(consumer.list_topics(topic, WITHIN_SECONDS).topics[topic].partitions)
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, at), 10)[1] for at in range(partitions)]
    consumer.close()
    return ends
