"""SyncGroup: the leader sends the assignments, each member gets its own.

The assignments are committed to `__consumer_offsets` before any response: every later coordinator has the same ones. Source: GroupMetadataManager.classicGroupSync.
"""

from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.errors import sync_error
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.membership import rebalance
from rackspan.cluster.core.groups.requests import SyncGroup, SyncGroupResponse
from rackspan.cluster.core.ids import CorrelationId
from rackspan.kafka_bytes.error_codes import ErrorCode


def sync(context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: SyncGroup) -> None:
    error = sync_error(group, request)
    if error is ErrorCode.NONE and group.is_in(GroupState.PREPARING_REBALANCE):
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error is not ErrorCode.NONE:
        context.writes.respond(correlation_id, SyncGroupResponse(error))
        return
    member = group.members[request.member_id]
    _remove_pending_sync(group, member)
    if group.is_in(GroupState.STABLE):
        member.extend_session(now)
        context.writes.respond(correlation_id, _assigned(group, member))
    else:
        _wait(context, now, correlation_id, group, member, request)


def _remove_pending_sync(group: Group, member: Member) -> None:
    group.pending_syncs.discard(member.member_id)
    if not group.pending_syncs:
        group.sync_deadline = None


def _wait(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, member: Member, request: SyncGroup
) -> None:
    rebalance.respond_sync(context, member, SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
    member.sync_correlation_id = correlation_id
    if member.member_id == group.leader and group.storing_generation != group.generation:
        _store(context, now, group, request)


def _store(context: GroupContext, now: int, group: Group, request: SyncGroup) -> None:
    # One assignment a generation: a second one, sent before the first is committed, would assign partitions twice.
    generation = group.storing_generation = group.generation
    # Members that the leader left out get nothing; ids that are no members are ignored.
    assignments = {member_id: request.assignments.get(member_id, b"") for member_id in group.members}

    def stored(later: int, error: ErrorCode) -> None:
        group.storing_generation = None
        if not group.is_in(GroupState.COMPLETING_REBALANCE) or group.generation != generation:
            return
        if error is ErrorCode.NONE:
            _distribute(context, later, group, assignments)
        else:
            rebalance.fail_syncs(context, later, group, error)
            rebalance.begin(context, later, group)

    context.store_group(now, group, assignments, stored)


def _distribute(context: GroupContext, now: int, group: Group, assignments: dict[str, bytes]) -> None:
    group.state = GroupState.STABLE
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        if member.sync_correlation_id is not None:
            member.extend_session(now)
            rebalance.respond_sync(context, member, _assigned(group, member))


def _assigned(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(ErrorCode.NONE, group.protocol_type, group.protocol, member.assignment)
