"""Offsets that are committed for a group without members, at the broker that coordinates it."""

from typing import Any

import pytest

from rackspan.client.cluster import ClusterConnection
from rackspan.client.errors import ErrorResponse
from rackspan.client.groups import commit_offsets, group_coordinator
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.group_offsets import (
    OffsetCommitResponseData,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from rackspan.wire.messages.groups import FindCoordinatorResponseData
from tests.client.fake_broker import FakeBroker
from tests.client.test_cluster import with_brokers

OFFSETS = {TopicPartition("orders", 1): 7, TopicPartition("pay", 0): 9, TopicPartition("orders", 0): 8}


def test_offsets_are_committed_at_the_coordinator() -> None:
    keys: list[str] = []
    commits: list[tuple[str, dict[str, list[tuple[int, int, str]]]]] = []

    async def coordinated_by_2(request: Any) -> FindCoordinatorResponseData:
        keys.append(request.key)
        return FindCoordinatorResponseData(node_id=2)

    async def committed(request: Any) -> OffsetCommitResponseData:
        rows = {
            topic.name: [
                (one.partition_index, one.committed_offset, one.committed_metadata) for one in topic.partitions
            ]
            for topic in request.topics
        }
        commits.append((request.group_id, rows))
        topics = [
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=one.partition_index) for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        if len(commits) > 1:
            topics[1].partitions[0].error_code = ErrorCode.UNKNOWN_MEMBER_ID
        return OffsetCommitResponseData(topics=topics)

    def scenario(connection: ClusterConnection, first: FakeBroker, second: FakeBroker) -> None:
        first.handles[ApiKey.FIND_COORDINATOR] = coordinated_by_2
        second.handles[ApiKey.OFFSET_COMMIT] = committed
        connection.run(commit_offsets, connection, "shop", OFFSETS)
        with pytest.raises(ErrorResponse) as refused:
            connection.run(commit_offsets, connection, "shop", OFFSETS)
        assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID

    with_brokers(scenario)
    assert keys == ["shop", "shop"]
    assert commits[0] == ("shop", {"orders": [(1, 7, ""), (0, 8, "")], "pay": [(0, 9, "")]})


def test_a_group_without_a_coordinator_is_an_error() -> None:
    async def unavailable(_: object) -> FindCoordinatorResponseData:
        return FindCoordinatorResponseData(error_code=15, node_id=-1)

    def scenario(connection: ClusterConnection, first: FakeBroker, _second: FakeBroker) -> None:
        first.handles[ApiKey.FIND_COORDINATOR] = unavailable
        with pytest.raises(ErrorResponse, match="COORDINATOR_NOT_AVAILABLE"):
            connection.run(group_coordinator, connection, "shop")

    with_brokers(scenario)
