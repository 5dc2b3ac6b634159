"""Rebalances: when one begins, how long it waits for joins, and which members the new generation has.

One begins when a member joins, leaves or is lost. It ends when every member has joined again or `join_deadline` has passed.
Members that did not join are removed, except static ones, which stay until their session ends (KIP-345).
Source: GroupMetadataManager.prepareRebalance, completeClassicGroupJoin and the timers around them; KIP-134 for the delay.
"""

from typing import Final

from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.requests import JoinGroupResponse, SyncGroupResponse
from rackspan.kafka_bytes.error_codes import ErrorCode

_CAN_REBALANCE: Final = (GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE)


def begin(context: GroupContext, now: int, group: Group) -> None:
    """Begin a rebalance and wait for all members to join, unless one is under way already."""
    if not group.is_in(*_CAN_REBALANCE):
        return
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        fail_syncs(context, now, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.sync_deadline = None
    group.pending_syncs.clear()
    _set_join_deadline(context, now, group)
    group.state = GroupState.PREPARING_REBALANCE
    complete_if_all_joined(context, now, group)


def _set_join_deadline(context: GroupContext, now: int, group: Group) -> None:
    """The first rebalance of a group waits a little, so that a group that starts up rebalances once (KIP-134)."""
    delay_ms = context.settings.group_initial_rebalance_delay_ms
    group.new_member_joined = False
    if group.is_in(GroupState.EMPTY) and delay_ms > 0:
        group.join_deadline = now + delay_ms
        group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    else:
        group.join_deadline = now + group.rebalance_timeout_ms
        group.initial_delay_left_ms = None


def expire_join(context: GroupContext, now: int, group: Group) -> None:
    """Complete the rebalance, or extend an initial delay while members join, up to the rebalance timeout."""
    left_ms = group.initial_delay_left_ms
    if left_ms and group.new_member_joined:
        delay_ms = min(context.settings.group_initial_rebalance_delay_ms, left_ms)
        group.join_deadline = now + delay_ms
        group.initial_delay_left_ms = left_ms - delay_ms
        group.new_member_joined = False
    else:
        complete(context, now, group)


def complete_if_all_joined(context: GroupContext, now: int, group: Group) -> None:
    in_initial_delay = group.initial_delay_left_ms is not None
    if group.is_in(GroupState.PREPARING_REBALANCE) and not in_initial_delay and group.all_joined:
        complete(context, now, group)


def complete(context: GroupContext, now: int, group: Group) -> None:
    """Begin the next generation with the members that have joined."""
    for member in [member for member in group.members.values() if _is_out(member)]:
        group.remove(member.member_id)
    if group.members and not group.elect_joined_leader():
        # Only static members are left and none has joined: their sessions decide.
        group.join_deadline = now + group.rebalance_timeout_ms
        return
    group.join_deadline = group.initial_delay_left_ms = None
    group.next_generation()
    if group.members:
        _respond_joins(context, now, group)
    else:
        # A failed write changes nothing: the next join begins a later generation all the same.
        context.store_group(now, group, {}, lambda _now, _error: None)


def _is_out(member: Member) -> bool:
    return member.join_correlation_id is None and member.group_instance_id is None


def _respond_joins(context: GroupContext, now: int, group: Group) -> None:
    group.sync_deadline = now + group.rebalance_timeout_ms
    for member in group.members.values():
        member.is_new = False
        member.extend_session(now)
        respond_join(context, member, join_response(group, member))


def join_response(group: Group, member: Member) -> JoinGroupResponse:
    """The current generation. The leader's response also lists the members."""
    leads = member.member_id == group.leader
    return JoinGroupResponse(
        ErrorCode.NONE,
        member.member_id,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader or "",
        tuple(each.joined(group.protocol) for each in group.members.values()) if leads else (),
    )


def respond_join(context: GroupContext, member: Member, response: JoinGroupResponse) -> None:
    if member.join_correlation_id is not None:
        context.writes.respond(member.join_correlation_id, response)
        member.join_correlation_id = None


def respond_sync(context: GroupContext, member: Member, response: SyncGroupResponse) -> None:
    if member.sync_correlation_id is not None:
        context.writes.respond(member.sync_correlation_id, response)
        member.sync_correlation_id = None


def fail_syncs(context: GroupContext, now: int, group: Group, error: ErrorCode) -> None:
    """Fail the syncs that wait for this generation's assignments, and clear all assignments."""
    for member in group.members.values():
        member.assignment = b""
        if member.sync_correlation_id is not None:
            member.extend_session(now)
            respond_sync(context, member, SyncGroupResponse(error))


def remove_member(context: GroupContext, now: int, group: Group, member: Member) -> None:
    """Remove a member that left or was lost. Its waiting requests fail, and the others rebalance without it."""
    respond_join(context, member, JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
    respond_sync(context, member, SyncGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)
    begin(context, now, group)
    complete_if_all_joined(context, now, group)


def remove_pending(context: GroupContext, now: int, group: Group, member_id: str) -> None:
    """Drop a member id that was handed out and not used."""
    del group.pending_joins[member_id]
    complete_if_all_joined(context, now, group)
