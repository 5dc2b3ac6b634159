"""What Apache Kafka does about min.insync.replicas, which the embedded cluster's own rule follows."""

import pytest
from confluent_kafka import KafkaError, Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import create_topic


def delivery_error(bootstrap_servers: str, topic: str) -> KafkaError | None:
    responses: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "log_level": 0})
    producer.produce(topic, b"x", on_delivery=lambda error, _: responses.append(error))
    producer.flush(30)
    return responses[0]


@pytest.mark.kafka
def test_kafka_never_requires_more_replicas_than_a_partition_has(kafka: KafkaCluster) -> None:
    create_topic(kafka, "one-of-two", config={"min.insync.replicas": "2"})
    assert delivery_error(kafka.bootstrap_servers, "one-of-two") is None


def test_nor_does_the_embedded_cluster() -> None:
    with EmbeddedCluster(brokers=1) as cluster:
        cluster.create_topic("one-of-two", config={"min.insync.replicas": "2"})
        assert delivery_error(cluster.bootstrap_servers, "one-of-two") is None
