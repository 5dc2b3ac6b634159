"""Somebody's tests: `pip install . confluent-kafka pytest` in a checkout of rackspan, and pytest gives each test a Kafka cluster.

pytest -c /dev/null examples/test_orders_survive.py

-c leaves out the settings of rackspan's own tests.
"""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from rackspan.cluster import EmbeddedCluster
from rackspan.testing import closing, losing

pytestmark = pytest.mark.rackspan(racks=3, brokers=3, config={"min.insync.racks": "2"})


def place(cluster: EmbeddedCluster, order: str) -> bool:
    """The application under test: True once an order cannot be lost with a rack."""
    acknowledged: list[bool] = []
    config = {"bootstrap.servers": cluster.bootstrap_servers, "message.timeout.ms": 4000, "log_level": 0}
    with closing(Producer(config)) as producer:
        producer.produce("orders", order, on_delivery=lambda error, _: acknowledged.append(error is None))
        producer.flush(30)
    return acknowledged == [True]


def first_order(cluster: EmbeddedCluster) -> bytes | None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "shipping", "log_level": 0}
    # A consumer of librdkafka may never return from its close after a rack was lost.
    with closing(Consumer(config)) as consumer:
        consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
        message = consumer.poll(30)
    return None if message is None else message.value()


def test_an_order_survives_the_rack_of_its_leader(rackspan_cluster: EmbeddedCluster) -> None:
    rackspan_cluster.create_topic("orders")
    assert place(rackspan_cluster, "one book")
    leader = rackspan_cluster.leader("orders", 0)
    assert leader is not None
    with losing(rackspan_cluster, rackspan_cluster.rack(leader)):
        assert first_order(rackspan_cluster) == b"one book"


@pytest.mark.lose_rack("r1")
def test_with_one_rack_lost_orders_are_taken(rackspan_cluster: EmbeddedCluster) -> None:
    rackspan_cluster.create_topic("orders")
    assert place(rackspan_cluster, "one book")


def test_with_two_racks_lost_orders_are_refused_and_then_taken_again(rackspan_cluster: EmbeddedCluster) -> None:
    rackspan_cluster.create_topic("orders")
    with losing(rackspan_cluster, "r1", "r2"):
        assert not place(rackspan_cluster, "one book")
    assert place(rackspan_cluster, "one book")
