"""What Apache Kafka does about min.insync.replicas, which the embedded cluster's own rule follows."""

import pytest
from confluent_kafka import KafkaError, Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import create_topic


def said(bootstrap_servers: str, topic: str) -> KafkaError | None:
    answers: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "log_level": 0})
    producer.produce(topic, b"x", on_delivery=lambda error, _: answers.append(error))
    producer.flush(30)
    return answers[0]


@pytest.mark.kafka
def test_kafka_never_asks_for_more_replicas_than_a_partition_has(kafka: KafkaCluster) -> None:
    create_topic(kafka, "one-of-two", config={"min.insync.replicas": "2"})
    assert said(kafka.bootstrap_servers, "one-of-two") is None


def test_nor_does_the_embedded_cluster() -> None:
    with EmbeddedCluster(brokers=1) as cluster:
        cluster.create_topic("one-of-two", config={"min.insync.replicas": "2"})
        assert said(cluster.bootstrap_servers, "one-of-two") is None
