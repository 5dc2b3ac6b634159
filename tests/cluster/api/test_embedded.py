"""EmbeddedCluster as a value in somebody's test: what it is made of, and that nothing of it is left."""

import asyncio
import gc
import socket
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.api_versions import ApiVersionsRequestData
from rackspan.wire.messages.group_members import HeartbeatRequestData
from tests.cluster.raw import request_frame
from tests.waiting import WITHIN_SECONDS


def test_brokers_go_to_racks_in_turn_and_listen_on_loopback() -> None:
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        assert [cluster.rack(broker) for broker in cluster.brokers] == ["r1", "r2", "r3", "r1", "r2", "r3"]
        assert cluster.brokers == (1, 2, 3, 4, 5, 6)
        assert {address.split(":")[0] for address in cluster.bootstrap_servers.split(",")} == {"127.0.0.1"}
        for address in cluster.bootstrap_servers.split(","):
            socket.create_connection(("127.0.0.1", int(address.split(":")[1])), WITHIN_SECONDS).close()


def test_racks_have_the_names_they_are_given_and_brokers_may_have_none() -> None:
    with EmbeddedCluster(racks=("east", None), brokers=3) as cluster:
        assert [cluster.rack(broker) for broker in cluster.brokers] == ["east", None, "east"]


def test_a_closed_cluster_leaves_no_listener_and_no_thread() -> None:
    before = threading.active_count()
    with EmbeddedCluster(racks=1, brokers=2) as cluster:
        ports = [int(address.split(":")[1]) for address in cluster.bootstrap_servers.split(",")]
    assert threading.active_count() == before
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), WITHIN_SECONDS)


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_request_that_arrives_as_the_cluster_closes_is_cancelled_without_a_warning() -> None:
    cluster = EmbeddedCluster(racks=1, brokers=1)
    cluster.start()
    host, port = cluster.address(1).split(":")
    with socket.create_connection((host, int(port)), WITHIN_SECONDS) as client:
        client.sendall(request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequestData()))
        assert client.recv(1), "the connection is accepted"
        loop, thread, sent = cluster._loop, cluster._thread, threading.Event()
        assert loop is not None
        assert thread is not None
        # Held until both are there, so that it reads the request in the turn in which it stops, as close() stops it.
        loop.call_soon_threadsafe(sent.wait)
        client.sendall(request_frame(ApiKey.HEARTBEAT, 0, HeartbeatRequestData(group_id="g")))
        loop.call_soon_threadsafe(loop.stop)
        sent.set()
        thread.join()
        cluster.close()
    gc.collect()


def test_several_clusters_live_side_by_side() -> None:
    with ThreadPoolExecutor(4) as pool:
        clusters = list(pool.map(lambda _: EmbeddedCluster(racks=2, brokers=2), range(4)))
        list(pool.map(EmbeddedCluster.start, clusters))
        assert len({cluster.bootstrap_servers for cluster in clusters}) == 4
        assert len({cluster.cluster_id for cluster in clusters}) == 4
        list(pool.map(EmbeddedCluster.close, clusters))


@pytest.mark.parametrize("wrong", [{"brokers": 0}, {"racks": 0}, {"racks": ()}])
def test_a_cluster_without_racks_or_brokers_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        EmbeddedCluster(**wrong)


class PausesAtItsSecondRun(asyncio.SelectorEventLoop):
    """A loop whose thread gets no processor between its first run, which starts the brokers, and its second."""

    runs = 0

    def run_forever(self) -> None:
        self.runs += 1
        if self.runs == 2:
            time.sleep(0.1)
        super().run_forever()


def test_a_cluster_is_running_as_soon_as_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "new_event_loop", PausesAtItsSecondRun)
        cluster = EmbeddedCluster()
        cluster.start()
    cluster.create_topic("orders", 1)
    cluster.close()


def test_a_cluster_that_is_not_running_raises_an_error() -> None:
    cluster = EmbeddedCluster()
    with pytest.raises(UsageError, match="not running"):
        cluster.wait_for_isr()
    with cluster, pytest.raises(UsageError, match="started already"):
        cluster.start()
    with pytest.raises(UsageError, match="not running"):
        cluster.lose_rack("r1")


def test_a_snapshot_equals_what_admin_clients_read() -> None:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("orders", 4, 2, config={"min.insync.racks": "2"})])["orders"].result(
            WITHIN_SECONDS
        )
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        producer.produce("orders", b"x" * 1000, partition=3)
        producer.flush(WITHIN_SECONDS)
        snapshot = cluster.snapshot()
        assert [(broker.id, broker.rack, broker.fenced) for broker in snapshot.brokers] == [
            (1, "r1", False), (2, "r2", False), (3, "r3", False),
        ]  # fmt: skip
        (topic,) = snapshot.topics
        assert topic.config["min.insync.racks"] == "2"
        described = admin.list_topics("orders", timeout=WITHIN_SECONDS).topics["orders"].partitions
        assert [list(row.replicas) for row in snapshot.partitions] == [described[index].replicas for index in range(4)]
        assert (snapshot.partitions.row(3).size_bytes or 0) > 1000


def test_partitions_under_min_insync_racks_are_counted_by_their_leaders() -> None:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("orders", 3, 3, config={"min.insync.racks": "2"})])["orders"].result(
            WITHIN_SECONDS
        )

        def under() -> int:
            return sum(one["rackspan_under_min_rack_isr_partitions"] for one in cluster.metrics().values())

        assert under() == 0
        cluster.lose_rack("r1")
        cluster.lose_rack("r2")
        assert set(cluster.metrics()) == {3}
        assert under() == 3
        cluster.restore_rack("r1")
        cluster.restore_rack("r2")
        cluster.wait_for_isr()
        assert under() == 0


def test_a_reset_counts_metrics_from_0() -> None:
    """With one cluster for the session, a test asserts what it caused itself, and its report has nothing of another one."""
    with EmbeddedCluster(racks=2, brokers=2) as cluster:
        cluster.create_topic("orders", replication_factor=2, config={"min.insync.racks": "2"})

        def failures() -> int:
            return sum(metrics["rackspan_rack_check_failures_total"] for metrics in cluster.metrics().values())

        cluster.lose_rack("r2")
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "retries": 0})
        producer.produce("orders", b"one")
        producer.flush(WITHIN_SECONDS)
        assert failures() == 1
        cluster.reset()
        assert failures() == 0
        assert cluster.status().metrics == ()


@pytest.mark.slow
def test_what_held_records_is_freed_when_they_are_deleted() -> None:
    """By Python's own account of its memory: what the system is given back depends on which pages are empty."""
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        _fill(cluster)
        cluster.reset()
        tracemalloc.start()
        try:
            before = _traced_bytes()
            _fill(cluster)
            held = _traced_bytes() - before
            cluster.reset()
            left = _traced_bytes() - before
        finally:
            tracemalloc.stop()
    assert held > 1_500_000
    assert left < held / 10


def _fill(cluster: EmbeddedCluster) -> None:
    """Many small batches, since what they hold besides their bytes is looked at too."""
    cluster.create_topic("big", partitions=3, replication_factor=3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "batch.num.messages": 1, "linger.ms": 0})
    for number in range(3_000):
        producer.produce("big", b"x" * 200, partition=number % 3)
    assert producer.flush(WITHIN_SECONDS) == 0


def _traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
