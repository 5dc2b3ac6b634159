"""Metadata of topics that there are not: each has the reason, and those beside it are described."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic
from tests.cluster.raw import response_to

UNKNOWN_TOPIC, NO_NAME, INVALID_FACTOR, UNKNOWN_ID = 3, 17, 38, 100
OPERATIONS = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
"""READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: what Kafka has of a topic without an authorizer."""

NOT_REQUESTED = -(2**31)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Too small for the topics that it would create."""
    with EmbeddedCluster(racks=2, brokers=2, config={"default.replication.factor": "3"}, seed=4) as cluster:
        cluster.create_topic("known", replicas=[[1, 2]])
        yield cluster


def described(cluster: EmbeddedCluster, *, creates: bool, operations: bool) -> list[tuple[str, int, int, int]]:
    """Name, error, number of partitions and operations of each topic."""
    topics = [MetadataRequestTopic(name=name) for name in ("wanted", "known", "no/name", "wanted")]
    request = MetadataRequestData(
        topics=topics, allow_auto_topic_creation=creates, include_topic_authorized_operations=operations
    )
    response: Any = response_to(cluster.address(1), ApiKey.METADATA, 9, request)
    return [
        (topic.name, topic.error_code, len(topic.partitions), topic.topic_authorized_operations)
        for topic in response.topics
    ]


@pytest.mark.parametrize("operations", [False, True])
@pytest.mark.parametrize(("creates", "error"), [(False, UNKNOWN_TOPIC), (True, INVALID_FACTOR)])
def test_a_topic_that_cannot_be_created_has_the_reason_and_those_beside_it_are_described(
    cluster: EmbeddedCluster, creates: bool, error: int, operations: bool
) -> None:
    allowed = OPERATIONS if operations else NOT_REQUESTED
    assert described(cluster, creates=creates, operations=operations) == [
        ("wanted", error, 0, allowed),
        ("known", 0, 1, allowed),
        ("no/name", NO_NAME, 0, allowed),
        ("wanted", error, 0, allowed),
    ]


def test_a_topic_is_described_by_its_id_and_one_that_there_is_not_has_its_id_alone(cluster: EmbeddedCluster) -> None:
    def by(**topic: Any) -> list[tuple[str | None, UUID | None, int]]:
        request = MetadataRequestData(topics=[MetadataRequestTopic(**topic)], allow_auto_topic_creation=False)
        response: Any = response_to(cluster.address(1), ApiKey.METADATA, 12, request)
        return [(one.name, one.topic_id, one.error_code) for one in response.topics]

    ((_, known, _),) = by(name="known")
    assert by(topic_id=known, name=None) == [("known", known, 0)]
    assert by(topic_id=UUID(int=7), name=None) == [(None, UUID(int=7), UNKNOWN_ID)]
    assert by(name="gone") == [("gone", None, UNKNOWN_TOPIC)]
