"""Which error a group request gets: from the group's state, from a failed append, and the response that carries it.

Checks are in Kafka's order, because the first error is the one in the response.
"""

from typing import Final

from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.requests import (
    DeleteGroup,
    DeleteGroupResponse,
    GroupRequest,
    GroupResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from rackspan.kafka_bytes.error_codes import ErrorCode

_COORDINATOR_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_RACKS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_RACKS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """The error that a client gets when an append fails: a log's error becomes a coordinator's (CoordinatorRuntime)."""
    return _COORDINATOR_ERRORS.get(error, error)


def member_error(group: Group, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """Whether the member is in the group. FENCED_INSTANCE_ID if its instance has another member id by now (KIP-345)."""
    if group_instance_id is not None:
        current = group.static_members.get(group_instance_id)
        if current is not None and current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def generation_error(group: Group, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
    """Whether the member is in the group's current generation: for heartbeats and syncs."""
    if group.is_in(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = member_error(group, member_id, group_instance_id)
    if error is ErrorCode.NONE and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def sync_error(group: Group, request: SyncGroup) -> ErrorCode:
    """Whether the member may sync, with these protocols."""
    error = generation_error(group, request.member_id, request.group_instance_id, request.generation)
    if error is not ErrorCode.NONE:
        return error
    if request.protocol_type not in (None, group.protocol_type) or request.protocol not in (None, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def commit_error(group: Group, request: OffsetCommit | TxnOffsetCommit) -> ErrorCode:
    """Whether offsets may be committed now (ClassicGroup.validateOffsetCommit). In a transaction also while members sync."""
    if group.is_in(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.generation < 0 and group.is_in(GroupState.EMPTY):
        return ErrorCode.NONE
    transactional = isinstance(request, TxnOffsetCommit)
    error = _committer_error(group, request, transactional)
    if error is ErrorCode.NONE and not transactional and group.is_in(GroupState.COMPLETING_REBALANCE):
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error


def _committer_error(group: Group, request: OffsetCommit | TxnOffsetCommit, transactional: bool) -> ErrorCode:
    if request.generation >= 0 or request.member_id or request.group_instance_id is not None:
        return generation_error(group, request.member_id, request.group_instance_id, request.generation)
    return ErrorCode.NONE if transactional or group.is_in(GroupState.EMPTY) else ErrorCode.UNKNOWN_MEMBER_ID


def error_response(request: GroupRequest, error: ErrorCode) -> GroupResponse:
    """The response that carries an error, in the field that the request's response has for it."""
    match request:
        case JoinGroup():
            return JoinGroupResponse(error, request.member_id)
        case SyncGroup():
            return SyncGroupResponse(error)
        case Heartbeat():
            return HeartbeatResponse(error)
        case LeaveGroup():
            return _leave(request, error)
        case OffsetCommit() | TxnOffsetCommit():
            return OffsetCommitResponse(dict.fromkeys(request.offsets, error))
        case OffsetDelete():
            return OffsetDeleteResponse(error)
        case DeleteGroup():
            return DeleteGroupResponse(error)


def _leave(request: LeaveGroup, error: ErrorCode) -> LeaveGroupResponse:
    """A group that does not exist has none of these members; the response says so for each."""
    if error is ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(ErrorCode.NONE, tuple((member, error) for member in request.members))
    return LeaveGroupResponse(error)
