"""Traffic of Apache Kafka beside the bytes that its brokers serve of the same logs, and those that they count."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient

from benchmarks._broker_bytes import BrokerCount, broker_counts
from rackspan import api
from rackspan.apply import reassignments
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.requests import metadata
from rackspan.kafka_process import KafkaCluster, console_tool
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.options import ClientOptions
from rackspan.model import TopicPartition
from rackspan.sources.live.traffic import read_traffic
from rackspan.traffic import Basis, Interval, TrafficPath
from tests.kafka_fixtures import create_topic, started
from tests.kafka_versions import KAFKA
from tests.sources.consumers import consumer, read_all
from tests.sources.live.test_cluster import as_described, snapshot, wait_until_whole
from tests.sources.test_advice_carried_out import foretold
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

PARTITIONS = 6
RACKS = ("r1", "r2", "r3")
SELECTOR = "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
MOST_BYTES = 64 << 20
DELETE_TOOL = "org.apache.kafka.tools.DeleteRecordsCommand"


def produce(cluster: KafkaCluster, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 20})
    for number in range(records):
        producer.produce(topic, bytes(800), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0
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


@pytest.fixture(scope="module")
def reading_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCluster, Path]]:
    """Three brokers in three racks whose replica selector changes, and their folder; the topic orders is in every rack."""
    folder = tmp_path_factory.mktemp("reading-kafka")
    for cluster in started(KafkaCluster(racks=RACKS, brokers=3, version=KAFKA, data_dir=folder)):
        create_topic(cluster, "orders", partitions=PARTITIONS, replication_factor=3)
        yield cluster, folder


def select_by_rack(cluster: KafkaCluster, folder: Path) -> None:
    """Set replica.selector.class of every broker, if it is not, and restart them in turn."""
    for broker in cluster.brokers:
        file = folder / f"node-{broker}.properties"
        if SELECTOR not in file.read_text():
            file.write_text(f"{file.read_text()}\n{SELECTOR}\n")
            cluster.stop(broker)
            cluster.restart(broker)
            wait_until_whole(cluster)


def elect_preferred(cluster: KafkaCluster) -> None:
    """Give each partition to its preferred leader: two of orders in each rack. Kafka does so itself every five minutes."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.elect_leaders(ElectionType.PREFERRED).result(WITHIN_SECONDS)
    eventually(
        lambda: all(one.leader == one.replicas[0] for one in as_described(snapshot(cluster)).values()),
        "preferred leaders lead",
    )


def is_undisturbed(passed: Interval, group_id: str) -> bool:
    """Whether everything could be read, and neither leaders moved meanwhile nor members at a reading, as where heartbeats are late.

    Bytes then come from two leaders, of which a reading has one, or are read twice by a member that joins again.
    """
    readings = (passed.before, passed.after)
    first, last = (list(map(int, reading.snapshot.partitions.leader)) for reading in readings)
    states = [group.state for reading in readings for group in reading.groups if group.group_id == group_id]
    return passed.unread == () and first == last and states == ["Stable", "Stable"]


@pytest.mark.rest
def test_the_advice_to_select_replicas_by_rack_saves_what_was_foretold(
    reading_kafka: tuple[KafkaCluster, Path],
) -> None:
    """A reader in r1, which names it: what brokers in other racks count to have sent is what crosses racks."""
    cluster, folder = reading_kafka

    def once() -> tuple[Interval, int]:
        elect_preferred(cluster)
        with consumer(cluster, "shop", "r1") as reader:
            produce(cluster, "orders", 600)
            read_all(reader, 600)
            before = broker_counts(cluster)

            def workload(_seconds: float) -> None:
                produce(cluster, "orders", 12_000)
                read_all(reader, 12_000)

            passed = read_traffic(ConnectionSettings(cluster.bootstrap_servers), 1.0, workload)
            sent = counts(broker_counts(cluster) - before, "BytesOutPerSec", "orders")
        return passed, sent["r2"] + sent["r3"]

    def measured() -> tuple[Interval, int]:
        return next(found for found in (once() for _ in range(3)) if is_undisturbed(found[0], "shop"))

    passed, before = measured()
    seconds = passed.seconds
    advice = api.advise(passed.after.snapshot, passed=passed)
    [at_home] = [each for each in advice if each.kind == "read-in-rack"]
    assert at_home.command == f"set {SELECTOR} on every broker, and restart them in turn"
    select_by_rack(cluster, folder)
    passed, after = measured()
    assert before > 6_000_000
    assert before - after == pytest.approx(foretold(advice, "read-in-rack", seconds), rel=0.1)
    assert [each.kind for each in api.advise(passed.after.snapshot, passed=passed) if each.kind == "read-in-rack"] == []


