"""A client that writes all the time and records each acknowledgement, and one that reads everything back."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from rackspan.kafka_process import KafkaCluster
from tests.waiting import WITHIN_SECONDS

_PAUSE_SECONDS = 0.005


@dataclass
class Acknowledged:
    """The values that Kafka acknowledged, by partition; with acks=all each of them is a promise."""

    values: dict[int, set[bytes]] = field(default_factory=dict)

    def record(self, error: KafkaError | None, message: Message) -> None:
        partition, value = message.partition(), message.value()
        if error is None and partition is not None and value is not None:
            self.values.setdefault(partition, set()).add(value)

    def __len__(self) -> int:
        return sum(map(len, self.values.values()))


@contextmanager
def writing(cluster: KafkaCluster, topic: str, partitions: int, prefix: str) -> Iterator[Acknowledged]:
    """Two hundred records a second, round the partitions, with acks=all, until the block is left."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 5, "log_level": 0})
    acknowledged, is_over = Acknowledged(), threading.Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            value = f"{prefix}-{number}".encode()
            producer.produce(topic, value, partition=number % partitions, on_delivery=acknowledged.record)
            producer.poll(0)
            number += 1
            time.sleep(_PAUSE_SECONDS)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        thread.join()
        assert producer.flush(WITHIN_SECONDS) == 0


def lost(cluster: KafkaCluster, topic: str, acknowledged: Acknowledged) -> set[bytes]:
    """What was acknowledged and cannot be read."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "whoever",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    missing = {partition: set(values) for partition, values in acknowledged.values.items()}
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in missing])
    ended: set[int] = set()
    until = time.monotonic() + WITHIN_SECONDS
    while len(ended) < len(missing) and time.monotonic() < until:
        for message in consumer.consume(500, timeout=1.0):
            partition, value, error = message.partition(), message.value(), message.error()
            if partition is not None and error is None and value is not None:
                missing[partition].discard(value)
            elif partition is not None and error is not None and error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
    consumer.close()
    return set().union(*missing.values())
