"""A gateway process under load for a long time: brokers restarted, racks lost, connections churned, its config reloaded, workers killed.

RACKSPAN_GATEWAY_SOAK_SECONDS sets its length, 20 minutes by default.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from rackspan.cluster import EmbeddedCluster
from tests.gateway.load import Load
from tests.gateway.process import GatewayProcess, broker_ports, gateway_process
from tests.gateway.test_app import new_topic
from tests.gateway.test_process import kill_worker, megabytes, workers
from tests.kafka_fixtures import records_in
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("RACKSPAN_GATEWAY_SOAK_SECONDS", "1200"))
CONNECTIONS = 2000
PARTITIONS = 6
MOST_GROWTH_MB = 30.0
WORKERS = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=6, seed=7) as cluster:
        yield cluster


def kept(cluster: EmbeddedCluster, topic: str) -> list[tuple[int, int]]:
    pairs = (value.split(b":") for value in records_in(cluster, topic))
    return [(int(producer), int(number)) for producer, number in pairs]


def churn(gateway: GatewayProcess) -> None:
    """Two thousand connections: some idle, some with half a header, some with half a frame."""
    beginnings = cycle((b"", b"\0\0\0", b"\0\0\0\x40\0\0\0\x09\0\0\0\x01\0"))
    for first in range(0, CONNECTIONS, 200):
        links = [socket.create_connection(gateway.address(1 + first // 200 % 6), WITHIN_SECONDS) for _ in range(200)]
        for link, beginning in zip(links, beginnings, strict=False):
            # A client is turned away while its broker is not in the cluster.
            with suppress(ConnectionError):
                link.sendall(beginning)
        for link in links:
            link.close()


def repeated_or_reordered(records: list[tuple[int, int]]) -> list[str]:
    """One producer writes each partition in order, and its retries change nothing of that."""
    last: dict[int, int] = {}
    wrong = []
    for producer, number in records:
        before = last.get(producer, -1)
        if number <= before:
            wrong.append(f"producer {producer}: {number} after {before}")
        last[producer] = number
    return wrong


def test_nothing_is_lost_and_memory_is_flat(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    topic = new_topic(cluster.bootstrap_servers, partitions=PARTITIONS)
    lines = f"{broker_ports(6)}[topics.{topic}]\nmin.insync.racks = 2\n"
    with gateway_process(tmp_path, cluster.bootstrap_servers, lines, workers=WORKERS) as gateway:
        load = Load(gateway.bootstrap_servers, topic, producers=PARTITIONS, partitions=PARTITIONS, pause_seconds=0.01)
        racks = cycle(("r1", "r2", "r3"))
        restarts = cycle(cluster.brokers)
        until, survivor, before, rounds = time.monotonic() + SECONDS, 0, 0.0, 0
        try:
            while time.monotonic() < until:
                rounds += 1
                churn(gateway)
                broker = next(restarts)
                cluster.stop(broker)
                time.sleep(1)
                cluster.restart(broker)
                rack = next(racks)
                cluster.lose_rack(rack)
                time.sleep(2)
                cluster.restore_rack(rack)
                cluster.wait_for_isr()
                gateway.process.send_signal(signal.SIGHUP)
                time.sleep(1)
                if rounds == 2:
                    # One worker is killed once; the other is measured.
                    survivor = kill_worker(gateway)
                    eventually(lambda: "is started again" in gateway.log.read_text(), "the worker is missed")
                    eventually(lambda: len(workers(gateway)) == WORKERS, "two workers run")
                if rounds == 4:
                    before = megabytes(survivor)
        finally:
            load.stop()
        after = megabytes(survivor) if survivor else 0.0
        assert survivor in workers(gateway)
        assert gateway.log.read_text().count("was read again") >= rounds
    records = kept(cluster, topic)
    acknowledged = {(one.producer, one.number) for one in load.acknowledged}
    print(
        f"{rounds} rounds, {len(acknowledged)} acknowledged, {before:.1f} MB after four rounds, {after:.1f} MB at the end"
    )
    assert rounds > 5
    assert len(acknowledged) > 1000
    assert repeated_or_reordered(records) == []
    assert sorted(acknowledged - set(records)) == []
    assert after - before < MOST_GROWTH_MB
