"""Mode strict before real Kafka with three controllers: the active one is killed, and the log begins with a snapshot."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from rackspan.client.brokers import addresses
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable
from rackspan.gateway.check import CheckLevel, check_cluster
from rackspan.gateway.config import parse_config
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.kafka_process import KafkaCluster
from tests.compat.gateway_leak import leak_cluster, observed
from tests.gateway.process import gateway_process
from tests.gateway.running import document
from tests.kafka_fixtures import create_topic, started
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

CONTROLLERS = (101, 102, 103)
ELECTION_SECONDS = 6.0
"""Until there is another one, and brokers have found it."""

T = TypeVar("T")


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    """Its controllers write a snapshot every few kilobytes, and keep few when they start."""
    snapshots = {
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.max.retention.bytes": "4000",
    }
    yield from started(leak_cluster(len(CONTROLLERS), **snapshots))


def read(cluster: KafkaCluster, part: Callable[[MetadataQuorum], T]) -> T:
    """Something of the metadata log, read from its beginning, once its controllers have elected one."""

    async def scenario() -> T:
        quorum = MetadataQuorum(addresses("controllers", cluster.bootstrap_controllers), Login(), cluster.cluster_id)
        try:
            await quorum.current()
            return part(quorum)
        finally:
            quorum.close()

    until = time.monotonic() + WITHIN_SECONDS
    while True:
        try:
            return asyncio.run(scenario())
        except ClusterUnreachable:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def active_controller(cluster: KafkaCluster) -> int:
    def leader(quorum: MetadataQuorum) -> int:
        assert quorum._quorum is not None
        return quorum._quorum.leader

    return read(cluster, leader)


@contextmanager
def without_the_active_controller(cluster: KafkaCluster, killed: list[int]) -> Iterator[float]:
    killed.append(active_controller(cluster))
    cluster.kill(*killed[-1:])
    try:
        yield ELECTION_SECONDS
    finally:
        cluster.restart(*killed[-1:])


@pytest.mark.soak
def test_nothing_leaks_and_nothing_is_lost_where_the_active_controller_is_killed(cluster: KafkaCluster) -> None:
    killed: list[int] = []
    outcome = observed(cluster, "strict", 2, partial(without_the_active_controller, cluster, killed))
    assert outcome.leaked == [0, 0]
    assert (outcome.failed, outcome.lost, outcome.duplicated, outcome.out_of_order) == (0, 0, 0, 0)
    assert outcome.acknowledged > 1000
    # The second was another one: the gateway had followed the election.
    assert len(set(killed)) == 2


@pytest.mark.soak
def test_without_any_controller_mode_verified_acknowledges_while_the_isr_is_whole(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    create_topic(cluster, "alone", assignment=[[1, 2, 3]])
    errors: list[object] = []
    lines = 'acknowledgements.mode = "verified"\n[topics.alone]\nmin.insync.racks = 2\n'
    with gateway_process(tmp_path, cluster.bootstrap_servers, lines) as gateway:
        producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "acks": "all", "log_level": 0})

        def send(count: int) -> None:
            for _ in range(count):
                producer.produce("alone", b"record", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(WITHIN_SECONDS) == 0

        send(1)
        cluster.kill(*CONTROLLERS)
        try:
            for _ in range(20):
                send(1)
        finally:
            cluster.restart(*CONTROLLERS)
    assert errors == [None] * 21


Partitions: TypeAlias = "dict[tuple[str, int], tuple[int, list[int]]]"
"""The leader and the ISR of each."""


def in_the_log(cluster: KafkaCluster) -> Partitions:
    image = read(cluster, lambda quorum: quorum.image)
    return {
        (name, number): (one.leader, sorted(one.isr))
        for name in image.topic_ids
        for number, one in image.topic(name).items()
    }


def reported(admin: AdminClient) -> Partitions:
    topics = admin.list_topics(timeout=WITHIN_SECONDS).topics
    return {
        (name, number): (one.leader, sorted(one.isrs))
        for name, topic in topics.items()
        for number, one in topic.partitions.items()
    }


def test_a_log_that_begins_with_a_snapshot_is_read(cluster: KafkaCluster, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(4):
        create_topic(cluster, f"many-{number}", partitions=60, replication_factor=3)
    # What is before the snapshots that are kept is dropped when a controller starts, and once a minute.
    cluster.kill(*CONTROLLERS)
    cluster.restart(*CONTROLLERS)
    caplog.set_level(logging.INFO)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    # The ISRs may change between the two readings, just after the controllers' start.
    eventually(lambda: in_the_log(cluster) == reported(admin), "the log and the brokers' metadata say the same")
    assert any("read a snapshot" in record.getMessage() for record in caplog.records)
    image = read(cluster, lambda quorum: quorum.image)
    assert {f"many-{number}" for number in range(4)} <= set(image.topic_ids)
    assert image.racks == {1: "r1", 2: "r2", 3: "r3"}


def results(cluster: KafkaCluster, controllers: str) -> dict[str, tuple[CheckLevel, str]]:
    tables = {
        "acknowledgements": {"mode": "strict"},
        "controllers": {"bootstrap": {"servers": controllers}},
    }
    config = parse_config(document(cluster.bootstrap_servers, **tables))
    return {one.check: (one.level, one.reason) for one in asyncio.run(check_cluster(config))}


def test_check_reads_the_metadata_log_in_mode_strict(cluster: KafkaCluster) -> None:
    active_controller(cluster)
    level, reason = results(cluster, cluster.bootstrap_controllers)["metadata log"]
    assert (level, reason.split(",")[0].rstrip("0123456789")) == (CheckLevel.OK, "read to offset ")
    level, reason = results(cluster, "127.0.0.1:1")["metadata log"]
    assert level is CheckLevel.FAILURE
    assert "controllers.bootstrap.servers" in reason
