"""Descriptions of a running cluster's groups, of all four kinds, from their coordinators.

Required rights: Describe on the groups, and on the topics that consumer, share and streams groups read.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.connection import UnsupportedVersion, first
from rackspan.client.errors import FAILURES, ErrorResponse, error_response, message_of, needs, raise_for, request_failed
from rackspan.client.groups import group_coordinator
from rackspan.client.requests import alive_brokers, batches
from rackspan.errors import MalformedBytes
from rackspan.kafka_bytes.consumer_protocol import (
    WITH_RACK,
    decode_consumer_assignment,
    decode_consumer_subscription,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.group import (
    GroupDescription,
    GroupKind,
    MemberDescription,
    StreamsMember,
    SubtopologyTasks,
    SubtopologyTopics,
)
from rackspan.model.ids import RackId, TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.group_kinds import (
    ConsumerGroupDescribeRequestData,
    ConsumerGroupDescribeResponseData,
    ConsumerGroupDescribeResponseDescribedGroup,
    ShareGroupDescribeRequestData,
    ShareGroupDescribeResponseData,
    ShareGroupDescribeResponseDescribedGroup,
    StreamsGroupDescribeRequestData,
    StreamsGroupDescribeResponseData,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupDescribeResponseMember,
    TaskIds,
)
from rackspan.wire.messages.groups import (
    DescribedGroupMember,
    DescribeGroupsRequestData,
    DescribeGroupsResponseData,
    DescribeGroupsResponseDescribedGroup,
    ListGroupsRequestData,
    ListGroupsResponseData,
)

COORDINATOR_SECONDS: Final = 10.0
"""How long a group may have no coordinator before reading it fails; elections take about a second."""

_PAUSE_SECONDS: Final = 0.2
_GROUPS_PER_REQUEST: Final = 100
_COORDINATOR_MOVES: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


def read_group(settings: ConnectionSettings, group_id: str) -> GroupDescription:
    """Describe one classic or streams group; a group that is neither is described as Dead. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        return connection.run(_described_or_error, connection, group_id)


async def _described_or_error(connection: ClusterConnection, group_id: str) -> GroupDescription:
    try:
        return await _with_coordinator_retries(connection, group_id)
    except FAILURES as error:
        raise request_failed(f"group {group_id}", f"Describe on Group {group_id}", error) from error


async def _with_coordinator_retries(connection: ClusterConnection, group_id: str) -> GroupDescription:
    """Retry while the coordinator moves, and while Kafka creates its offsets topic for the first group ever."""
    until = connection.remaining_seconds - COORDINATOR_SECONDS
    while True:
        try:
            return await _one_group(connection, await group_coordinator(connection, group_id), group_id)
        except ErrorResponse as error:
            late = connection.remaining_seconds <= max(until, _PAUSE_SECONDS)
            if late or error.code not in _COORDINATOR_MOVES:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)


async def _one_group(connection: ClusterConnection, coordinator: int, group_id: str) -> GroupDescription:
    """DescribeGroups, which says Dead of a group of another type; then StreamsGroupDescribe, where the broker has it."""
    classic = first(await _describe(connection, coordinator, GroupKind.CLASSIC, [group_id]), "group")
    if classic.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
        raise_for(classic)
    described = _GROUPS[GroupKind.CLASSIC].group(classic)
    if described.state != _DEAD:
        return described
    try:
        streams = first(await _describe(connection, coordinator, GroupKind.STREAMS, [group_id]), "group")
    except UnsupportedVersion:
        return described
    if streams.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return described
    raise_for(streams)
    return _GROUPS[GroupKind.STREAMS].group(streams)


# -- all groups


async def describe_all(
    connection: ClusterConnection, chosen: re.Pattern[str] | None
) -> tuple[tuple[GroupDescription, ...], tuple[str, ...]]:
    """The groups whose whole id matches by id, and one line for each that could not be read. Errors: SourceError.

    Each broker lists the groups it coordinates and describes them. Those that move meanwhile are requested again.
    """
    found: dict[str, GroupDescription] = {}
    until = connection.remaining_seconds - COORDINATOR_SECONDS
    brokers = await alive_brokers(connection)
    while True:
        moving, unread = False, dict[str, str]()
        for described, failed in await asyncio.gather(
            *(_groups_of(connection, broker, chosen, found) for broker in brokers)
        ):
            found.update((group.group_id, group) for group in described)
            moving |= any(
                error.code in _COORDINATOR_MOVES for error in failed.values() if isinstance(error, ErrorResponse)
            )
            unread.update((name, _reason(name, error)) for name, error in failed.items())
        if not moving or connection.remaining_seconds <= max(until, _PAUSE_SECONDS):
            lines = tuple(f"{name}: {unread[name]}" for name in sorted(unread))
            return tuple(found[name] for name in sorted(found)), lines
        await asyncio.sleep(_PAUSE_SECONDS)


