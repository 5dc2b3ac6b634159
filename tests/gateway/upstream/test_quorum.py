"""The metadata log of real Kafka, read as an observer, beside what brokers report of the same cluster."""

import asyncio
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from rackspan.errors import ClusterRequestFailed
from rackspan.gateway.core.metadata_log import MetadataImage
from rackspan.gateway.upstream.broker_connection import Login
from rackspan.gateway.upstream.cluster import addresses
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import create_topic, eventually

pytestmark = pytest.mark.kafka


def read(cluster: KafkaCluster, cluster_id: str | None = None) -> MetadataImage:
    async def scenario() -> MetadataImage:
        quorum = MetadataQuorum(addresses("controllers", cluster.bootstrap_controllers), Login(), cluster_id)
        try:
            await quorum.current()
            # The second read begins where the first ended.
            return await quorum.current()
        finally:
            quorum.close()

    return asyncio.run(scenario())


def reported(cluster: KafkaCluster) -> dict[str, dict[int, tuple[int, list[int]]]]:
    """Leader and ISR of every partition as brokers report them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    return {
        name: {number: (one.leader, sorted(one.isrs)) for number, one in topic.partitions.items()}
        for name, topic in admin.list_topics(timeout=20).topics.items()
    }


def replayed(image: MetadataImage) -> dict[str, dict[int, tuple[int, list[int]]]]:
    return {
        name: {number: (one.leader, sorted(one.isr)) for number, one in image.topic(name).items()}
        for name in image.topic_ids
    }


def same(cluster: KafkaCluster) -> bool:
    return replayed(read(cluster)) == reported(cluster)


def test_three_controllers_confirm_what_brokers_report(kafka: KafkaCluster) -> None:
    name = f"quorum-{uuid4().hex[:8]}"
    create_topic(kafka, name, partitions=6, replication_factor=3)
    eventually(lambda: same(kafka), "the log has what brokers report")
    assert read(kafka).racks == {number: f"r{(number - 1) % 3 + 1}" for number in range(1, 7)}
    kafka.kill_broker(6)
    try:
        eventually(
            lambda: same(kafka) and not any(6 in one.isr for one in read(kafka).topic(name).values()), "6 is out"
        )
        assert read(kafka).racks[6] == "r3"
    finally:
        kafka.start_broker(6)


def test_kafka_3_is_read_as_well(kafka3: KafkaCluster) -> None:
    create_topic(kafka3, f"quorum-{uuid4().hex[:8]}", partitions=3, replication_factor=2)
    eventually(lambda: same(kafka3), "the log has what brokers report")


def test_controllers_of_another_cluster_are_refused(kafka3: KafkaCluster) -> None:
    with pytest.raises(ClusterRequestFailed, match="another cluster"):
        read(kafka3, "AAAAAAAAAAAAAAAAAAAAAA")
