"""The answer to a request that no group was asked: each kind says an error in its own place."""

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import (
    DeleteGroup,
    DeleteGroupAnswer,
    GroupAnswer,
    GroupRequest,
    Heartbeat,
    HeartbeatAnswer,
    JoinGroup,
    JoinGroupAnswer,
    LeaveGroup,
    LeaveGroupAnswer,
    OffsetCommit,
    OffsetCommitAnswer,
    OffsetDelete,
    OffsetDeleteAnswer,
    SyncGroup,
    SyncGroupAnswer,
    TxnOffsetCommit,
)


def refusal(request: GroupRequest, error: KafkaError) -> GroupAnswer:
    match request:
        case JoinGroup():
            return JoinGroupAnswer(error, request.member_id)
        case SyncGroup():
            return SyncGroupAnswer(error)
        case Heartbeat():
            return HeartbeatAnswer(error)
        case LeaveGroup():
            return _leave(request, error)
        case OffsetCommit() | TxnOffsetCommit():
            return OffsetCommitAnswer(dict.fromkeys(request.offsets, error))
        case OffsetDelete():
            return OffsetDeleteAnswer(error)
        case DeleteGroup():
            return DeleteGroupAnswer(error)


def _leave(request: LeaveGroup, error: KafkaError) -> LeaveGroupAnswer:
    """A group nobody knows has none of these members, and says so of each."""
    if error is KafkaError.UNKNOWN_MEMBER_ID:
        return LeaveGroupAnswer(KafkaError.NONE, tuple((member, error) for member in request.members))
    return LeaveGroupAnswer(error)
