"""What real Kafka says of groups that are none of Kafka Streams, or none at all."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from rackspan.client.cluster import ConnectionSettings
from rackspan.errors import ClusterUnauthorized, ClusterUnreachable, InvalidGroup
from rackspan.kafka_process import KafkaCluster
from rackspan.sources.live.groups import read_group
from rackspan.streams import streams_group
from tests.kafka_fixtures import client_properties, create_topic
from tests.waiting import eventually

pytestmark = pytest.mark.kafka


@contextmanager
def consumer(cluster: KafkaCluster, group: str, **config: str) -> Iterator[Consumer]:
    """One that has its partitions."""
    one = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "client.rack": "r1", **config})
    one.subscribe(["groups-topic"])
    try:
        eventually(lambda: one.poll(0.2) is None and bool(one.assignment()), f"{group} has its partitions")
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def topic(kafka: KafkaCluster) -> None:
    create_topic(kafka, "groups-topic", partitions=2)


def refused(cluster: KafkaCluster, group: str) -> str:
    with pytest.raises(InvalidGroup) as refusal:
        streams_group(read_group(ConnectionSettings(cluster.bootstrap_servers), group))
    return str(refusal.value)


def test_a_group_that_does_not_exist_is_described_as_dead(kafka: KafkaCluster) -> None:
    assert (
        refused(kafka, "nobody") == "group nobody: Group nobody not found; see kafka-groups --list for those there are"
    )


def test_kafka_3_says_it_with_a_state(kafka3: KafkaCluster) -> None:
    assert refused(kafka3, "nobody") == "group nobody: not found; see kafka-groups --list for those there are"


@pytest.mark.usefixtures("topic")
def test_a_group_of_plain_consumers_is_named_by_its_assignor_and_then_is_empty(kafka: KafkaCluster) -> None:
    with consumer(kafka, "plain"):
        described = read_group(ConnectionSettings(kafka.bootstrap_servers), "plain")
        assert (described.state, described.protocol_type, len(described.members)) == ("Stable", "consumer", 1)
        assert refused(kafka, "plain") == (
            "group plain is not a Kafka Streams group: its assignor is 'range', not 'stream'; name one that is"
        )
    assert refused(kafka, "plain") == "group plain has no members; start the application and run again"


@pytest.mark.usefixtures("topic")
def test_a_group_of_the_new_consumer_protocol_is_reported_as_no_classic_one(kafka: KafkaCluster) -> None:
    with consumer(kafka, "modern", **{"group.protocol": "consumer"}):
        assert refused(kafka, "modern").startswith("group modern: Group modern is not a classic group; ")


def test_a_user_who_may_not_describe_the_group_gets_the_missing_right(secured_kafka: KafkaCluster) -> None:
    settings = ConnectionSettings(secured_kafka.bootstrap_servers, client_properties("nobody"))
    with pytest.raises(ClusterUnauthorized) as refusal:
        read_group(settings, "shop")
    assert str(refusal.value) == (
        "group shop may not be read: this user needs Describe on Group shop; grant it with kafka-acls.sh"
    )


def test_a_cluster_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(ClusterUnreachable):
        read_group(ConnectionSettings("127.0.0.1:1", timeout_seconds=5), "shop")
