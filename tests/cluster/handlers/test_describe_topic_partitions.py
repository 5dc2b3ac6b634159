"""DescribeTopicPartitions: pages of topics in the order of their names, and the leader's epoch."""

from collections.abc import Iterator
from typing import Any

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.topics import (
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestData,
    DescribeTopicPartitionsRequestTopicRequest,
)
from tests.cluster.raw import response_to


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=2, brokers=2, seed=4) as cluster:
        for name, partitions in (("b", 3), ("c", 1), ("a", 2)):
            cluster.create_topic(name, replicas=[[1, 2]] * partitions)
        yield cluster


def described(
    cluster: EmbeddedCluster, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None]:
    """The partitions of each topic in a page, and where the next page begins."""
    request = DescribeTopicPartitionsRequestData(
        topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response: Any = response_to(cluster.address(1), ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    following = response.next_cursor
    return (
        [(topic.name, [row.partition_index for row in topic.partitions]) for topic in response.topics],
        following and (following.topic_name, following.partition_index),
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6])
def test_pages_together_have_every_partition_once_in_order(cluster: EmbeddedCluster, limit: int) -> None:
    found, cursor = list[tuple[str, int]](), None
    for _ in range(10):
        page, cursor = described(cluster, limit=limit, cursor=cursor)
        partitions = [(name, partition) for name, rows in page for partition in rows]
        assert len(partitions) == limit or cursor is None
        found += partitions
        if cursor is None:
            break
    assert found == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_the_topics_that_are_named_are_described_from_the_cursor_on(cluster: EmbeddedCluster) -> None:
    assert described(cluster, "c", "a", "c") == ([("a", [0, 1]), ("c", [0])], None)
    assert described(cluster, "a", "b", cursor=("b", 1)) == ([("b", [1, 2])], None)
    assert described(cluster, "a", "b", limit=1, cursor=("b", 1)) == ([("b", [1])], ("b", 2))


def test_a_topic_that_there_is_not_has_an_error_and_no_partitions(cluster: EmbeddedCluster) -> None:
    request = DescribeTopicPartitionsRequestData(topics=[DescribeTopicPartitionsRequestTopicRequest(name="gone")])
    [topic] = response_to(cluster.address(1), ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request).topics
    assert (topic.error_code, topic.name, list(topic.partitions)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "gone", [])


def test_a_partition_has_its_leader_with_the_epoch_and_its_replicas(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("led", replicas=[[2, 1]])

    def row() -> Any:
        request = DescribeTopicPartitionsRequestData(topics=[DescribeTopicPartitionsRequestTopicRequest(name="led")])
        [topic] = response_to(cluster.address(1), ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request).topics
        assert topic.topic_id is not None
        [found] = topic.partitions
        return found

    before = row()
    assert (before.leader_id, before.leader_epoch, before.error_code) == (2, 0, 0)
    assert (before.replica_nodes, before.isr_nodes, before.offline_replicas) == ((2, 1), (2, 1), ())
    cluster.kill(2)
    try:
        after = row()
        assert (after.leader_id, after.leader_epoch > 0) == (1, True)
        assert (after.replica_nodes, after.isr_nodes, after.offline_replicas) == ((2, 1), (1,), (2,))
    finally:
        cluster.restart(2)
