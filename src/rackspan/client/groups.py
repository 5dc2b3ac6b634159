"""Requests to the coordinator of a group: which broker it is, and offsets that are committed without being a member.

Errors: those of errors.FAILURES.
"""

from collections.abc import Mapping
from typing import Final

from rackspan.client.cluster import ClusterConnection
from rackspan.client.errors import error_response, raise_for
from rackspan.client.requests import by_topic
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.group_offsets import (
    OffsetCommitRequestData,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponseData,
)
from rackspan.wire.messages.groups import FindCoordinatorRequestData, FindCoordinatorResponseData

_LAST_OF_ONE_KEY: Final = 3
"""The version of FindCoordinator; later ones take many groups."""


async def group_coordinator(connection: ClusterConnection, group_id: str) -> int:
    """FindCoordinator (key 10): the broker that coordinates the group."""
    request = FindCoordinatorRequestData(key=group_id)
    response: FindCoordinatorResponseData = await connection.call(
        ApiKey.FIND_COORDINATOR, request, most=_LAST_OF_ONE_KEY
    )
    raise_for(response)
    return response.node_id


async def commit_offsets(connection: ClusterConnection, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """OffsetCommit (key 8) for a group without members. A group that has some refuses it with UNKNOWN_MEMBER_ID."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offsets[TopicPartition(topic, number)],
                    committed_metadata="",
                )
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
    response: OffsetCommitResponseData = await connection.call(
        ApiKey.OFFSET_COMMIT,
        OffsetCommitRequestData(group_id=group_id, topics=topics),
        broker=await group_coordinator(connection, group_id),
    )
    for topic in response.topics:
        for row in topic.partitions:
            if row.error_code != ErrorCode.NONE:
                raise error_response(row)
