"""The description of one consumer group of a running cluster, from its coordinator.

Required right: Describe on the group.
"""

import asyncio
from typing import Final

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.errors import FAILURES, ErrorResponse, raise_for, request_failed
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.streams.live.streams_group import GroupDescription, MemberDescription
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.groups import (
    DescribeGroupsRequestData,
    DescribeGroupsResponseData,
    DescribeGroupsResponseDescribedGroup,
    FindCoordinatorRequestData,
    FindCoordinatorResponseData,
)

COORDINATOR_SECONDS: Final = 10.0
"""How long a group may have no coordinator before reading it fails; elections take about a second."""

_PAUSE_SECONDS: Final = 0.2

_COORDINATOR_MOVES: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)

_LAST_OF_ONE_KEY: Final = 3
"""The version of FindCoordinator; later ones take many groups."""


def read_group(settings: ConnectionSettings, group_id: str) -> GroupDescription:
    """Describe one group; a group that does not exist is described as Dead. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        return connection.run(_described, connection, group_id)


async def _described(connection: ClusterConnection, group_id: str) -> GroupDescription:
    try:
        return await _with_coordinator_retries(connection, group_id)
    except FAILURES as error:
        raise request_failed(f"group {group_id}", f"Describe on Group {group_id}", error) from error


async def _with_coordinator_retries(connection: ClusterConnection, group_id: str) -> GroupDescription:
    """Retry while the coordinator moves, and while Kafka creates its offsets topic for the first group ever."""
    until = connection.remaining_seconds - COORDINATOR_SECONDS
    while True:
        try:
            coordinator = await _coordinator(connection, group_id)
            response: DescribeGroupsResponseData = await connection.call(
                ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequestData(groups=[group_id]), broker=coordinator
            )
            return _group(response.groups[0])
        except ErrorResponse as error:
            late = connection.remaining_seconds <= max(until, _PAUSE_SECONDS)
            if late or error.code not in _COORDINATOR_MOVES:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)


async def _coordinator(connection: ClusterConnection, group_id: str) -> int:
    """FindCoordinator (key 10): the broker that coordinates the group."""
    request = FindCoordinatorRequestData(key=group_id)
    response: FindCoordinatorResponseData = await connection.call(
        ApiKey.FIND_COORDINATOR, request, most=_LAST_OF_ONE_KEY
    )
    raise_for(response)
    return response.node_id


def _group(described: DescribeGroupsResponseDescribedGroup) -> GroupDescription:
    """DescribeGroups (key 15). Kafka 4 reports a group that does not exist, or is of another type, as not found."""
    if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        words = (described.error_message or "not found").rstrip(".")
        return GroupDescription(described.group_id, "Dead", "", "", error_message=words)
    raise_for(described)
    return GroupDescription(
        group_id=described.group_id,
        state=described.group_state,
        protocol_type=described.protocol_type,
        protocol=described.protocol_data,
        members=tuple(
            MemberDescription(member.member_id, member.client_id, member.member_metadata, member.member_assignment)
            for member in described.members
        ),
    )
