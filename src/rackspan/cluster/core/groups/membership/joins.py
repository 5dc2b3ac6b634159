"""JoinGroup: a member joins, or joins again.

Source: GroupMetadataManager.classicGroupJoinToClassicGroup; KIP-345 (static members), KIP-394 (an id first), KIP-814 (a
leader that need not assign).
"""

from dataclasses import dataclass, replace

from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.errors import member_error
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member, new_member
from rackspan.cluster.core.groups.membership import rebalance
from rackspan.cluster.core.groups.requests import JoinGroup, JoinGroupResponse, SyncGroupResponse
from rackspan.cluster.core.ids import CorrelationId
from rackspan.kafka_bytes.error_codes import ErrorCode


def join(context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: JoinGroup) -> None:
    """Respond at once, or when the rebalance is complete."""
    _Join(context, now, correlation_id, group, request).handle()


@dataclass(frozen=True, slots=True)
class _Join:
    """One request, and what it meets."""

    context: GroupContext
    now: int
    correlation_id: CorrelationId
    group: Group
    request: JoinGroup

    def handle(self) -> None:
        error = self._refusal()
        if error is not ErrorCode.NONE:
            self._refuse(error)
        elif self.request.member_id:
            self._join_known()
        elif self.request.group_instance_id is not None:
            self._join_static(self.request.group_instance_id)
        else:
            self._join_dynamic()

    def _respond(self, response: JoinGroupResponse) -> None:
        self.context.writes.respond(self.correlation_id, response)

    def _refuse(self, error: ErrorCode) -> None:
        self._respond(JoinGroupResponse(error, self.request.member_id))

    def _refusal(self) -> ErrorCode:
        if self.group.is_in(GroupState.DEAD):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not self._has_capacity():
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not self.group.supports(self.request.protocol_type, self.request.protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _has_capacity(self) -> bool:
        """Whether the group may take the member. During a rebalance those that join first count (KIP-389)."""
        group, most = self.group, self.context.settings.group_max_size
        member = group.members.get(self.request.member_id)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            return (member is not None and member.join_correlation_id is not None) or group.waiting_to_join < most
        return group.is_in(GroupState.EMPTY) or member is not None or len(group.members) < most

    # A member without an id.

    def _join_dynamic(self) -> None:
        member_id = self.context.new_member_id(self.request.client_id)
        if self.request.require_known_member_id:
            # Else a client that stops waiting and joins again would leave a member behind each time (KIP-394).
            self.group.pending_joins[member_id] = self.now + self.request.session_timeout_ms
            self._respond(JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(member_id)

    def _join_static(self, group_instance_id: str) -> None:
        member_id = self.context.new_member_id(group_instance_id)
        known = self.group.static_members.get(group_instance_id)
        if known is None:
            self._add(member_id)
        else:
            self._replace(known, member_id)

    def _add(self, member_id: str) -> None:
        member = new_member(member_id, self.request)
        self.group.add(member, self.request.protocol_type)
        member.deadline = self.now + self.context.settings.new_member_join_timeout_ms
        self.group.new_member_joined = True
        self._rebalance(member)

    def _rebalance(self, member: Member) -> None:
        """The member waits for the rebalance that its request begins."""
        member.join_correlation_id = self.correlation_id
        rebalance.begin(self.context, self.now, self.group)
        rebalance.complete_if_all_joined(self.context, self.now, self.group)

    # A static member that returns without its member id.

    def _replace(self, old_id: str, new_id: str) -> None:
        group = self.group
        before, leader = replace(group.members[old_id]), group.leader
        self._fence(group.members[old_id])
        member = group.replace_static(old_id, new_id)
        member.rejoins(self.request)
        member.extend_session(self.now)
        if group.is_in(GroupState.STABLE) and group.elected_protocol() == group.protocol:
            self._keep_assignment(new_id, before, leader or "")
        else:
            self._wait(member)

    def _fence(self, member: Member) -> None:
        """End the requests of the client whose place this one takes."""
        fenced = ErrorCode.FENCED_INSTANCE_ID
        rebalance.respond_join(self.context, member, JoinGroupResponse(fenced, member.member_id))
        rebalance.respond_sync(self.context, member, SyncGroupResponse(fenced))

    def _keep_assignment(self, member_id: str, before: Member, leader: str) -> None:
        """A restart within the session causes no rebalance. The response waits until the record with the new id is committed."""
        group, instance_id = self.group, self.request.group_instance_id or ""

        def stored(later: int, error: ErrorCode) -> None:
            if error is not ErrorCode.NONE and group.static_members.get(instance_id) == member_id:
                _restore(later, group, member_id, before)
            self._respond(self._kept_assignment_response(member_id, leader, error))

        assignments = {member.member_id: member.assignment for member in group.members.values()}
        self.context.store_group(self.now, group, assignments, stored)

    def _kept_assignment_response(self, member_id: str, leader_before: str, error: ErrorCode) -> JoinGroupResponse:
        """Before KIP-814 a leader that returns gets its old id as the leader's, so that it does not assign to a stable group."""
        group = self.group
        member = group.members.get(member_id)
        if error is not ErrorCode.NONE or member is None:
            failed = error if error is not ErrorCode.NONE else ErrorCode.UNKNOWN_MEMBER_ID
            return JoinGroupResponse(failed, "", group.generation, group.protocol_type, group.protocol, leader_before)
        response = rebalance.join_response(group, member)
        if self.request.can_skip_assignment:
            return replace(response, skip_assignment=group.leader == member_id)
        return replace(response, leader=leader_before, members=())

    # A member with an id.

    def _join_known(self) -> None:
        member_id, instance_id = self.request.member_id, self.request.group_instance_id
        if member_id in self.group.pending_joins:
            if instance_id is None:
                self._add(member_id)
            else:
                # Static members get no id in advance: this client has made one up.
                self._refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        error = member_error(self.group, member_id, instance_id)
        if error is not ErrorCode.NONE:
            self._refuse(error)
        else:
            self._rejoin(self.group.members[member_id])

    def _rejoin(self, member: Member) -> None:
        if self._has_its_generation(member):
            # The response was lost; it is sent again.
            member.extend_session(self.now)
            self._respond(rebalance.join_response(self.group, member))
            return
        member.rejoins(self.request)
        member.extend_session(self.now)
        self._wait(member)

    def _has_its_generation(self, member: Member) -> bool:
        """Whether the member has joined its generation already. A leader that joins a stable group requests a rebalance: its
        metadata may show that topics changed."""
        if member.protocols != self.request.protocols:
            return False
        leads = self.group.leader == member.member_id
        return self.group.is_in(GroupState.COMPLETING_REBALANCE) or (self.group.is_in(GroupState.STABLE) and not leads)

    def _wait(self, member: Member) -> None:
        # Kafka sends no response to a join that the same member's next one supersedes; its client has stopped waiting.
        superseded = JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        rebalance.respond_join(self.context, member, superseded)
        self._rebalance(member)


def _restore(now: int, group: Group, member_id: str, before: Member) -> None:
    member = group.replace_static(member_id, before.member_id)
    member.protocols = before.protocols
    member.rebalance_timeout_ms, member.session_timeout_ms = before.rebalance_timeout_ms, before.session_timeout_ms
    member.extend_session(now)
