"""The metadata log of real Kafka, read as an observer, beside what brokers report of the same cluster; and controllers that are broken."""

import asyncio
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from rackspan.client.brokers import addresses
from rackspan.client.login import Login
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.gateway.upstream.quorum import TOPIC, TOPIC_ID, MetadataQuorum
from rackspan.kafka_process import KafkaCluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumResponseData,
    DescribeQuorumResponseListener,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
)
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponseData,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
    SnapshotId,
)
from tests.client.fake_broker import FakeBroker
from tests.kafka_fixtures import create_topic, eventually

SECONDS = 20.0
"""For a read that ends with an error, instead of one that never ends."""


def read(cluster: KafkaCluster, cluster_id: str | None = None) -> CommittedImage:
    async def scenario() -> CommittedImage:
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


def replayed(image: CommittedImage) -> dict[str, dict[int, tuple[int, list[int]]]]:
    return {
        name: {number: (one.leader, sorted(one.isr)) for number, one in image.topic(name).items()}
        for name in image.topic_ids
    }


def same(cluster: KafkaCluster) -> bool:
    return replayed(read(cluster)) == reported(cluster)


@pytest.mark.kafka
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


@pytest.mark.kafka
def test_kafka_3_is_read_as_well(kafka3: KafkaCluster) -> None:
    create_topic(kafka3, f"quorum-{uuid4().hex[:8]}", partitions=3, replication_factor=2)
    eventually(lambda: same(kafka3), "the log has what brokers report")


@pytest.mark.kafka
def test_controllers_of_another_cluster_are_refused(kafka3: KafkaCluster) -> None:
    with pytest.raises(ClusterRequestFailed, match="another cluster"):
        read(kafka3, "AAAAAAAAAAAAAAAAAAAAAA")


def refused(partition: FetchResponsePartitionData, image: CommittedImage) -> str:
    """The error of a read from a controller that responds with this to every Fetch, after `image` was read."""

    async def scenario() -> str:
        controller = FakeBroker()
        await controller.start()

        async def describe(_: object) -> DescribeQuorumResponseData:
            voters = [DescribeQuorumResponseReplicaState(replica_id=101)]
            quorum = DescribeQuorumResponsePartitionData(leader_id=101, leader_epoch=5, current_voters=voters)
            listener = DescribeQuorumResponseListener(name="CONTROLLER", host="127.0.0.1", port=controller.port)
            return DescribeQuorumResponseData(
                topics=[DescribeQuorumResponseTopicData(topic_name=TOPIC, partitions=[quorum])],
                nodes=[DescribeQuorumResponseNode(node_id=101, listeners=[listener])],
            )

        async def fetch(_: object) -> FetchResponseData:
            topic = FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
            return FetchResponseData(responses=[topic])

        controller.handles = {ApiKey.DESCRIBE_QUORUM: describe, ApiKey.FETCH: fetch}
        quorum = MetadataQuorum((("127.0.0.1", controller.port),), Login(), None)
        quorum.image = image
        try:
            async with asyncio.timeout(SECONDS):
                await quorum.current()
        except ClusterUnreachable as error:
            return str(error)
        finally:
            quorum.close()
            await controller.close()
        return "nothing"

    return asyncio.run(scenario())


def test_a_controller_whose_log_always_differs_is_reported() -> None:
    diverging = FetchResponsePartitionData(
        high_watermark=7, diverging_epoch=FetchResponseEpochEndOffset(epoch=1, end_offset=0)
    )
    # Once it is read again from its beginning.
    assert "controller 101 reports that its metadata log differs" in refused(diverging, CommittedImage(9, 4))


@pytest.mark.parametrize("end", [0, 8, 9])
def test_a_controller_that_offers_a_snapshot_of_what_was_read_is_reported(end: int) -> None:
    offer = FetchResponsePartitionData(high_watermark=20, snapshot_id=SnapshotId(end_offset=end, epoch=4))
    error = refused(offer, CommittedImage(9, 4))
    assert f"controller 101 offers a snapshot up to offset {end} to a reader at 9" in error
