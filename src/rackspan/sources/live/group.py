"""The description of one consumer group of a running cluster, from its coordinator.

Required right: Describe on the group.
"""

from typing import Any, Final

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    KafkaError,
    NoError,
    NotCoordinatorError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

from rackspan.sources.live.connection import ClusterConnection, ConnectionSettings
from rackspan.sources.live.error_messages import request_failed
from rackspan.streams.live.streams_group import GroupDescription, MemberDescription

COORDINATOR_SECONDS: Final = 10.0
"""How long a group may have no coordinator before reading it fails; elections take about a second."""

_PAUSE_SECONDS: Final = 0.2

_COORDINATOR_MOVES: Final = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)


def read_group(settings: ConnectionSettings, group_id: str) -> GroupDescription:
    """Describe one group; a group that does not exist is described as Dead. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        return connection.run(_described, connection, group_id)


async def _described(connection: ClusterConnection, group_id: str) -> GroupDescription:
    try:
        return await _with_coordinator_retries(connection, group_id)
    except KafkaError as error:
        raise request_failed(f"group {group_id}", f"Describe on Group {group_id}", error) from error


async def _with_coordinator_retries(connection: ClusterConnection, group_id: str) -> GroupDescription:
    """Retry while the coordinator moves, and while Kafka creates its offsets topic for the first group ever."""
    until = connection.remaining_seconds - COORDINATOR_SECONDS
    while True:
        try:
            coordinator = await _coordinator(connection, group_id)
            response = await connection.send_to_broker(coordinator, DescribeGroupsRequest(groups=[group_id]))
            return _group(response.groups[0])
        except _COORDINATOR_MOVES:
            if connection.remaining_seconds <= max(until, _PAUSE_SECONDS):
                raise
            await connection.sleep(_PAUSE_SECONDS)


async def _coordinator(connection: ClusterConnection, group_id: str) -> int:
    """FindCoordinator (key 10): the broker that coordinates the group. From version 4 on it takes many groups."""
    request = FindCoordinatorRequest(key=group_id, key_type=CoordinatorType.GROUP.value, max_version=3)
    response = await connection.send(request)
    _raise_for(response)
    return int(response.node_id)


def _group(response: Any) -> GroupDescription:
    """DescribeGroups (key 15). Kafka 4 reports a group that does not exist, or is of another type, as not found."""
    if for_code(response.error_code) is GroupIdNotFoundError:
        words = (getattr(response, "error_message", None) or "not found").rstrip(".")
        return GroupDescription(response.group_id, "Dead", "", "", error_message=words)
    _raise_for(response)
    return GroupDescription(
        group_id=response.group_id,
        state=response.group_state,
        protocol_type=response.protocol_type,
        protocol=response.protocol_data,
        members=tuple(
            MemberDescription(one.member_id, one.client_id, bytes(one.member_metadata), bytes(one.member_assignment))
            for one in response.members
        ),
    )


def _raise_for(response: Any) -> None:
    error = for_code(response.error_code or 0)
    if error is not NoError:
        raise error(getattr(response, "error_message", None))
