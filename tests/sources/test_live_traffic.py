"""Traffic that is derived from two readings, beside the bytes that the embedded cluster's brokers counted."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TypeAlias

import pytest
from confluent_kafka import Producer

from rackspan.apply import reassignments
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.model import TopicPartition
from rackspan.sources.live import cluster as live_cluster
from rackspan.sources.live import logs, traffic
from rackspan.sources.live.clients import ReadClients
from rackspan.sources.live.traffic import read_traffic
from rackspan.testing import READS_IN_RACK
from rackspan.traffic import Basis, ClusterLogs, Interval, TrafficPath
from rackspan.traffic.flows import READ_COMMITTED
from tests.sources.consumers import consumer, read_all
from tests.sources.test_broker_counters import GATEWAY, serving
from tests.waiting import WITHIN_SECONDS, eventually

Sums: TypeAlias = Counter[tuple[str | None, ...]]


def produce(cluster: EmbeddedCluster, records: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 5})
    for number in range(records):
        producer.produce("orders", bytes(500 + number % 300), partition=number % 6)
        producer.produce("payments", bytes(100), partition=number % 3)
        producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0


def reading(cluster: EmbeddedCluster, workload: Callable[[], None]) -> Interval:
    return read_traffic(ConnectionSettings(cluster.bootstrap_servers), 1.0, lambda _: workload())


def test_a_clock_that_is_set_back_between_the_readings_does_not_count(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time below zero between them would make a rate below zero, of which nothing is worth advice."""
    times = (datetime(2026, 11, 26, 12, tzinfo=UTC) - timedelta(hours=hours) for hours in count())
    for module in (live_cluster, logs):
        monkeypatch.setattr(module, "utc_now", lambda: next(times))
    assert 0 < reading(cluster, lambda: None).seconds < 60


def test_counters_span_as_long_as_the_logs(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large cluster takes long to read; a gateway's bytes of that time are no bytes of the time between the readings."""
    seconds, began = [0.0], datetime(2026, 11, 26, tzinfo=UTC)
    pages = {"/metrics": ""}

    def wait(more: float) -> None:
        seconds[0] += more
        pages["/metrics"] = GATEWAY.replace("} 70", f"}} {seconds[0] * 100:.0f}")

    def slow_logs(settings: ConnectionSettings, **_: object) -> ClusterLogs:
        wait(10)
        found = replace(logs.read_logs(settings), read_at=began + timedelta(seconds=seconds[0]))
        wait(5)
        return found

    def slow_clients(settings: ConnectionSettings) -> ReadClients:
        wait(20)
        return ReadClients((), {})

    monkeypatch.setattr(traffic, "read_logs", slow_logs)
    monkeypatch.setattr(traffic, "read_clients", slow_clients)
    with serving(pages) as url:
        wait(0)
        settings = ConnectionSettings(cluster.bootstrap_servers)
        passed = read_traffic(settings, 60.0, wait, counters=[f"{url}/metrics"])
    assert sum(passed.counted.values()) == 100 * passed.seconds


def derived(found: Interval, path: TrafficPath) -> Sums:
    sums = Sums()
    for flow in found.flows:
        if flow.link.path is path:
            assert flow.size_bytes is not None
            sums[flow.link.topic, flow.link.group, flow.link.source_rack, flow.link.destination_rack] += flow.size_bytes
    return sums


def counted(cluster: EmbeddedCluster, path: str) -> Sums:
    sums = Sums()
    for flow, size in cluster.traffic().items():
        if flow.path == path and size:
            sums[flow.topic, flow.client, flow.from_rack, flow.to_rack] += size
    return sums


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=6, config=READS_IN_RACK) as started:
        started.create_topic("orders", partitions=6)
        started.create_topic("payments", partitions=3)
        yield started


def test_replication_is_what_the_brokers_counted(cluster: EmbeddedCluster) -> None:
    before = counted(cluster, "replicate")

    def workload() -> None:
        produce(cluster, 3000)
        cluster.wait_for_isr()

    found = reading(cluster, workload)
    assert found.unread == ()
    expected = counted(cluster, "replicate") - before
    assert derived(found, TrafficPath.REPLICATE) == expected
    assert sum(expected.values()) > 3000 * 1000


