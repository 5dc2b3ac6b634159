"""kafka-python against the embedded cluster."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from rackspan.cluster import EmbeddedCluster
from tests.waiting import WITHIN_SECONDS


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    yield client
    client.close()


def topic_of(admin: KafkaAdminClient, partitions: int = 1) -> str:
    topic = f"kp-{uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name=topic, num_partitions=partitions, replication_factor=3)])
    return topic


def produced(cluster: EmbeddedCluster, topic: str, count: int, **config: object) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config)
    sent = [producer.send(topic, b"%d" % number) for number in range(count)]
    for future in sent:
        future.get(WITHIN_SECONDS)
    producer.close()


@pytest.mark.parametrize(
    "config", [{"acks": "all"}, {"acks": 1}, {"enable_idempotence": False}, {"compression_type": "gzip"}]
)
def test_what_is_produced_is_consumed(
    cluster: EmbeddedCluster, admin: KafkaAdminClient, config: dict[str, object]
) -> None:
    topic = topic_of(admin)
    produced(cluster, topic, 100, **config)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", group_id=None)
    consumer.assign([TopicPartition(topic, 0)])
    found = [int(next(consumer).value) for _ in range(100)]
    consumer.close()
    assert found == list(range(100))


def test_a_group_resumes_where_it_stopped(cluster: EmbeddedCluster, admin: KafkaAdminClient) -> None:
    topic = topic_of(admin, partitions=2)
    produced(cluster, topic, 50)
    found: list[int] = []
    for count in (20, 30):
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=f"g-{topic}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=1,
        )
        found += [int(next(consumer).value) for _ in range(count)]
        consumer.commit()
        consumer.close()
    assert sorted(found) == list(range(50))


def test_it_administers(cluster: EmbeddedCluster, admin: KafkaAdminClient) -> None:
    topic = topic_of(admin, partitions=3)
    produced(cluster, topic, 10)
    described = admin.describe_cluster()
    assert described["cluster_id"] == cluster.cluster_id
    assert {(broker["broker_id"], broker["rack"]) for broker in described["brokers"]} == {
        (broker, cluster.rack(broker)) for broker in cluster.brokers
    }
    (found,) = admin.describe_topics([topic])
    assert {partition["partition_index"]: set(partition["isr_nodes"]) for partition in found["partitions"]} == {
        index: cluster.isr(topic, index) for index in range(3)
    }
