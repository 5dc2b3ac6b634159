"""OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete and DeleteGroups: a group's committed offsets.

No response says that an offset is committed or deleted before its records are committed.
Source: OffsetMetadataManager; KIP-447 (transactions and stable offsets), KIP-496 (deleting offsets).
"""

from collections.abc import Callable, Iterable, Mapping

from rackspan.cluster.core.coordination import CoordinatorRecord, Then, encode_batch
from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.errors import commit_error, coordinator_error
from rackspan.cluster.core.groups.group import CONSUMER_PROTOCOL, Group, GroupState
from rackspan.cluster.core.groups.records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_offset,
)
from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    DeleteGroupResponse,
    FetchedOffset,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    OffsetFetchResponse,
    TxnOffsetCommit,
)
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.errors import MalformedBytes
from rackspan.kafka_bytes.consumer_protocol import decode_subscribed_topics
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition


def commit(
    context: GroupContext,
    now: int,
    correlation_id: CorrelationId,
    group: Group,
    request: OffsetCommit | TxnOffsetCommit,
) -> None:
    error = commit_error(group, request)
    if error is not ErrorCode.NONE:
        context.writes.respond(correlation_id, OffsetCommitResponse(dict.fromkeys(request.offsets, error)))
        return
    if isinstance(request, OffsetCommit) and request.member_id in group.members:
        group.members[request.member_id].extend_session(now)
    accepted = {p: offset for p, offset in request.offsets.items() if _fits(context, offset)}
    if accepted:
        _append_offsets(context, now, correlation_id, group, request, accepted)
    else:
        context.writes.respond(correlation_id, _commit_response(request, accepted, ErrorCode.NONE))


def _fits(context: GroupContext, offset: CommittedOffset) -> bool:
    return len(offset.metadata.encode()) <= context.settings.offset_metadata_max_bytes


def _append_offsets(
    context: GroupContext,
    now: int,
    correlation_id: CorrelationId,
    group: Group,
    request: OffsetCommit | TxnOffsetCommit,
    accepted: Mapping[TopicPartition, CommittedOffset],
) -> None:
    values = {p: OffsetCommitValue(each.offset, each.leader_epoch, each.metadata, now) for p, each in accepted.items()}
    records = [CoordinatorRecord(_offset_key(group, p), encode_offset(value)) for p, value in values.items()]
    producer = (request.producer_id, request.producer_epoch) if isinstance(request, TxnOffsetCommit) else (-1, -1)
    group.offsets.append_began(values)

    def appended(_now: int, error: ErrorCode, base_offset: int) -> None:
        group.offsets.append_ended(values)
        if error is ErrorCode.NONE:
            _store(group, request, values, base_offset)
        context.writes.respond(correlation_id, _commit_response(request, accepted, coordinator_error(error)))

    context.writes.append(group.partition, encode_batch(records, now, *producer), appended)


def _store(
    group: Group,
    request: OffsetCommit | TxnOffsetCommit,
    values: Mapping[TopicPartition, OffsetCommitValue],
    base_offset: int,
) -> None:
    for record_offset, (partition, value) in enumerate(values.items(), base_offset):
        if isinstance(request, TxnOffsetCommit):
            group.offsets.store_in_transaction(request.producer_id, partition, value, record_offset)
        else:
            group.offsets.store(partition, value, record_offset)


def _commit_response(
    request: OffsetCommit | TxnOffsetCommit, accepted: Iterable[TopicPartition], error: ErrorCode
) -> OffsetCommitResponse:
    known = frozenset(accepted)
    return OffsetCommitResponse(
        {p: error if p in known else ErrorCode.OFFSET_METADATA_TOO_LARGE for p in request.offsets}
    )


def _offset_key(group: Group, partition: TopicPartition) -> bytes:
    return encode_key(OffsetCommitKey(group.group_id, partition.topic, partition.partition))


# Fetching.


def fetch(group: Group | None, request: OffsetFetch) -> OffsetFetchResponse:
    """The committed offsets. A group that does not exist has committed none, which is no error."""
    if group is None or group.is_in(GroupState.DEAD):
        return OffsetFetchResponse(ErrorCode.NONE, dict.fromkeys(request.partitions or (), FetchedOffset()))
    partitions = tuple(group.offsets.committed) if request.partitions is None else request.partitions
    return OffsetFetchResponse(ErrorCode.NONE, {p: _fetched(group, p, request.require_stable) for p in partitions})


