"""JoinGroup: a member joins, or joins again.

Source: GroupMetadataManager.classicGroupJoinToClassicGroup; KIP-345 (static members), KIP-394 (an id first), KIP-814 (a
leader that need not assign).
"""

from dataclasses import replace

from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.errors import member_error
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member, new_member
from rackspan.cluster.core.groups.membership import rebalance
from rackspan.cluster.core.groups.requests import JoinGroup, JoinGroupResponse, SyncGroupResponse
from rackspan.cluster.core.ids import CorrelationId
from rackspan.kafka_bytes.error_codes import ErrorCode


def join(context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: JoinGroup) -> None:
    error = _refusal(context, group, request)
    if error is not ErrorCode.NONE:
        _refuse(context, correlation_id, request, error)
    elif request.member_id:
        _join_known(context, now, correlation_id, group, request)
    elif request.group_instance_id is not None:
        _join_static(context, now, correlation_id, group, request, request.group_instance_id)
    else:
        _join_dynamic(context, now, correlation_id, group, request)


def _refuse(context: GroupContext, correlation_id: CorrelationId, request: JoinGroup, error: ErrorCode) -> None:
    context.writes.respond(correlation_id, JoinGroupResponse(error, request.member_id))


def _refusal(context: GroupContext, group: Group, request: JoinGroup) -> ErrorCode:
    if group.is_in(GroupState.DEAD):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not _has_capacity(context, group, request.member_id):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not group.supports(request.protocol_type, request.protocols):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _has_capacity(context: GroupContext, group: Group, member_id: str) -> bool:
    """Whether the group may take the member. During a rebalance those that join first count (KIP-389)."""
    most = context.settings.group_max_size
    member = group.members.get(member_id)
    if group.is_in(GroupState.PREPARING_REBALANCE):
        return (member is not None and member.join_correlation_id is not None) or group.waiting_to_join < most
    return group.is_in(GroupState.EMPTY) or member is not None or len(group.members) < most


# A member without an id.


def _join_dynamic(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: JoinGroup
) -> None:
    member_id = context.new_member_id(request.client_id)
    if request.require_known_member_id:
        # Else a client that stops waiting and joins again would leave a member behind each time (KIP-394).
        group.pending_joins[member_id] = now + request.session_timeout_ms
        context.writes.respond(correlation_id, JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add(context, now, correlation_id, group, new_member(member_id, request), request)


def _join_static(
    context: GroupContext,
    now: int,
    correlation_id: CorrelationId,
    group: Group,
    request: JoinGroup,
    group_instance_id: str,
) -> None:
    member_id = context.new_member_id(group_instance_id)
    known = group.static_members.get(group_instance_id)
    if known is None:
        _add(context, now, correlation_id, group, new_member(member_id, request), request)
    else:
        _replace(context, now, correlation_id, group, request, known, member_id)


def _add(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, member: Member, request: JoinGroup
) -> None:
    group.add(member, request.protocol_type)
    member.join_correlation_id = correlation_id
    member.deadline = now + context.settings.new_member_join_timeout_ms
    group.new_member_joined = True
    rebalance.begin(context, now, group)
    rebalance.complete_if_all_joined(context, now, group)


# A static member that returns without its member id.


def _replace(
    context: GroupContext,
    now: int,
    correlation_id: CorrelationId,
    group: Group,
    request: JoinGroup,
    old_id: str,
    new_id: str,
) -> None:
    before, leader = replace(group.members[old_id]), group.leader
    fence(context, group.members[old_id])
    member = group.replace_static(old_id, new_id)
    member.rejoins(request)
    member.extend_session(now)
    if group.is_in(GroupState.STABLE) and group.elected_protocol() == group.protocol:
        _keep_assignment(context, now, correlation_id, group, request, before, leader or "")
    else:
        _wait(context, now, correlation_id, group, member)


def fence(context: GroupContext, member: Member) -> None:
    rebalance.respond_join(context, member, JoinGroupResponse(ErrorCode.FENCED_INSTANCE_ID, member.member_id))
    rebalance.respond_sync(context, member, SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID))


def _keep_assignment(
    context: GroupContext,
    now: int,
    correlation_id: CorrelationId,
    group: Group,
    request: JoinGroup,
    before: Member,
    leader: str,
) -> None:
    """A restart within the session causes no rebalance. The response waits until the record with the new id is committed."""
    instance_id = request.group_instance_id or ""
    member_id = group.static_members[instance_id]

    def stored(later: int, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE and group.static_members.get(instance_id) == member_id:
            _restore(later, group, member_id, before)
        context.writes.respond(correlation_id, _kept_assignment_response(group, member_id, request, leader, error))

    assignments = {member.member_id: member.assignment for member in group.members.values()}
    context.store_group(now, group, assignments, stored)


def _restore(now: int, group: Group, member_id: str, before: Member) -> None:
    member = group.replace_static(member_id, before.member_id)
    member.protocols = before.protocols
    member.rebalance_timeout_ms, member.session_timeout_ms = before.rebalance_timeout_ms, before.session_timeout_ms
    member.extend_session(now)


def _kept_assignment_response(
    group: Group, member_id: str, request: JoinGroup, leader_before: str, error: ErrorCode
) -> JoinGroupResponse:
    """Before KIP-814 a leader that returns gets its old id as the leader's, so that it does not assign to a stable group."""
    member = group.members.get(member_id)
    if error is not ErrorCode.NONE or member is None:
        failed = error if error is not ErrorCode.NONE else ErrorCode.UNKNOWN_MEMBER_ID
        return JoinGroupResponse(failed, "", group.generation, group.protocol_type, group.protocol, leader_before)
    response = rebalance.join_response(group, member)
    if request.can_skip_assignment:
        return replace(response, skip_assignment=group.leader == member_id)
    return replace(response, leader=leader_before, members=())


# A member with an id.


def _join_known(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: JoinGroup
) -> None:
    if request.member_id in group.pending_joins:
        _join_pending(context, now, correlation_id, group, request)
        return
    error = member_error(group, request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        _refuse(context, correlation_id, request, error)
    else:
        _rejoin(context, now, correlation_id, group, group.members[request.member_id], request)


def _join_pending(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: JoinGroup
) -> None:
    if request.group_instance_id is not None:
        # Static members get no id in advance: this client has made one up.
        _refuse(context, correlation_id, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        _add(context, now, correlation_id, group, new_member(request.member_id, request), request)


def _rejoin(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, member: Member, request: JoinGroup
) -> None:
    if _has_its_generation(group, member, request):
        # The response was lost; it is sent again.
        member.extend_session(now)
        context.writes.respond(correlation_id, rebalance.join_response(group, member))
        return
    member.rejoins(request)
    member.extend_session(now)
    _wait(context, now, correlation_id, group, member)


def _has_its_generation(group: Group, member: Member, request: JoinGroup) -> bool:
    """Whether the member has joined its generation already. A leader that joins a stable group requests a rebalance: its
    metadata may show that topics changed."""
    if member.protocols != request.protocols:
        return False
    leads = group.leader == member.member_id
    return group.is_in(GroupState.COMPLETING_REBALANCE) or (group.is_in(GroupState.STABLE) and not leads)


def _wait(context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, member: Member) -> None:
    # Kafka sends no response to a join that the same member's next one supersedes; its client has stopped waiting.
    rebalance.respond_join(context, member, JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
    member.join_correlation_id = correlation_id
    rebalance.begin(context, now, group)
    rebalance.complete_if_all_joined(context, now, group)
