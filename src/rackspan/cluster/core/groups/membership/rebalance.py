"""When a rebalance begins, when it has waited long enough, and who is in the new generation.

Begun by whoever joins, leaves or is lost; ends when every member has joined again or `join_deadline` has passed. Members
who did not join are out, but for static ones, whom only their session's end puts out (KIP-345).
Source: GroupMetadataManager.prepareRebalance, completeClassicGroupJoin and the timers around them; KIP-134 for the delay.
"""

from typing import Final

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.requests import JoinGroupResponse, SyncGroupResponse

_CAN_REBALANCE: Final = (GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE)


def begin(context: GroupContext, now: int, group: Group) -> None:
    """Wait for everybody to join, unless a rebalance is under way already."""
    if not group.is_in(*_CAN_REBALANCE):
        return
    if group.is_in(GroupState.COMPLETING_REBALANCE):
        fail_syncs(context, now, group, KafkaError.REBALANCE_IN_PROGRESS)
    group.sync_deadline = None
    group.pending_syncs.clear()
    _set_join_deadline(context, now, group)
    group.move_to(GroupState.PREPARING_REBALANCE, now)
    complete_if_all_joined(context, now, group)


def _set_join_deadline(context: GroupContext, now: int, group: Group) -> None:
    """The first members of a group wait for others a little, so that a group that starts up rebalances once (KIP-134)."""
    delay_ms = context.settings.group_initial_rebalance_delay_ms
    group.new_member_joined = False
    if group.is_in(GroupState.EMPTY) and delay_ms > 0:
        group.join_deadline = now + delay_ms
        group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    else:
        group.join_deadline = now + group.rebalance_timeout_ms
        group.initial_delay_left_ms = None


def join_time_is_up(context: GroupContext, now: int, group: Group) -> None:
    """An initial delay goes on while members come, as long as a rebalance may take."""
    left_ms = group.initial_delay_left_ms
    if left_ms and group.new_member_joined:
        delay_ms = min(context.settings.group_initial_rebalance_delay_ms, left_ms)
        group.join_deadline = now + delay_ms
        group.initial_delay_left_ms = left_ms - delay_ms
        group.new_member_joined = False
    else:
        complete(context, now, group)


def complete_if_all_joined(context: GroupContext, now: int, group: Group) -> None:
    waits_anyway = group.initial_delay_left_ms is not None
    if group.is_in(GroupState.PREPARING_REBALANCE) and not waits_anyway and group.all_joined:
        complete(context, now, group)


def complete(context: GroupContext, now: int, group: Group) -> None:
    """Begin the next generation with those who joined."""
    for member in [each for each in group.members.values() if _is_out(each)]:
        group.remove(member.member_id)
    if group.members and not group.elect_joined_leader():
        # Only static members are left and none has joined: their sessions decide.
        group.join_deadline = now + group.rebalance_timeout_ms
        return
    group.join_deadline = group.initial_delay_left_ms = None
    group.next_generation(now)
    if group.members:
        _welcome(context, now, group)
    else:
        # A failure changes nothing: whoever joins later begins a later generation all the same.
        context.store_group(now, group, {}, lambda _now, _error: None)


def _is_out(member: Member) -> bool:
    return member.join_correlation_id is None and member.group_instance_id is None


def _welcome(context: GroupContext, now: int, group: Group) -> None:
    group.sync_deadline = now + group.rebalance_timeout_ms
    for member in group.members.values():
        member.is_new = False
        member.heard(now)
        respond_join(context, member, join_response(group, member))


def join_response(group: Group, member: Member) -> JoinGroupResponse:
    """The generation as it stands; the leader is also told who is in it."""
    leads = member.member_id == group.leader
    return JoinGroupResponse(
        KafkaError.NONE,
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


def fail_syncs(context: GroupContext, now: int, group: Group, error: KafkaError) -> None:
    """This generation's assignments will not be: those who wait for them are told why."""
    for member in group.members.values():
        member.assignment = b""
        if member.sync_correlation_id is not None:
            member.heard(now)
            respond_sync(context, member, SyncGroupResponse(error))


def remove_member(context: GroupContext, now: int, group: Group, member: Member) -> None:
    """A member left or was lost. What it waits for is answered, and the others rebalance without it."""
    respond_join(context, member, JoinGroupResponse(KafkaError.UNKNOWN_MEMBER_ID, member.member_id))
    respond_sync(context, member, SyncGroupResponse(KafkaError.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)
    begin(context, now, group)
    complete_if_all_joined(context, now, group)


def remove_pending(context: GroupContext, now: int, group: Group, member_id: str) -> None:
    """Somebody given an id will not join with it."""
    del group.pending_joins[member_id]
    complete_if_all_joined(context, now, group)