def test_bytes_of_each_path_are_those_that_the_brokers_count(reading_kafka: tuple[KafkaCluster, Path]) -> None:
    """Two groups read, one from leaders and one in its rack, while replicas of another topic are added."""
    cluster, folder = reading_kafka
    select_by_rack(cluster, folder)
    create_topic(cluster, "moving", partitions=PARTITIONS, replication_factor=1)
    produce(cluster, "moving", 6_000)
    with consumer(cluster, "near", "r1") as near, consumer(cluster, "far", None) as far:
        produce(cluster, "orders", 600)
        written = sum(near.get_watermark_offsets(Partition("orders", number))[1] for number in range(PARTITIONS))
        for reader in (near, far):
            read_all(reader, written)
        before = broker_counts(cluster)
        settings = ConnectionSettings(cluster.bootstrap_servers)

        def workload(_seconds: float) -> None:
            produce(cluster, "orders", 12_000)
            read_all(near, 12_000)
            read_all(far, 12_000)
            grow(settings)

        reading = read_traffic(settings, 1.0, workload)
        counted = broker_counts(cluster) - before
    assert reading.unread == ()
    sums = Counter[tuple[TrafficPath, str, str | None]]()
    for flow in reading.flows:
        link = flow.link
        assert flow.size_bytes is not None or link.topic.startswith("__")
        broker_rack = link.destination_rack if link.path is TrafficPath.PRODUCE else link.source_rack
        sums[link.path, link.topic, broker_rack] += flow.size_bytes or 0
    produced, read, copied, moved = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for rack in RACKS:
        produced[rack] = sums[TrafficPath.PRODUCE, "orders", rack]
        read[rack] = sum(sums[path, "orders", rack] for path in (TrafficPath.CONSUME, TrafficPath.FOLLOWER_FETCH))
        moved[rack] = sums[TrafficPath.REASSIGN, "moving", rack]
        copied[rack] = sum(
            size for (path, _, source), size in sums.items() if (path, source) == (TrafficPath.REPLICATE, rack)
        )
    assert produced == pytest.approx(counts(counted, "BytesInPerSec", "orders"), rel=0.01)
    assert read == pytest.approx(counts(counted, "BytesOutPerSec", "orders"), rel=0.05)
    assert moved == pytest.approx(counts(counted, "ReassignmentBytesOutPerSec", None), rel=0.01)
    # Brokers count what followers fetch of all topics together, with what a reassignment copies.
    assert copied + moved == pytest.approx(counts(counted, "ReplicationBytesOutPerSec", None), rel=0.01)
    # A reader in r1 has all of it there, of whichever leader.
    near_links = {flow.link for flow in reading.flows if flow.link.group == "near"}
    assert {(link.source_rack, link.basis) for link in near_links} == {("r1", Basis.DERIVED)}
    assert sum(moved.values()) > 4_000_000


def counts(counted: Counter[BrokerCount], name: str, topic: str | None) -> dict[str, int]:
    return {rack: counted[BrokerCount(rack, name, topic)] for rack in RACKS}


def grow(settings: ConnectionSettings) -> None:
    """Add a replica of each partition of the topic moving, on the broker after its only one."""
    with ClusterConnection(settings) as connection:
        [topic] = connection.run(metadata, connection, ("moving",)).topics
        placed = {part.partition_index: part.leader_id for part in topic.partitions}
        targets = {TopicPartition("moving", part): (leader, leader % 3 + 1) for part, leader in placed.items()}
        connection.run(reassignments.alter, connection, targets)

    def is_done() -> bool:
        with ClusterConnection(settings) as connection:
            [topic] = connection.run(metadata, connection, ("moving",)).topics
            return all(len(part.isr_nodes) == 2 for part in topic.partitions)

    eventually(is_done, "every partition has its second replica")
