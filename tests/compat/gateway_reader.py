"""One consumer without a rack, for tests: prints partition and offset of every record it reads, until it is killed.

python -m tests.compat.gateway_reader librdkafka|kafka-python SERVERS TOPIC CLIENT_ID
"""

import sys
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from tests.waiting import WITHIN_SECONDS

AGE_MS = 2_000
"""metadata.max.age.ms of every client."""


def by_librdkafka(servers: str, topic: str, client_id: str) -> Iterator[tuple[int, int]]:
    ages = {"metadata.max.age.ms": 3 * AGE_MS, "topic.metadata.refresh.interval.ms": AGE_MS}
    config = {"bootstrap.servers": servers, "client.id": client_id, "group.id": client_id, "log_level": 0}
    consumer = Consumer({**config, **ages, "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, WITHIN_SECONDS).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    while True:
        for message in consumer.consume(1_000, 0.5):
            if message.error() is None:
                yield int(message.partition() or 0), int(message.offset() or 0)


def by_kafka_python(servers: str, topic: str, client_id: str) -> Iterator[tuple[int, int]]:
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        client_id=client_id,
        group_id=None,
        auto_offset_reset="earliest",
        metadata_max_age_ms=AGE_MS,
    )
    partitions = consumer.partitions_for_topic(topic) or ()
    consumer.assign([KafkaPythonPartition(topic, partition) for partition in partitions])
    while True:
        for records in consumer.poll(500).values():
            for record in records:
                yield record.partition, record.offset


READERS = {"librdkafka": by_librdkafka, "kafka-python": by_kafka_python}

if __name__ == "__main__":
    for partition, offset in READERS[sys.argv[1]](*sys.argv[2:]):
        print(partition, offset, flush=True)
