"""Advice on the embedded cluster, carried out: the bytes across racks fall by what it foretold."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from rackspan import api
from rackspan.advice import Advice
from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.model.client_networks import ClientNetworks
from rackspan.sources.live.traffic import read_traffic
from rackspan.traffic.json_format import MONTH_SECONDS
from tests.sources.consumers import consumer, read_all

RECORDS = 6000
PARTITIONS = 6


def produce(cluster: EmbeddedCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce("orders", bytes(600), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(30) == 0


def across(cluster: EmbeddedCluster, home: str | None = None) -> Counter[str]:
    """Bytes that crossed racks by path, as the brokers counted them; `home` is where clients without a rack are."""
    sums = Counter[str]()
    for flow, size in cluster.traffic().items():
        if flow.topic == "orders" and flow.from_rack != (flow.to_rack or home):
            sums[flow.path] += size
    return sums


def measured(
    cluster: EmbeddedCluster, readers: Sequence[Consumer], home: str | None = None
) -> tuple[list[Advice], Counter[str], float]:
    """What is advised after one round of the workload, the bytes that crossed racks in it, and its seconds."""
    produce(cluster)
    for reader in readers:
        read_all(reader, RECORDS)
    cluster.wait_for_isr()
    before = across(cluster, home)

    def workload(_seconds: float) -> None:
        produce(cluster)
        for reader in readers:
            read_all(reader, RECORDS)
        cluster.wait_for_isr()

    reading = read_traffic(ConnectionSettings(cluster.bootstrap_servers), 1.0, workload)
    networks = ClientNetworks({} if home is None else {"127.0.0.0/8": home})
    advice = api.advise(reading.after.snapshot, api.RackPolicy(), reading, networks)
    passed = across(cluster, home)
    passed.subtract(before)
    return advice, passed, reading.seconds


def foretold(advice: Sequence[Advice], kind: str, seconds: float) -> float:
    (size,) = [each.bytes_a_month for each in advice if each.kind == kind]
    assert size is not None
    return size * seconds / MONTH_SECONDS


def test_a_client_rack_saves_what_was_foretold() -> None:
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS)
        with consumer(cluster, "shop", None) as reader:
            advice, before, seconds = measured(cluster, [reader], home="r1")
        with consumer(cluster, "shop", "r1") as reader:
            done, after, _ = measured(cluster, [reader])
        assert before["fetch"] - after["fetch"] == pytest.approx(foretold(advice, "read-in-rack", seconds), rel=0.1)
        assert "client.rack=r1" in next(each.command for each in advice if each.kind == "read-in-rack")
        assert [each.kind for each in done if each.kind == "read-in-rack"] == []


def test_a_replica_in_each_rack_saves_what_was_foretold_copies_included(tmp_path: Path) -> None:
    places = {"a": "r2", "b": "r2", "c": "r3", "d": "r3", "e": "r1"}
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS, replication_factor=1)
        with ExitStack() as stack:
            readers = [stack.enter_context(consumer(cluster, group, rack)) for group, rack in places.items()]
            advice, before, seconds = measured(cluster, readers)
        (command,) = [each.command for each in advice if each.kind == "replica-in-rack"]
        factor = re.fullmatch(r"rackspan reassign plan --topic 'orders' --replication-factor (\d)", command)
        assert factor is not None
        servers = api.Cluster(cluster.bootstrap_servers, None, 30)
        snapshot = api.live_cluster(cluster.bootstrap_servers, None, 30).read().snapshot
        request = api.ReassignmentRequest(topics="orders", replication_factor=int(factor[1]))
        plan = api.plan_reassignment(snapshot, api.RackPolicy(), request)
        assert list(api.carry_out(servers, plan, tmp_path / "plan.journal"))
        with ExitStack() as stack:
            readers = [stack.enter_context(consumer(cluster, group, rack)) for group, rack in places.items()]
            _, after, _ = measured(cluster, readers)
        saved = sum(before.values()) - sum(after.values())
        assert saved == pytest.approx(foretold(advice, "replica-in-rack", seconds), rel=0.1)
