"""The group coordinator of one broker: it runs the groups whose partition of `__consumer_offsets` the broker leads.

Events: `on_request`, `on_appended`, `on_elected`, `on_resigned`, `on_marker`, `on_topics_deleted`, `on_tick`; most return
effects. Requests that change nothing are plain queries. A partition is loaded within `on_elected`, so that no response has
COORDINATOR_LOAD_IN_PROGRESS.
"""

from collections.abc import Iterable
from random import Random
from typing import Final

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.coordination import CoordinatorEffect, Writes, partition_for
from rackspan.cluster.core.groups import loading, offset_commits
from rackspan.cluster.core.groups.context import GroupContext, GroupSettings
from rackspan.cluster.core.groups.errors import error_response
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.membership import heartbeats, joins, rebalance, syncs
from rackspan.cluster.core.groups.requests import (
    DeleteGroup,
    DescribedMember,
    DescribeGroupResponse,
    GroupRequest,
    Heartbeat,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    ListedGroup,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetFetchResponse,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET, CorrelationId
from rackspan.kafka_bytes.error_codes import ErrorCode

GROUP_TYPE: Final = "classic"


def describe(group_id: str, group: Group | None) -> DescribeGroupResponse:
    """A group's description. Subscriptions and assignments are included only while it is Stable."""
    if group is None or group.is_in(GroupState.DEAD):
        return DescribeGroupResponse(ErrorCode.NONE, group_id)
    stable = group.is_in(GroupState.STABLE)
    return DescribeGroupResponse(
        *(ErrorCode.NONE, group_id, group.state.value, group.protocol_type or ""),
        protocol=(group.protocol or "") if stable else "",
        members=tuple(_member(member, group.protocol if stable else None) for member in group.members.values()),
    )


def _member(member: Member, protocol: str | None) -> DescribedMember:
    return DescribedMember(
        *(member.member_id, member.group_instance_id, member.client_id, member.client_host),
        member.metadata(protocol),
        b"" if protocol is None else member.assignment,
    )


def list_groups(groups: Iterable[Group], states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
    """Groups that pass the filters, which ignore case (KIP-518, KIP-848). An empty filter passes all."""
    states_lower = {state.lower() for state in states}
    types_lower = {kind.lower() for kind in types}
    if types_lower and GROUP_TYPE not in types_lower:
        return []
    passing = [group for group in groups if not states_lower or group.state.value.lower() in states_lower]
    listed = [ListedGroup(group.group_id, group.protocol_type or "", group.state.value) for group in passing]
    return sorted(listed, key=lambda group: group.group_id)


class GroupCoordinator:
    """`rng` is for member ids; each broker's coordinator needs its own."""

    def __init__(self, settings: GroupSettings, rng: Random) -> None:
        self._writes = Writes()
        self._context = GroupContext(settings, rng, self._writes)
        self._partitions: dict[int, dict[str, Group]] = {}
        self._leader_epochs: dict[int, int] = {}

    # Leadership.

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> list[CoordinatorEffect]:
        """Load a partition of `__consumer_offsets` that this broker leads; `batches` is its whole log.

        In a new epoch of the same leader everything is read again: writes of the old epoch may have been lost. An epoch
        that is not newer changes nothing.
        """
        if leader_epoch <= self._leader_epochs.get(partition, NO_EPOCH):
            return []
        effects = self.on_resigned(now, partition)
        self._leader_epochs[partition] = leader_epoch
        self._partitions[partition] = loading.load(now, partition, batches)
        return effects

    def on_resigned(self, now: int, partition: int) -> list[CoordinatorEffect]:
        """Unload a partition: requests that wait get NOT_COORDINATOR. If its topic is created again, epochs start again too."""
        self._leader_epochs.pop(partition, None)
        groups = self._partitions.pop(partition, {})
        for group in groups.values():
            group.state = GroupState.DEAD
        self._writes.abandon(now, partition)
        for group in groups.values():
            self._fail_waiting(group)
        return self._writes.take()

    def _fail_waiting(self, group: Group) -> None:
        for member in group.members.values():
            response = JoinGroupResponse(ErrorCode.NOT_COORDINATOR, member.member_id)
            rebalance.respond_join(self._context, member, response)
            rebalance.respond_sync(self._context, member, SyncGroupResponse(ErrorCode.NOT_COORDINATOR))

    # Events.

    def on_request(self, now: int, correlation_id: CorrelationId, request: GroupRequest) -> list[CoordinatorEffect]:
        """Handle a request. Its response is an effect of this event or of a later one, once."""
        error = self._error(request)
        group = self._group(request)
        if error is not ErrorCode.NONE:
            self._writes.respond(correlation_id, error_response(request, error))
        elif group is None:
            self._writes.respond(correlation_id, error_response(request, self._unknown_group(request)))
        else:
            self._handle(now, correlation_id, group, request)
        return self._writes.take()

    def on_appended(
        self, now: int, write: int, error: ErrorCode, base_offset: int = NO_OFFSET
    ) -> list[CoordinatorEffect]:
        """Take the outcome of an `Append`: its base offset, or the error."""
        self._writes.acknowledged(now, write, error, base_offset)
        return self._writes.take()

    def on_marker(self, partition: int, producer_id: int, marker: Marker) -> None:
        """Commit or drop the offsets of a transaction whose marker is in the partition."""
        for group in self._partitions.get(partition, {}).values():
            group.offsets.end_transaction(producer_id, marker is Marker.COMMIT)

    def on_topics_deleted(self, now: int, topics: Iterable[str]) -> list[CoordinatorEffect]:
        """Delete the committed offsets of these topics."""
        deleted = frozenset(topics)
        for group in self._groups():
            offset_commits.delete_topics(self._context, now, group, deleted)
        return self._writes.take()

    def on_tick(self, now: int) -> list[CoordinatorEffect]:
        for groups in self._partitions.values():
            for group in list(groups.values()):
                heartbeats.tick(self._context, now, group)
                if group.is_unused:
                    del groups[group.group_id]
        return self._writes.take()

    # Queries.

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return partition_for(group_id, self._context.settings.offsets_topic_num_partitions)

    def fetch_offsets(self, request: OffsetFetch) -> OffsetFetchResponse:
        groups = self._partitions.get(self.partition_of(request.group_id))
        if groups is None:
            return OffsetFetchResponse(ErrorCode.NOT_COORDINATOR)
        return offset_commits.fetch(groups.get(request.group_id), request)

    def describe(self, group_id: str) -> DescribeGroupResponse:
        groups = self._partitions.get(self.partition_of(group_id))
        if groups is None:
            return DescribeGroupResponse(ErrorCode.NOT_COORDINATOR, group_id, state="")
        return describe(group_id, groups.get(group_id))

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """Groups this broker coordinates, in the order of their ids; of these states and types, where any are given."""
        return list_groups(self._groups(), states, types)

    # Finding the group.

    def _groups(self) -> list[Group]:
        return [group for groups in self._partitions.values() for group in groups.values()]

    def _error(self, request: GroupRequest) -> ErrorCode:
        offsets_alone = isinstance(request, OffsetCommit | TxnOffsetCommit | OffsetDelete)
        if not request.group_id and not offsets_alone:
            return ErrorCode.INVALID_GROUP_ID
        if self.partition_of(request.group_id) not in self._partitions:
            return ErrorCode.NOT_COORDINATOR
        if isinstance(request, JoinGroup) and not self._session_allowed(request.session_timeout_ms):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return ErrorCode.NONE

    def _session_allowed(self, session_timeout_ms: int) -> bool:
        settings = self._context.settings
        return settings.group_min_session_timeout_ms <= session_timeout_ms <= settings.group_max_session_timeout_ms

    def _group(self, request: GroupRequest) -> Group | None:
        """The group; created if the request may create one."""
        partition = self.partition_of(request.group_id)
        groups = self._partitions.get(partition, {})
        if request.group_id not in groups and _may_create(request):
            groups[request.group_id] = Group(request.group_id, partition)
        return groups.get(request.group_id)

    def _unknown_group(self, request: GroupRequest) -> ErrorCode:
        match request:
            case OffsetCommit() | TxnOffsetCommit():
                return ErrorCode.ILLEGAL_GENERATION
            case OffsetDelete() | DeleteGroup():
                return ErrorCode.GROUP_ID_NOT_FOUND
            case _:
                return ErrorCode.UNKNOWN_MEMBER_ID

    def _handle(self, now: int, correlation_id: CorrelationId, group: Group, request: GroupRequest) -> None:
        match request:
            case JoinGroup():
                joins.join(self._context, now, correlation_id, group, request)
            case SyncGroup():
                syncs.sync(self._context, now, correlation_id, group, request)
            case Heartbeat():
                self._writes.respond(correlation_id, heartbeats.heartbeat(now, group, request))
            case LeaveGroup():
                self._writes.respond(correlation_id, heartbeats.leave(self._context, now, group, request))
            case OffsetCommit() | TxnOffsetCommit():
                offset_commits.commit(self._context, now, correlation_id, group, request)
            case OffsetDelete():
                offset_commits.delete_offsets(self._context, now, correlation_id, group, request)
            case DeleteGroup():
                offset_commits.delete_group(self._context, now, correlation_id, group, lambda: self._remove(group))

    def _remove(self, group: Group) -> None:
        self._partitions.get(group.partition, {}).pop(group.group_id, None)


def _may_create(request: GroupRequest) -> bool:
    match request:
        case JoinGroup():
            return not request.member_id
        case OffsetCommit() | TxnOffsetCommit():
            return request.generation < 0
        case _:
            return False
