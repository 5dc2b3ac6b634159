"""Heartbeat, LeaveGroup and the clock: who is still here.

Source: GroupMetadataManager.classicGroupHeartbeat and classicGroupLeave, and the timers of a classic group.
"""

from rackspan.cluster.core.errors import KafkaError
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


def heartbeat(now: int, group: Group, request: Heartbeat) -> HeartbeatResponse:
    """A member may beat while it waits to be synced, and learns of a rebalance this way."""
    error = generation_error(group, request.member_id, request.group_instance_id, request.generation)
    if error is not KafkaError.NONE:
        return HeartbeatResponse(error)
    group.members[request.member_id].heard(now)
    preparing = group.is_in(GroupState.PREPARING_REBALANCE)
    return HeartbeatResponse(KafkaError.REBALANCE_IN_PROGRESS if preparing else KafkaError.NONE)


def leave(context: GroupContext, now: int, group: Group, request: LeaveGroup) -> LeaveGroupResponse:
    if group.is_in(GroupState.DEAD):
        return LeaveGroupResponse(KafkaError.COORDINATOR_NOT_AVAILABLE)
    left = tuple((each, _leave_one(context, now, group, each)) for each in request.members)
    return LeaveGroupResponse(KafkaError.NONE, left)


def _leave_one(context: GroupContext, now: int, group: Group, leaving: LeavingMember) -> KafkaError:
    member_id = leaving.member_id or group.static_members.get(leaving.group_instance_id or "", "")
    if member_id in group.pending_joins:
        rebalance.remove_pending(context, now, group, member_id)
        return KafkaError.NONE
    error = member_error(group, member_id, leaving.group_instance_id)
    if error is KafkaError.NONE:
        rebalance.remove_member(context, now, group, group.members[member_id])
    return error


def tick(context: GroupContext, now: int, group: Group) -> None:
    """Do what has fallen due, at most once each: joins promised, sessions, the wait for joins, the wait for syncs."""
    for member_id in [member_id for member_id, due in group.pending_joins.items() if due <= now]:
        rebalance.remove_pending(context, now, group, member_id)
    for member in [member for member in group.members.values() if member.deadline <= now]:
        _session_is_over(context, now, group, member)
    if group.is_in(GroupState.PREPARING_REBALANCE) and group.join_deadline is not None and group.join_deadline <= now:
        rebalance.join_time_is_up(context, now, group)
    if group.sync_deadline is not None and group.sync_deadline <= now:
        _sync_time_is_up(context, now, group)


def _session_is_over(context: GroupContext, now: int, group: Group, member: Member) -> None:
    if group.members.get(member.member_id) is not member:
        return  # What was done for an earlier member put this one out.
    if member.waits and not member.is_new:
        member.heard(now)
    else:
        rebalance.remove_member(context, now, group, member)


def _sync_time_is_up(context: GroupContext, now: int, group: Group) -> None:
    """Whoever joined and never came for its assignment is put out, or the group would wait on it for ever."""
    group.sync_deadline = None
    for member_id in list(group.pending_syncs):
        member = group.remove(member_id)
        member.join_correlation_id = member.sync_correlation_id = None
    rebalance.begin(context, now, group)
