"""assert_reads_in_rack passes for groups that read in their racks, and fails with a line for each read that does not."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.testing import READS_IN_RACK, assert_reads_in_rack
from tests.waiting import WITHIN_SECONDS

RECORDS = 30


def test_the_config_is_kafkas() -> None:
    assert READS_IN_RACK == {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


@pytest.fixture
def near() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3, config=READS_IN_RACK) as cluster:
        yield filled(cluster)


def filled(cluster: EmbeddedCluster) -> EmbeddedCluster:
    """A partition led in each of three racks, with a replica in all of them."""
    cluster.create_topic("orders", replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    produce(cluster)
    return cluster


def produce(cluster: EmbeddedCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    for number in range(RECORDS):
        producer.produce("orders", bytes(1_000), partition=number % 3)
    assert producer.flush(WITHIN_SECONDS) == 0


@contextmanager
def reading(cluster: EmbeddedCluster, group: str, rack: str | None, client: str = "app") -> Iterator[Consumer]:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "client.id": client, "log_level": 0}
    named = {} if rack is None else {"client.rack": rack}
    consumer = Consumer({**config, **named, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    try:
        yield consumer
    finally:
        consumer.close()


def drain(consumer: Consumer) -> None:
    left = RECORDS
    while left:
        found = [message for message in consumer.consume(left, 30) if message.error() is None]
        assert found, "no record within 30 s"
        left -= len(found)


def failure(cluster: EmbeddedCluster, group: str) -> list[str]:
    with pytest.raises(AssertionError) as failed:
        assert_reads_in_rack(cluster, group)
    return [line.strip() for line in str(failed.value).splitlines()]


def test_a_group_that_reads_in_its_rack_passes_with_its_consumers_and_after_them(near: EmbeddedCluster) -> None:
    with reading(near, "shop", "r2") as consumer:
        drain(consumer)
        assert_reads_in_rack(near, "shop")
    assert_reads_in_rack(near, "shop")


def test_with_brokers_as_kafkas_are_by_default_it_fails_with_what_crossed() -> None:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        filled(cluster)
        with reading(cluster, "shop", "r2") as consumer:
            drain(consumer)
        first, *across, last = failure(cluster, "shop")
    assert first == "group shop does not read in its racks:"
    assert [line.split(" bytes ")[1] for line in sorted(across, key=lambda line: line[-2:])] == [
        "of orders from the leader in r1",
        "of orders from the leader in r3",
    ]
    assert all(line.startswith("client app in r2 read ") for line in across)
    assert last == "client.rack, config=READS_IN_RACK and a replica in its rack are needed"


def test_a_consumer_that_names_no_rack_does_not_read_in_it(near: EmbeddedCluster) -> None:
    with reading(near, "shop", None) as consumer:
        drain(consumer)
    assert any("client app without client.rack read" in line for line in failure(near, "shop"))


def test_a_group_that_has_read_nothing_does_not_pass(near: EmbeddedCluster) -> None:
    assert "none of its consumers has fetched a record" in failure(near, "shop")


def test_reads_of_other_groups_do_not_count(near: EmbeddedCluster) -> None:
    with reading(near, "shop", "r2") as consumer, reading(near, "audit", None, "auditor") as other:
        drain(consumer)
        drain(other)
    assert_reads_in_rack(near, "shop")
    assert len(failure(near, "audit")) > 2


def test_the_reads_of_groups_that_share_a_client_id_cannot_be_separated(near: EmbeddedCluster) -> None:
    with reading(near, "shop", "r2") as consumer, reading(near, "audit", "r3") as other:
        drain(consumer)
        drain(other)
    with pytest.raises(UsageError, match="client id 'app': clients of the groups audit, shop have it"):
        assert_reads_in_rack(near, "shop")


def test_reads_since_an_earlier_count_are_judged_alone(near: EmbeddedCluster) -> None:
    with reading(near, "shop", "r3") as consumer:
        drain(consumer)
    near.change_rack(3, "r1")
    assert_reads_in_rack(near, "shop")
    before = near.traffic()
    with reading(near, "shop", "r3") as consumer:
        produce(near)
        drain(consumer)
    with pytest.raises(AssertionError, match="in r3 read"):
        assert_reads_in_rack(near, "shop", since=before)
    with pytest.raises(AssertionError, match="none of its consumers"):
        assert_reads_in_rack(near, "shop", since=near.traffic())


def test_without_racks_nothing_is_read_in_one() -> None:
    with EmbeddedCluster(racks=(None,), brokers=1) as cluster:
        cluster.create_topic("orders", replicas=[[1], [1], [1]])
        produce(cluster)
        with reading(cluster, "shop", None) as consumer:
            drain(consumer)
        assert any("client app without client.rack read" in line for line in failure(cluster, "shop"))
