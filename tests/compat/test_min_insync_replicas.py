"""What Apache Kafka does about min.insync.replicas, which the embedded cluster's own rule follows."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from rackspan.audit import RackPolicy
from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process import KafkaCluster
from rackspan.reassign import ListedPartition, ReassignmentDocument, lint
from rackspan.sources.live.cluster import read_cluster
from tests.kafka_fixtures import create_topic
from tests.kafka_tools import described, produce, reassign
from tests.waiting import WITHIN_SECONDS, eventually


def delivery_error(bootstrap_servers: str, topic: str, **config: int) -> KafkaError | None:
    responses: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "log_level": 0, **config})
    producer.produce(topic, b"x", on_delivery=lambda error, _: responses.append(error))
    producer.flush(WITHIN_SECONDS)
    return responses[0]


@pytest.mark.kafka
def test_kafka_never_requires_more_replicas_than_a_partition_has(kafka: KafkaCluster) -> None:
    create_topic(kafka, "one-of-two", config={"min.insync.replicas": "2"})
    assert delivery_error(kafka.bootstrap_servers, "one-of-two") is None


@pytest.mark.kafka
def test_a_minimum_above_the_factor_refuses_writes_once_replicas_are_added(kafka: KafkaCluster, tmp_path: Path) -> None:
    """One of one in sync, then one of three, of which two are required: refused until the first copy is in sync."""
    topic, target = "grows", {"grows_0": [1, 2, 3]}
    create_topic(kafka, topic, assignment=[[1]], config={"min.insync.replicas": "2"})
    # At 10 kB/s the copy takes half an hour: no machine is so slow that it ends before the produce below.
    produce(kafka, topic, 1, 20_000_000)
    snapshot = read_cluster(ConnectionSettings(kafka.bootstrap_servers, {}, 30.0)).snapshot
    lists = ReassignmentDocument((ListedPartition(topic, 0, (1, 2, 3)),))
    assert "plan-intermediate-refuses-writes" in {one.constraint for one in lint(snapshot, RackPolicy(), lists)}
    reassign(kafka, tmp_path, "--execute", "--throttle", "10000", **target)
    refused = delivery_error(kafka.bootstrap_servers, topic, retries=0)
    assert refused is not None
    assert refused.code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert described(kafka)[topic, 0].isr == (1,)
    reassign(kafka, tmp_path, "--execute", "--additional", "--throttle", "100000000", **target)
    eventually(lambda: len(described(kafka)[topic, 0].isr) > 1, "no copy is in sync")
    assert delivery_error(kafka.bootstrap_servers, topic) is None
    eventually(lambda: not described(kafka)[topic, 0].adding, "the reassignment has not ended")
    reassign(kafka, tmp_path, "--verify")


def test_nor_does_the_embedded_cluster() -> None:
    with EmbeddedCluster(brokers=1) as cluster:
        cluster.create_topic("one-of-two", config={"min.insync.replicas": "2"})
        assert delivery_error(cluster.bootstrap_servers, "one-of-two") is None
