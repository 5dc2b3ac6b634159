"""Changes to the embedded cluster and to a real Kafka that checks rights, judged by what a reader sees afterwards."""

from collections.abc import Iterator
from typing import TypeAlias

import pytest

from rackspan.apply import alter_topic_configs, create_partitions, create_topic
from rackspan.client import requests
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized
from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import client_properties
from tests.waiting import eventually

Served: TypeAlias = EmbeddedCluster | KafkaCluster


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)], scope="module")
def one_broker(request: pytest.FixtureRequest) -> Iterator[Served]:
    """One broker, 1, that has the user admin or takes anybody."""
    if request.param == "kafka":
        yield request.getfixturevalue("secured_kafka")
        return
    with EmbeddedCluster(racks=1, brokers=1) as cluster:
        yield cluster


def connection(cluster: Served, user: str | None = "admin") -> ClusterConnection:
    properties = {} if user is None or isinstance(cluster, EmbeddedCluster) else client_properties(user)
    return ClusterConnection(ConnectionSettings(cluster.bootstrap_servers, properties, 30.0))


def shown_replicas(cluster: Served, topic: str, user: str | None = "admin") -> list[tuple[int, ...]]:
    """Replicas of each partition as the cluster's metadata have them."""
    with connection(cluster, user) as client:
        metadata = client.run(requests.metadata, client)
    found = {one.name: one for one in metadata.topics}
    rows = sorted(found[topic].partitions, key=lambda row: row.partition_index) if topic in found else []
    return [tuple(row.replica_nodes) for row in rows]


def min_insync(cluster: Served, topic: str, user: str | None = "admin") -> str:
    with connection(cluster, user) as client:
        return client.run(requests.topic_configs, client, [topic]).values[topic]["min.insync.replicas"]


def test_a_topic_is_created_extended_and_configured(one_broker: Served) -> None:
    with connection(one_broker) as admin:
        create_topic(admin, "changed", [[1], [1]], {"min.insync.replicas": "2", "retention.ms": "1000"})
        create_partitions(admin, "changed", 3, [[1]])
        assert min_insync(one_broker, "changed") == "2"
        alter_topic_configs(admin, {"changed": {"min.insync.replicas": "3"}})
        # What every broker shows is shown to the next reader at once.
        assert min_insync(one_broker, "changed") == "3"
    assert shown_replicas(one_broker, "changed") == [(1,), (1,), (1,)]


@pytest.mark.kafka
def test_kafka_3_takes_the_same_requests(kafka3: KafkaCluster) -> None:
    with connection(kafka3, None) as anybody:
        create_topic(anybody, "changed", [[2, 1]], {})
        create_partitions(anybody, "changed", 3, [[1, 2], [2, 1]])
        alter_topic_configs(anybody, {"changed": {"min.insync.replicas": "2"}})
    eventually(
        lambda: shown_replicas(kafka3, "changed", None) == [(2, 1), (1, 2), (2, 1)], "every broker shows the partitions"
    )
    assert min_insync(kafka3, "changed", None) == "2"


def test_kafkas_own_words_come_with_what_was_not_done(one_broker: Served) -> None:
    with connection(one_broker) as admin:
        create_topic(admin, "standing", [[1]], {})
        with pytest.raises(
            ClusterRequestFailed, match=r"^topic standing was not created: Topic 'standing' already exists"
        ):
            create_topic(admin, "standing", [[1]], {})
        with pytest.raises(ClusterRequestFailed, match=r"^topic nowhere was not created: .*broker 9"):
            create_topic(admin, "nowhere", [[9]], {})
        with pytest.raises(ClusterRequestFailed, match=r"^topic standing got no partitions: .*1 partition"):
            create_partitions(admin, "standing", 1, [])
        with pytest.raises(ClusterRequestFailed, match=r"^topic absent got no partitions: "):
            create_partitions(admin, "absent", 2, [[1]])
    assert (shown_replicas(one_broker, "standing"), shown_replicas(one_broker, "nowhere")) == ([(1,)], [])


def test_one_refused_topic_leaves_all_configs_as_they_were(one_broker: Served) -> None:
    with connection(one_broker) as admin:
        create_topic(admin, "first", [[1]], {"min.insync.replicas": "1"})
        with pytest.raises(ClusterRequestFailed, match=r"^configs of topic second were not changed: "):
            alter_topic_configs(admin, {"first": {"min.insync.replicas": "4"}, "second": {"min.insync.replicas": "4"}})
    assert min_insync(one_broker, "first") == "1"


@pytest.mark.kafka
def test_a_missing_right_is_named(secured_kafka: KafkaCluster) -> None:
    with connection(secured_kafka, "nobody") as nobody:
        with pytest.raises(ClusterUnauthorized, match=r"needs Create on Topic secret or on Cluster; grant it with"):
            create_topic(nobody, "secret", [[1]], {})
        with pytest.raises(ClusterUnauthorized, match=r"needs Alter on Topic secret; grant it with"):
            create_partitions(nobody, "secret", 2, [[1]])
        with pytest.raises(ClusterUnauthorized, match=r"needs AlterConfigs on Topic secret; grant it with"):
            alter_topic_configs(nobody, {"secret": {"min.insync.replicas": "2"}})
    assert shown_replicas(secured_kafka, "secret") == []
