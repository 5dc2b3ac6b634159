"""OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete and DeleteGroups: what a group remembers.

Nobody is told that an offset is committed, deleted or forgotten before the records of it are safe.
Source: OffsetMetadataManager; KIP-447 (transactions and stable offsets), KIP-496 (deleting offsets).
"""

from collections.abc import Callable, Iterable, Mapping

from rackspan.cluster.core.coordination import CoordinatorRecord, Then, encode_batch
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.context import GroupContext
from rackspan.cluster.core.groups.errors import commit_error, coordinator_error
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.offsets.consumer_protocol import subscribed_topics
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
from rackspan.model.ids import TopicPartition


def commit(
    context: GroupContext,
    now: int,
    correlation_id: CorrelationId,
    group: Group,
    request: OffsetCommit | TxnOffsetCommit,
) -> None:
    error = commit_error(group, request)
    if error is not KafkaError.NONE:
        context.writes.respond(correlation_id, OffsetCommitResponse(dict.fromkeys(request.offsets, error)))
        return
    if isinstance(request, OffsetCommit) and request.member_id in group.members:
        group.members[request.member_id].heard(now)
    accepted = {p: offset for p, offset in request.offsets.items() if _fits(context, offset)}
    if accepted:
        _append_offsets(context, now, correlation_id, group, request, accepted)
    else:
        context.writes.respond(correlation_id, _commit_answer(request, accepted, KafkaError.NONE))


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
    group.offsets.sent(values)

    def appended(_now: int, error: KafkaError, base_offset: int) -> None:
        group.offsets.arrived(values)
        if error is KafkaError.NONE:
            _remember(group, request, values, base_offset)
        context.writes.respond(correlation_id, _commit_answer(request, accepted, coordinator_error(error)))

    context.writes.append(group.partition, encode_batch(records, now, *producer), appended)


def _remember(
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


def _commit_answer(
    request: OffsetCommit | TxnOffsetCommit, accepted: Iterable[TopicPartition], error: KafkaError
) -> OffsetCommitResponse:
    known = frozenset(accepted)
    return OffsetCommitResponse(
        {p: error if p in known else KafkaError.OFFSET_METADATA_TOO_LARGE for p in request.offsets}
    )


def _offset_key(group: Group, partition: TopicPartition) -> bytes:
    return encode_key(OffsetCommitKey(group.group_id, partition.topic, partition.partition))


# Reading.


def fetch(group: Group | None, request: OffsetFetch) -> OffsetFetchResponse:
    """What is committed. A group that nobody knows has committed nothing, which is no error."""
    if group is None or group.is_in(GroupState.DEAD):
        return OffsetFetchResponse(KafkaError.NONE, dict.fromkeys(request.partitions or (), FetchedOffset()))
    asked = tuple(group.offsets.committed) if request.partitions is None else request.partitions
    return OffsetFetchResponse(KafkaError.NONE, {p: _fetched(group, p, request.require_stable) for p in asked})


def _fetched(group: Group, partition: TopicPartition, require_stable: bool) -> FetchedOffset:
    if require_stable and group.offsets.unstable(partition):
        return FetchedOffset(error=KafkaError.UNSTABLE_OFFSET_COMMIT)
    logged = group.offsets.committed.get(partition)
    if logged is None:
        return FetchedOffset()
    return FetchedOffset(logged.value.offset, logged.value.leader_epoch, logged.value.metadata)


# Forgetting.


def delete_offsets(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, request: OffsetDelete
) -> None:
    error, kept = _offsets_in_use(group)
    if error is not KafkaError.NONE:
        context.writes.respond(correlation_id, OffsetDeleteResponse(error))
        return
    errors = {p: KafkaError.GROUP_SUBSCRIBED_TO_TOPIC for p in request.partitions if p.topic in kept}
    gone = [p for p in request.partitions if p not in errors]
    present = [p for p in gone if p in group.offsets.committed]

    def appended(_now: int, failed: KafkaError, _offset: int) -> None:
        if failed is KafkaError.NONE:
            group.offsets.forget(present)
        response = OffsetDeleteResponse(coordinator_error(failed), errors | dict.fromkeys(gone, KafkaError.NONE))
        context.writes.respond(correlation_id, response)

    _append_tombstones(context, now, group, [_offset_key(group, p) for p in present], appended)


def _offsets_in_use(group: Group) -> tuple[KafkaError, frozenset[str]]:
    """Whether offsets may go at all, and of which topics they may not: those that consumers read now."""
    if group.is_in(GroupState.DEAD):
        return KafkaError.GROUP_ID_NOT_FOUND, frozenset()
    if group.is_in(GroupState.EMPTY):
        return KafkaError.NONE, frozenset()
    topics = subscribed_topics(group)
    return (KafkaError.NON_EMPTY_GROUP, frozenset()) if topics is None else (KafkaError.NONE, topics)


def delete_group(
    context: GroupContext, now: int, correlation_id: CorrelationId, group: Group, forget: Callable[[], None]
) -> None:
    """Dead while its tombstones are on their way; then `forget` is called, or it is Empty again."""
    if not group.is_in(GroupState.EMPTY):
        dead = group.is_in(GroupState.DEAD)
        error = KafkaError.GROUP_ID_NOT_FOUND if dead else KafkaError.NON_EMPTY_GROUP
        context.writes.respond(correlation_id, DeleteGroupResponse(error))
        return
    group.move_to(GroupState.DEAD, now)

    def appended(later: int, failed: KafkaError, _offset: int) -> None:
        if failed is KafkaError.NONE:
            forget()
        else:
            group.move_to(GroupState.EMPTY, later)
        context.writes.respond(correlation_id, DeleteGroupResponse(coordinator_error(failed)))

    keys = [_offset_key(group, partition) for partition in group.offsets.committed]
    if group.persisted:
        keys.append(encode_key(GroupMetadataKey(group.group_id)))
    _append_tombstones(context, now, group, keys, appended)


def forget_topics(context: GroupContext, now: int, group: Group, topics: frozenset[str]) -> None:
    """Offsets of topics that are no more mean nothing, and would mislead readers of new topics of those names."""
    gone = [partition for partition in group.offsets.committed if partition.topic in topics]
    group.offsets.forget([*gone, *_in_transactions(group, topics)])
    if gone:
        keys = [_offset_key(group, partition) for partition in gone]
        _append_tombstones(context, now, group, keys, lambda _now, _error, _offset: None)


def _in_transactions(group: Group, topics: frozenset[str]) -> list[TopicPartition]:
    return [p for pending in group.offsets.in_transactions.values() for p in pending if p.topic in topics]


def _append_tombstones(context: GroupContext, now: int, group: Group, keys: list[bytes], then: Then) -> None:
    if keys:
        batch = encode_batch([CoordinatorRecord(key, None) for key in keys], now)
        context.writes.append(group.partition, batch, then)
    else:
        then(now, KafkaError.NONE, NO_OFFSET)
