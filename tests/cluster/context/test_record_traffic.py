"""Bytes from rack to rack, by topic, client and path. Consumers that name their rack read there (KIP-392)."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.context import Flow, Path
from rackspan.testing import READS_IN_RACK
from tests.waiting import WITHIN_SECONDS

RECORDS = 40
RECORD_BYTES = 1_000

Read = Callable[[EmbeddedCluster, str | None, str], int]
"""(cluster, client.rack, client.id) to how many records were read."""


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """A partition led in r1 with its followers in r2 and r3, full of records that everybody has."""
    with EmbeddedCluster(racks=3, brokers=3, config=READS_IN_RACK) as started:
        started.create_topic("orders", replicas=[[1, 2, 3]])
        producer = Producer({"bootstrap.servers": started.bootstrap_servers, "client.id": "shop", "log_level": 0})
        for _ in range(RECORDS):
            producer.produce("orders", b"x" * RECORD_BYTES)
        assert producer.flush(WITHIN_SECONDS) == 0
        yield started


def by_librdkafka(cluster: EmbeddedCluster, rack: str | None, client: str) -> int:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": client, "group.id": "g", "log_level": 0}
    consumer = Consumer({**config, **({} if rack is None else {"client.rack": rack})})
    consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
    found = consumer.consume(RECORDS, 30)
    consumer.close()
    return len(found)


def by_kafka_python(cluster: EmbeddedCluster, rack: str | None, client: str) -> int:
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        client_id=client,
        auto_offset_reset="earliest",
        group_id=None,
        **({} if rack is None else {"client_rack": rack}),
    )
    consumer.assign([KafkaPythonPartition("orders", 0)])
    found = [next(consumer) for _ in range(RECORDS)]
    consumer.close()
    return len(found)


def fetched(cluster: EmbeddedCluster, client: str) -> dict[Flow, int]:
    return {
        flow: size
        for flow, size in cluster.traffic().items()
        if flow.path is Path.FETCH and (flow.client or "").startswith(client)
    }


def across_racks(flows: dict[Flow, int]) -> int:
    return sum(size for flow, size in flows.items() if flow.crosses_racks)


CLIENTS = pytest.mark.parametrize("read", [by_librdkafka, by_kafka_python])


@CLIENTS
def test_a_consumer_that_names_its_rack_reads_from_the_follower_there(cluster: EmbeddedCluster, read: Read) -> None:
    for rack in ("r1", "r2", "r3"):
        assert read(cluster, rack, f"reader-{rack}") == RECORDS
        flows = fetched(cluster, f"reader-{rack}")
        served = {(flow.topic, flow.from_rack, flow.to_rack, flow.from_follower) for flow in flows}
        assert served == {("orders", rack, rack, rack != "r1")}
        assert across_racks(flows) == 0
        assert sum(flows.values()) >= RECORDS * RECORD_BYTES


@CLIENTS
def test_a_consumer_without_a_rack_reads_from_the_leader(cluster: EmbeddedCluster, read: Read) -> None:
    assert read(cluster, None, "reader") == RECORDS
    served = {(flow.from_rack, flow.to_rack, flow.from_follower) for flow in fetched(cluster, "reader")}
    assert served == {("r1", None, False)}


@CLIENTS
def test_a_consumer_in_a_rack_without_a_replica_reads_from_another_rack(cluster: EmbeddedCluster, read: Read) -> None:
    assert read(cluster, "r9", "reader") == RECORDS
    assert across_racks(fetched(cluster, "reader")) >= RECORDS * RECORD_BYTES


def test_every_path_is_counted_apart(cluster: EmbeddedCluster) -> None:
    cluster.wait_for_isr()
    by_path: dict[Path, set[tuple[str | None, str | None, str | None]]] = {}
    for flow in cluster.traffic():
        by_path.setdefault(flow.path, set()).add((flow.client, flow.from_rack, flow.to_rack))
    assert by_path == {
        Path.PRODUCE: {("shop", None, "r1")},
        Path.REPLICATE: {(None, "r1", "r2"), (None, "r1", "r3")},
    }
    produced = sum(size for flow, size in cluster.traffic().items() if flow.path is Path.PRODUCE)
    replicated = [size for flow, size in cluster.traffic().items() if flow.path is Path.REPLICATE]
    assert replicated == [produced, produced]