def _reason(name: str, error: Exception) -> str:
    """The missing right, if that is the reason."""
    if isinstance(error, ErrorResponse) and error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return needs(f"Describe on Group {name}")
    return message_of(error)


_Failed = dict[str, Exception]
"""By group, or by broker for those whose groups could not be listed."""


async def _groups_of(
    connection: ClusterConnection, broker: int, chosen: re.Pattern[str] | None, known: Mapping[str, object]
) -> tuple[list[GroupDescription], _Failed]:
    """The groups that one broker coordinates, without those that are known already."""
    failed: _Failed = {}
    try:
        listed: ListGroupsResponseData = await connection.call(
            ApiKey.LIST_GROUPS, ListGroupsRequestData(), broker=broker
        )
        raise_for(listed)
    except FAILURES as error:
        return [], {f"the groups of broker {broker}": error}
    ids: dict[GroupKind, list[str]] = {}
    for group in listed.groups:
        if group.group_id not in known and (chosen is None or chosen.fullmatch(group.group_id)):
            # A broker without group types has classic groups only; a type that Kafka adds later is left out.
            kind = group.group_type.lower() or GroupKind.CLASSIC
            if kind in GroupKind.__members__.values() and group.protocol_type in _OF_READERS:
                ids.setdefault(GroupKind(kind), []).append(group.group_id)
    described = []
    for kind, names in ids.items():
        for batch in batches(names, _GROUPS_PER_REQUEST):
            try:
                groups = await _describe(connection, broker, kind, batch)
            except FAILURES as error:
                failed.update(dict.fromkeys(batch, error))
                continue
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    described.append(_GROUPS[kind].group(group))
                elif group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
                    failed[group.group_id] = error_response(group)
    return described, failed


_Response: TypeAlias = (
    DescribeGroupsResponseData
    | ConsumerGroupDescribeResponseData
    | ShareGroupDescribeResponseData
    | StreamsGroupDescribeResponseData
)


async def _describe(
    connection: ClusterConnection, broker: int, kind: GroupKind, group_ids: Sequence[str]
) -> Sequence[Any]:
    form = _GROUPS[kind]
    response: _Response = await connection.call(form.api, form.request(group_ids), broker=broker)
    return response.groups


# -- what each kind of response says

_DEAD: Final = "Dead"
_CONSUMER: Final = "consumer"
_OF_READERS: Final = ("", _CONSUMER, "share", "streams")
"""Protocol types of groups whose members read records. Others (Connect's workers, Schema Registry's) share a group and read none."""


def _classic(described: DescribeGroupsResponseDescribedGroup) -> GroupDescription:
    """DescribeGroups (key 15). Kafka 4 reports a group that does not exist, or is of another type, as not found."""
    if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        words = (described.error_message or "not found").rstrip(".")
        return GroupDescription(described.group_id, _DEAD, "", "", error_message=words)
    consumers = described.protocol_type == _CONSUMER
    return GroupDescription(
        group_id=described.group_id,
        state=described.group_state,
        protocol_type=described.protocol_type,
        protocol=described.protocol_data,
        members=tuple(_classic_member(member, consumers=consumers) for member in described.members),
    )


def _classic_member(member: DescribedGroupMember, *, consumers: bool) -> MemberDescription:
    """A member whose bytes cannot be read, as while it joins, has no rack and no partitions; the bytes say why."""
    rack: str | None = None
    declares, topics = False, None
    partitions: Sequence[tuple[str, int]] = ()
    if consumers:
        try:
            subscription = decode_consumer_subscription(member.member_metadata)
            rack, declares = subscription.rack, subscription.version >= WITH_RACK
            topics = frozenset(subscription.topics)
            partitions = decode_consumer_assignment(member.member_assignment).partitions
        except MalformedBytes:
            pass
    return MemberDescription(
        member.member_id,
        member.client_id,
        member.member_metadata,
        member.member_assignment,
        host=_host(member.client_host),
        rack=RackId(rack) if rack else None,
        declares_rack=declares,
        topics=topics,
        partitions=tuple(TopicPartition(*partition) for partition in partitions),
    )


