"""Heartbeat, LeaveGroup and clock ticks: which members remain in the group.

Source: GroupMetadataManager.classicGroupHeartbeat and classicGroupLeave, and the timers of a classic group.
"""

from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.errors import generation_error, member_error
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.membership import rebalance
from rackspan.cluster.core.groups.requests import (
    Heartbeat,
    HeartbeatResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
)
from rackspan.kafka_bytes.error_codes import ErrorCode


def heartbeat(now: int, group: Group, request: Heartbeat) -> HeartbeatResponse:
    """Extend the member's session. REBALANCE_IN_PROGRESS makes it join again."""
    error = generation_error(group, request.member_id, request.group_instance_id, request.generation)
    if error is not ErrorCode.NONE:
        return HeartbeatResponse(error)
    group.members[request.member_id].extend_session(now)
    preparing = group.is_in(GroupState.PREPARING_REBALANCE)
    return HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE)


def leave(context: GroupContext, now: int, group: Group, request: LeaveGroup) -> LeaveGroupResponse:
    if group.is_in(GroupState.DEAD):
        return LeaveGroupResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    left = tuple((member, _leave_one(context, now, group, member)) for member in request.members)
    return LeaveGroupResponse(ErrorCode.NONE, left)


def _leave_one(context: GroupContext, now: int, group: Group, leaving: LeavingMember) -> ErrorCode:
    member_id = leaving.member_id or group.static_members.get(leaving.group_instance_id or "", "")
    if member_id in group.pending_joins:
        rebalance.remove_pending(context, now, group, member_id)
        return ErrorCode.NONE
    error = member_error(group, member_id, leaving.group_instance_id)
    if error is ErrorCode.NONE:
        rebalance.remove_member(context, now, group, group.members[member_id])
    return error


def tick(context: GroupContext, now: int, group: Group) -> None:
    """Handle deadlines that have passed: pending joins, sessions, the wait for joins, the wait for syncs."""
    for member_id in [member_id for member_id, due in group.pending_joins.items() if due <= now]:
        rebalance.remove_pending(context, now, group, member_id)
    for member in [member for member in group.members.values() if member.deadline <= now]:
        _expire_session(context, now, group, member)
    if group.is_in(GroupState.PREPARING_REBALANCE) and group.join_deadline is not None and group.join_deadline <= now:
        rebalance.expire_join(context, now, group)
    if group.sync_deadline is not None and group.sync_deadline <= now:
        _expire_sync(context, now, group)


def _expire_session(context: GroupContext, now: int, group: Group, member: Member) -> None:
    if group.members.get(member.member_id) is not member or member.deadline > now:
        return  # An earlier member's end has removed it, or has extended its session by failing the sync it waited on.
    if member.waits and not member.is_new:
        member.extend_session(now)
    else:
        rebalance.remove_member(context, now, group, member)


def _expire_sync(context: GroupContext, now: int, group: Group) -> None:
    """Remove members that joined and never synced, or the group would wait for them for ever."""
    group.sync_deadline = None
    for member_id in list(group.pending_syncs):
        member = group.remove(member_id)
        member.join_correlation_id = member.sync_correlation_id = None
    rebalance.begin(context, now, group)
