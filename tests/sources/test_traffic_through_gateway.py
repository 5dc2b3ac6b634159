"""Traffic through a gateway: its rows are measured, and equal what the brokers behind it counted."""

from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.sources.gateway_counters import counting
from rackspan.sources.live.traffic import read_traffic
from rackspan.testing import READS_IN_RACK
from rackspan.traffic import Basis, TrafficPath
from tests.gateway.process import free_ports, gateway_process
from tests.sources.consumers import consumer, read_all
from tests.waiting import WITHIN_SECONDS, eventually

RECORDS = 3000
RECORD_BYTES = 700


def produce(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "shop", "log_level": 0, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce("orders", bytes(RECORD_BYTES), partition=number % 6)
        producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0


@pytest.mark.slow
def test_rows_of_clients_behind_a_gateway_are_measured(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/metrics"
    lines = f'acknowledgements.mode = "off"\nlisten.http = "127.0.0.1:{port}"\n[readers]\nrack = "r2"\n'
    with (
        EmbeddedCluster(racks=3, brokers=6, config=READS_IN_RACK) as cluster,
        gateway_process(tmp_path, cluster.bootstrap_servers, lines) as gateway,
    ):
        cluster.create_topic("orders", partitions=6)
        counted = counting([url])

        def round_trip(bytes_before: int) -> None:
            produce(gateway.bootstrap_servers)
            read_all(reader, RECORDS)
            # Gateways count bytes within five seconds of passing.
            least = bytes_before + 2 * RECORDS * RECORD_BYTES
            eventually(lambda: sum(counted().values()) >= least, "the gateway has counted")

        with consumer(gateway, "search", None) as reader:
            round_trip(0)
            before, so_far = Counter(cluster.traffic()), sum(counted().values())
            settings = ConnectionSettings(cluster.bootstrap_servers)
            reading = read_traffic(settings, 1.0, lambda _: round_trip(so_far), counters=[url])
            passed = Counter(cluster.traffic()) - before
    flows = [flow for flow in reading.flows if flow.link.topic == "orders"]
    measured = Counter[tuple[str | None, ...]]()
    for flow in flows:
        if flow.link.basis is Basis.MEASURED:
            measured[flow.link.path, flow.link.source_rack, flow.link.destination_rack] += flow.size_bytes or 0
    fetched = sum(size for flow, size in passed.items() if flow.path == "fetch" and flow.topic == "orders")
    replicated = sum(size for flow, size in passed.items() if flow.path == "replicate" and flow.topic == "orders")
    read = sum(size for (path, *_), size in measured.items() if path != TrafficPath.PRODUCE)
    written = sum(size for (path, *_), size in measured.items() if path == TrafficPath.PRODUCE)
    assert read == pytest.approx(fetched, rel=0.01)
    assert written == pytest.approx(replicated / 2, rel=0.01)
    # The gateway names its rack in fetches, and writes go to leaders in all racks.
    assert {racks for path, *racks_ in measured if path != TrafficPath.PRODUCE for racks in [tuple(racks_)]} == {
        ("r2", "r2")
    }
    assert {source for path, source, _ in measured if path == TrafficPath.PRODUCE} == {"r2"}
    estimated = sum(
        flow.size_bytes or 0
        for flow in flows
        if flow.link.path is TrafficPath.PRODUCE and flow.link.basis is Basis.ESTIMATED
    )
    assert estimated < 0.01 * written
