"""`clients --counters`: a gateway's counters beside Kafka's rules, on the embedded cluster."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.testing import READS_IN_RACK
from tests.cli.conftest import Ran
from tests.gateway.process import free_ports, gateway_process
from tests.waiting import WITHIN_SECONDS

HOME, FAR = "home", "far"


@contextmanager
def reading(servers: str, client: str, stop: threading.Event) -> Iterator[None]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": client, "client.id": client, "log_level": 0, "auto.offset.reset": "earliest"}
    )  # fmt: skip
    consumer.subscribe(["orders"])

    def read() -> None:
        while not stop.is_set():
            consumer.poll(0.2)
        consumer.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def producing(servers: str, stop: threading.Event) -> Iterator[None]:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})

    def produce() -> None:
        while not stop.wait(0.05):
            for partition in range(3):
                producer.produce("orders", bytes(1000), partition=partition)
            producer.poll(0)
        producer.flush(WITHIN_SECONDS)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_a_client_that_the_gateway_brings_home_has_nothing_to_do(cli: Callable[..., Ran], tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/metrics"
    lines = f'acknowledgements.mode = "off"\nlisten.http = "127.0.0.1:{port}"\n[readers.clients]\nhome = "r2"\n'
    with EmbeddedCluster(racks=3, brokers=3, config=READS_IN_RACK) as cluster, gateway_process(tmp_path, cluster.bootstrap_servers, lines) as gateway:  # fmt: skip
        cluster.create_topic("orders", partitions=3)
        stop = threading.Event()
        servers = gateway.bootstrap_servers
        with reading(servers, HOME, stop), reading(servers, FAR, stop), producing(cluster.bootstrap_servers, stop):
            words = ("clients", "--bootstrap-server", cluster.bootstrap_servers, "-o", "json")
            document = cli(*words, "--counters", url, "--counters-seconds", "12").document
            unverified = cli(*words, "--group", HOME).document
            page = cli(*words[:-2], "--counters", url, "--counters-seconds", "6", "--group", HOME)
            nowhere = cli(*words, "--counters", f"http://127.0.0.1:{port}/healthz", "--counters-seconds", "1")
    members = {group["group"]: group["members"][0] for group in document["groups"]}
    assert members[HOME]["measured_cross_rack_bytes"] == 0
    assert members[HOME]["measured_bytes"] > 0
    # Without a rule nobody says where it is.
    assert members[FAR]["measured_cross_rack_bytes"] is None
    assert [(finding["group"], finding["cause"]) for finding in document["findings"]] == [(FAR, "no-client-rack")]
    assert unverified["groups"][0]["members"][0]["measured_bytes"] is None
    assert [finding["cause"] for finding in unverified["findings"]] == ["no-client-rack"]
    assert page.code == 0
    assert "watching for 6 s; --counters-seconds changes it" in page.err
    assert "verified by counters for 1 of 1 member" in page.out or "0.0%" in page.out
    assert nowhere.code == 1
    assert "see listen.http of the gateway's file" in nowhere.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--counters-seconds", "5"), "nothing is watched without --counters"),
        (("--counters", "gateway:1"), "expected a gateway's metrics"),
        (("--counters", "http://127.0.0.1:1/metrics"), "cannot be read"),
    ],
)
def test_counters_that_cannot_be_read_are_named(cli: Callable[..., Ran], words: tuple[str, ...], reason: str) -> None:
    with EmbeddedCluster(racks=2, brokers=2) as cluster:
        ran = cli("clients", "--bootstrap-server", cluster.bootstrap_servers, *words)
    assert ran.code == 1
    assert reason in ran.err
