"""Topics filled by librdkafka, and their records as librdkafka's consumer reads them."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.kafka_fixtures import Servers, await_partitions, create_topic
from tests.waiting import WITHIN_SECONDS

_END_OF_PARTITION = -191
"""librdkafka's _PARTITION_EOF."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, order=True)
class Row:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] | None


def created(cluster: Servers, partitions: int = 2, factor: int = 3, config: Mapping[str, str] | None = None) -> str:
    """A topic under a name of its own."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    # The records are years old, and a real Kafka would delete them within minutes.
    kept = {"retention.ms": "-1", **(config or {})}
    create_topic(cluster, name, partitions=partitions, replication_factor=factor, config=kept)
    return name


def deleted(cluster: Servers, topic: str) -> None:
    """Until no broker lists it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic], operation_timeout=30)[topic].result(WITHIN_SECONDS)
    await_partitions(cluster, topic, 0)


def produced(servers: str, topic: str, count: int, codec: str = "none", *, partitions: int = 2, first: int = 0) -> None:
    """Records with and without key, value and headers, in batches of some hundreds."""
    producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 20})
    for number in range(first, first + count):
        headers: Any = [("source", b"test"), ("empty", None)] if number % 5 == 0 else None
        producer.produce(
            topic,
            key=None if number % 7 == 0 else b"k%d" % (number % 50),
            value=None if number % 11 == 0 else b"v%d " % number * (number % 40),
            partition=number % partitions,
            headers=headers,
            timestamp=1_700_000_000_000 + number,
        )
    assert producer.flush(WITHIN_SECONDS) == 0


def transaction(servers: str, topic: str, values: Sequence[bytes], *, commit: bool, partitions: int = 2) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % partitions)
    producer.flush(WITHIN_SECONDS)
    producer.commit_transaction(30) if commit else producer.abort_transaction(30)


def consumed(servers: str, topic: str, partitions: int = 2, *, committed: bool = False) -> list[Row]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reference",
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    rows, ended = [], 0
    while ended < partitions:
        # It waits until there are a thousand, or for the time given.
        for message in consumer.consume(1000, 0.2):
            if (error := message.error()) is not None:
                if error.code() != _END_OF_PARTITION:
                    raise KafkaException(error)
                ended += 1
                continue
            rows.append(_row(message))
    consumer.close()
    return sorted(rows, key=lambda row: (row.partition, row.offset))


def _row(message: Any) -> Row:
    headers = message.headers()
    return Row(
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        message.timestamp()[1],
        tuple(headers) if headers else None,
    )
