"""Traffic of Apache Kafka beside the bytes that its brokers serve of the same logs."""

import json
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from rackspan.client.cluster import ConnectionSettings
from rackspan.kafka_process import KafkaCluster, console_tool
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.options import ClientOptions
from rackspan.model import TopicPartition
from rackspan.sources.live.traffic import read_traffic
from rackspan.traffic import Basis, Interval, TrafficPath
from tests.kafka_fixtures import create_topic
from tests.sources.live.test_cluster import wait_until_whole

pytestmark = pytest.mark.kafka

PARTITIONS = 6
MOST_BYTES = 64 << 20
DELETE_TOOL = "org.apache.kafka.tools.DeleteRecordsCommand"


def produce(cluster: KafkaCluster, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 20})
    for number in range(records):
        producer.produce(topic, bytes(800), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0
    wait_until_whole(cluster)


def served_bytes(cluster: KafkaCluster, topic: str) -> int:
    """Bytes of record batches, as the leaders serve them."""
    with SourceCluster(ClientOptions(cluster.bootstrap_servers)) as source:
        known = source.metadata([topic]).topics[topic]
        return sum(
            len(source.fetch(row.leader, known.topic_id, TopicPartition(topic, number), 0, MOST_BYTES)().records)
            for number, row in known.partitions.items()
        )


def by_path(passed: Interval, topic: str) -> Counter[TrafficPath]:
    sums = Counter[TrafficPath]()
    for flow in passed.flows:
        if flow.link.topic == topic:
            assert flow.size_bytes is not None
            sums[flow.link.path] += flow.size_bytes
    return sums


def test_produced_and_replicated_bytes_are_those_that_brokers_serve(kafka: KafkaCluster) -> None:
    create_topic(kafka, "traffic", partitions=PARTITIONS, replication_factor=3)
    produce(kafka, "traffic", 600)
    before = served_bytes(kafka, "traffic")
    settings = ConnectionSettings(kafka.bootstrap_servers)
    reading = read_traffic(settings, 1.0, lambda _: produce(kafka, "traffic", 12_000))
    assert reading.unread == ()
    passed = served_bytes(kafka, "traffic") - before
    found = by_path(reading, "traffic")
    assert passed > 9_000_000
    assert found[TrafficPath.PRODUCE] == pytest.approx(passed, rel=0.01)
    assert found[TrafficPath.REPLICATE] == pytest.approx(2 * passed, rel=0.01)


def test_records_deleted_in_between_do_not_change_what_was_written(kafka: KafkaCluster, tmp_path: Path) -> None:
    """As Kafka Streams does with repartition topics: the first offset moves, and segments stay for a while."""
    create_topic(kafka, "deleted", partitions=PARTITIONS, replication_factor=3)
    produce(kafka, "deleted", 12_000)
    before = served_bytes(kafka, "deleted")
    produce(kafka, "deleted", 600)
    tenth = served_bytes(kafka, "deleted") - before

    def workload(_seconds: float) -> None:
        produce(kafka, "deleted", 600)
        offsets = [{"topic": "deleted", "partition": number, "offset": 2_100} for number in range(PARTITIONS)]
        file = tmp_path / "offsets.json"
        file.write_text(json.dumps({"version": 1, "partitions": offsets}))
        console_tool(kafka, DELETE_TOOL, "--offset-json-file", str(file))

    reading = read_traffic(ConnectionSettings(kafka.bootstrap_servers), 1.0, workload)
    assert by_path(reading, "deleted")[TrafficPath.PRODUCE] == pytest.approx(tenth, rel=0.05)
    bases = {flow.link.basis for flow in reading.flows if flow.link.path is TrafficPath.REPLICATE}
    assert bases == {Basis.DERIVED}
