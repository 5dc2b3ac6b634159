"""The answer to a request that no group was asked: each kind says an error in its own place."""

from rackspan.cluster.core.errors import KafkaError
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


def refusal(request: GroupRequest, error: KafkaError) -> GroupResponse:
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


def _leave(request: LeaveGroup, error: KafkaError) -> LeaveGroupResponse:
    """A group nobody knows has none of these members, and says so of each."""
    if error is KafkaError.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(KafkaError.NONE, tuple((member, error) for member in request.members))
    return LeaveGroupResponse(error)