def _consumer_or_share(
    described: ConsumerGroupDescribeResponseDescribedGroup | ShareGroupDescribeResponseDescribedGroup, kind: GroupKind
) -> GroupDescription:
    """ConsumerGroupDescribe (key 69), ShareGroupDescribe (key 77)."""
    return GroupDescription(
        group_id=described.group_id,
        state=described.group_state,
        protocol_type=kind.value,
        protocol=described.assignor_name,
        members=tuple(
            MemberDescription(
                member.member_id,
                member.client_id,
                host=_host(member.client_host),
                rack=RackId(member.rack_id) if member.rack_id else None,
                topics=frozenset(member.subscribed_topic_names) or None,
                partitions=tuple(
                    TopicPartition(topic.topic_name, partition)
                    for topic in (member.assignment.topic_partitions if member.assignment else ())
                    for partition in topic.partitions
                ),
            )
            for member in described.members
        ),
        kind=kind,
    )


def _streams(described: StreamsGroupDescribeResponseDescribedGroup) -> GroupDescription:
    """StreamsGroupDescribe (key 89)."""
    subtopologies = described.topology.subtopologies if described.topology else ()
    return GroupDescription(
        group_id=described.group_id,
        state=described.group_state,
        protocol_type=GroupKind.STREAMS.value,
        # Of a broker before Kafka 4.4 it is not known.
        protocol=described.assignor_name or "",
        members=tuple(_streams_member(member) for member in described.members),
        kind=GroupKind.STREAMS,
        topology={
            part.subtopology_id: SubtopologyTopics(
                sources=(*part.source_topics, *(topic.name for topic in part.repartition_source_topics)),
                changelogs=tuple(topic.name for topic in part.state_changelog_topics),
            )
            for part in subtopologies or ()
        },
    )


def _streams_member(member: StreamsGroupDescribeResponseMember) -> MemberDescription:
    tasks = member.assignment
    return MemberDescription(
        member.member_id,
        member.client_id,
        host=_host(member.client_host),
        rack=RackId(member.rack_id) if member.rack_id else None,
        streams=StreamsMember(
            process_id=member.process_id,
            tags={tag.key: tag.value for tag in member.client_tags},
            active=_tasks(tasks.active_tasks if tasks else ()),
            standby=_tasks(tasks.standby_tasks if tasks else ()),
            warmup=_tasks(tasks.warmup_tasks if tasks else ()),
            # A broker that does not fill them sends none, which is not the same as a position of 0.
            offsets={(at.subtopology_id, at.partition): at.offset for at in member.task_offsets} or None,
        ),
    )


def _tasks(listed: Iterable[TaskIds]) -> SubtopologyTasks:
    return {tasks.subtopology_id: tuple(tasks.partitions) for tasks in listed}


def _host(text: str) -> str:
    """A host as brokers report it, without the slash that Java's InetAddress begins with."""
    return text.removeprefix("/")


@dataclass(frozen=True, slots=True)
class _Form:
    """How groups of a kind are requested, and what their response becomes."""

    api: ApiKey
    request: Callable[[Sequence[str]], Any]
    group: Callable[[Any], GroupDescription]


_GROUPS: Final[Mapping[GroupKind, _Form]] = {
    GroupKind.CLASSIC: _Form(ApiKey.DESCRIBE_GROUPS, lambda ids: DescribeGroupsRequestData(groups=ids), _classic),
    GroupKind.CONSUMER: _Form(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        lambda ids: ConsumerGroupDescribeRequestData(group_ids=ids),
        lambda described: _consumer_or_share(described, GroupKind.CONSUMER),
    ),
    GroupKind.SHARE: _Form(
        ApiKey.SHARE_GROUP_DESCRIBE,
        lambda ids: ShareGroupDescribeRequestData(group_ids=ids),
        lambda described: _consumer_or_share(described, GroupKind.SHARE),
    ),
    GroupKind.STREAMS: _Form(
        ApiKey.STREAMS_GROUP_DESCRIBE, lambda ids: StreamsGroupDescribeRequestData(group_ids=ids), _streams
    ),
}