@pytest.mark.slow
def test_each_path_of_groups_is_what_the_brokers_served_within_five_percent(cluster: EmbeddedCluster) -> None:
    with consumer(cluster, "near", "r1") as near, consumer(cluster, "far", None) as far:
        produce(cluster, 600)
        read_all(near, 600)
        read_all(far, 600)
        before = counted(cluster, "fetch")

        def workload() -> None:
            produce(cluster, 6000)
            read_all(near, 6000)
            read_all(far, 6000)

        found = reading(cluster, workload)
        passed = counted(cluster, "fetch") - before
    by_group = Counter[str | None]()
    for (_, client, *_), size in passed.items():
        by_group[client] += size
    local, across = derived(found, TrafficPath.FOLLOWER_FETCH), derived(found, TrafficPath.CONSUME)
    near_bytes = sum(size for (_, group, *_), size in (local + across).items() if group == "near")
    far_bytes = sum(size for (_, group, *_), size in across.items() if group == "far")
    assert near_bytes == pytest.approx(by_group["near"], rel=0.05)
    assert far_bytes == pytest.approx(by_group["far"], rel=0.05)
    # All that it reads is in its own rack, from followers or from leaders.
    assert {ends[2:] for ends in (local + across) if ends[1] == "near"} == {("r1", "r1")}
    bases = {flow.link.group: flow.link.basis for flow in found.flows if flow.link.group}
    assert bases == {"near": Basis.DERIVED, "far": Basis.ESTIMATED}
    assert {flow.link.assumption for flow in found.flows if flow.link.group == "near"} == {READ_COMMITTED}


@pytest.mark.slow
def test_a_group_that_catches_up_reads_what_it_commits_and_one_that_stands_still_is_not_known(
    cluster: EmbeddedCluster,
) -> None:
    with consumer(cluster, "late", "r1") as late, consumer(cluster, "stuck", "r1") as stuck:
        produce(cluster, 600)
        for reader in (late, stuck):
            read_all(reader, 600)
        produce(cluster, 6000)

        def workload() -> None:
            produce(cluster, 600)
            read_all(late, 6600)

        found = reading(cluster, workload)
    sizes: dict[str | None, list[int | None]] = {}
    for flow in found.flows:
        sizes.setdefault(flow.link.group, []).append(flow.size_bytes)
    assert sum(size or 0 for size in sizes["late"]) == pytest.approx(6600 * 660, rel=0.1)
    assert set(sizes["stuck"]) == {None}


def test_a_reassignment_is_what_the_brokers_copied(cluster: EmbeddedCluster) -> None:
    one, two, three, four, five, six = cluster.brokers
    cluster.create_topic("moving", replicas=[(one, two, three), (four, five, six)])
    moved, stuck = TopicPartition("moving", 0), TopicPartition("moving", 1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 5})
    for number in range(1000):
        producer.produce("moving", bytes(500 + number % 300), partition=number % 2)
    assert producer.flush(WITHIN_SECONDS) == 0
    cluster.wait_for_isr()
    before = counted(cluster, "replicate")

    def workload() -> None:
        # A broker that its leader cannot reach keeps one of the two under way; none of the other's are cut from each other.
        cluster.cut(four, one)
        targets = {moved: (one, two, five), stuck: (four, five, six, one, two)}
        with ClusterConnection(ConnectionSettings(cluster.bootstrap_servers)) as connection:
            connection.run(reassignments.alter, connection, targets)
        eventually(lambda: len(cluster.isr(*stuck)) == 4, "one of the two is in sync")
        eventually(lambda: cluster.isr(*moved) == set(targets[moved]), "the other is done")

    found = reading(cluster, workload)
    copied = derived(found, TrafficPath.REASSIGN)
    assert sum(copied.values()) > 500_000
    assert copied == counted(cluster, "replicate") - before
    assert derived(found, TrafficPath.REPLICATE) == Sums()