def _fetched(group: Group, partition: TopicPartition, require_stable: bool) -> FetchedOffset:
    if require_stable and group.offsets.unstable(partition):
        return FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    logged = group.offsets.committed.get(partition)
    if logged is None:
        return FetchedOffset()
    return FetchedOffset(logged.value.offset, logged.value.leader_epoch, logged.value.metadata)


# Deleting.


def delete_offsets(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: OffsetDelete
) -> None:
    error, topics_in_use = _offsets_in_use(group)
    if error is not ErrorCode.NONE:
        context.writes.respond(correlation_id, OffsetDeleteResponse(error))
        return
    errors = {p: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC for p in request.partitions if p.topic in topics_in_use}
    deleted = [p for p in request.partitions if p not in errors]
    present = [p for p in deleted if p in group.offsets.committed]

    def appended(_now: int, failed: ErrorCode, _offset: int) -> None:
        if failed is ErrorCode.NONE:
            group.offsets.delete(present)
        response = OffsetDeleteResponse(coordinator_error(failed), errors | dict.fromkeys(deleted, ErrorCode.NONE))
        context.writes.respond(correlation_id, response)

    _append_tombstones(context, now, group, [_offset_key(group, p) for p in present], appended)


def _offsets_in_use(group: Group) -> tuple[ErrorCode, frozenset[str]]:
    """Whether offsets may be deleted, and the topics whose may not: those that members subscribe to."""
    if group.is_in(GroupState.DEAD):
        return ErrorCode.GROUP_ID_NOT_FOUND, frozenset()
    if group.is_in(GroupState.EMPTY):
        return ErrorCode.NONE, frozenset()
    topics = _subscribed_topics(group)
    return (ErrorCode.NON_EMPTY_GROUP, frozenset()) if topics is None else (ErrorCode.NONE, topics)


def _subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics its members subscribe to. None if it is no consumer group, or if a subscription cannot be decoded."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    subscriptions = [member.protocols[0].metadata for member in group.members.values()]
    try:
        return frozenset(topic for metadata in subscriptions for topic in decode_subscribed_topics(metadata))
    except MalformedBytes:
        return None


def delete_group(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, remove: Callable[[], None]
) -> None:
    """Delete the group: Dead while its tombstones are appended, then `remove` is called, or it is Empty again."""
    if not group.is_in(GroupState.EMPTY):
        dead = group.is_in(GroupState.DEAD)
        error = ErrorCode.GROUP_ID_NOT_FOUND if dead else ErrorCode.NON_EMPTY_GROUP
        context.writes.respond(correlation_id, DeleteGroupResponse(error))
        return
    group.state = GroupState.DEAD

    def appended(_now: int, failed: ErrorCode, _offset: int) -> None:
        if failed is ErrorCode.NONE:
            remove()
        else:
            group.state = GroupState.EMPTY
        context.writes.respond(correlation_id, DeleteGroupResponse(coordinator_error(failed)))

    keys = [_offset_key(group, partition) for partition in group.offsets.committed]
    if group.persisted:
        keys.append(encode_key(GroupMetadataKey(group.group_id)))
    _append_tombstones(context, now, group, keys, appended)


def delete_topics(context: GroupContext, now: int, group: Group, topics: frozenset[str]) -> None:
    """Delete the offsets of deleted topics: consumers of new topics of the same names must not find them."""
    deleted = [partition for partition in group.offsets.committed if partition.topic in topics]
    group.offsets.delete([*deleted, *_in_transactions(group, topics)])
    if deleted:
        keys = [_offset_key(group, partition) for partition in deleted]
        _append_tombstones(context, now, group, keys, lambda _now, _error, _offset: None)


def _in_transactions(group: Group, topics: frozenset[str]) -> list[TopicPartition]:
    return [p for pending in group.offsets.in_transactions.values() for p in pending if p.topic in topics]


def _append_tombstones(context: GroupContext, now: int, group: Group, keys: list[bytes], then: Then) -> None:
    if keys:
        batch = encode_batch([CoordinatorRecord(key, None) for key in keys], now)
        context.writes.append(group.partition, batch, then)
    else:
        then(now, ErrorCode.NONE, NO_OFFSET)
