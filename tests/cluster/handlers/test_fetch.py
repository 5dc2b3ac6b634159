"""Fetch as an old client and a waiting one see it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import FetchPartition, FetchRequestData, FetchResponsePartitionData, FetchTopic
from tests.cluster.raw import produced, response_to


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=2, brokers=2, seed=4) as cluster:
        yield cluster


def fetched(
    cluster: EmbeddedCluster, broker: int, topic: str, version: int, *, offset: int = 0, max_wait_ms: int = 0
) -> FetchResponsePartitionData:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequestData(
        max_wait=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )
    response = response_to(cluster.address(broker), ApiKey.FETCH, version, request)
    found: FetchResponsePartitionData = response.responses[0].partitions[0]
    return found


def test_followers_serve_clients_from_version_11_on(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("followed", replicas=[[1, 2]])
    assert produced(cluster.address(1), "followed").error_code == 0
    for version, error in (
        (10, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (11, ErrorCode.NONE),
        (12, ErrorCode.NONE),
    ):
        assert fetched(cluster, 2, "followed", version).error_code == error
        assert fetched(cluster, 1, "followed", version).error_code == ErrorCode.NONE


def test_a_fetch_that_waits_gets_the_record_that_is_produced_meanwhile(cluster: EmbeddedCluster) -> None:
    """Its own wait is longer than the test's connection lives."""
    cluster.create_topic("awaited", replicas=[[1, 2]])
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(fetched, cluster, 1, "awaited", 11, max_wait_ms=3_600_000)
        assert produced(cluster.address(1), "awaited").error_code == 0
        assert waiting.result().records
