"""One consumer group of a running cluster, as its coordinator describes it.

What it takes: Describe on the group.
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
"""How long a group may be without coordinator before it counts as unreadable; elections take about one."""

_PAUSE_SECONDS: Final = 0.2

_COORDINATOR_MOVES: Final = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)


def read_group(settings: ConnectionSettings, group_id: str) -> GroupDescription:
    """Ask for one group; a group that is not there is described as Dead. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        return connection.run(_described, connection, group_id)


async def _described(connection: ClusterConnection, group_id: str) -> GroupDescription:
    try:
        return await _once_there_is_a_coordinator(connection, group_id)
    except KafkaError as error:
        raise request_failed(f"group {group_id}", f"Describe on Group {group_id}", error) from error


async def _once_there_is_a_coordinator(connection: ClusterConnection, group_id: str) -> GroupDescription:
    """Kafka answers so while a coordinator moves, and for the first group that anybody ever asks of."""
    until = connection.remaining_seconds - COORDINATOR_SECONDS
    while True:
        try:
            coordinator = await _coordinator(connection, group_id)
            answer = await connection.ask_broker(coordinator, DescribeGroupsRequest(groups=[group_id]))
            return _group(answer.groups[0])
        except _COORDINATOR_MOVES:
            if connection.remaining_seconds <= max(until, _PAUSE_SECONDS):
                raise
            await connection.pause(_PAUSE_SECONDS)


async def _coordinator(connection: ClusterConnection, group_id: str) -> int:
    """FindCoordinator (key 10): the broker that keeps the group. Version 4 and later ask for many at once."""
    request = FindCoordinatorRequest(key=group_id, key_type=CoordinatorType.GROUP.value, max_version=3)
    answer = await connection.ask(request)
    _raise_for(answer)
    return int(answer.node_id)


def _group(answer: Any) -> GroupDescription:
    """DescribeGroups (key 15). Kafka 4 says of a group that is not there, or is of another kind, that it is not found."""
    if for_code(answer.error_code) is GroupIdNotFoundError:
        words = (getattr(answer, "error_message", None) or "not found").rstrip(".")
        return GroupDescription(answer.group_id, "Dead", "", "", error_message=words)
    _raise_for(answer)
    return GroupDescription(
        group_id=answer.group_id,
        state=answer.group_state,
        protocol_type=answer.protocol_type,
        protocol=answer.protocol_data,
        members=tuple(
            MemberDescription(one.member_id, one.client_id, bytes(one.member_metadata), bytes(one.member_assignment))
            for one in answer.members
        ),
    )


def _raise_for(answer: Any) -> None:
    error = for_code(answer.error_code or 0)
    if error is not NoError:
        raise error(getattr(answer, "error_message", None))
