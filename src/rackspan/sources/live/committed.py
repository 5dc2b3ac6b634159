"""The offsets that the groups of a running cluster have committed, from their coordinators.

Required rights: Describe on the groups, and on the topics that they read. Share groups commit none (KIP-932).
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.client.cluster import ClusterConnection
from rackspan.client.errors import FAILURES, ErrorResponse, message_of, needs, raise_for
from rackspan.client.requests import alive_brokers, batches
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.model.ids import TopicPartition
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.group_offsets import OffsetFetchRequestData, OffsetFetchResponseData
from rackspan.wire.messages.groups import ListGroupsRequestData, ListGroupsResponseData

_LAST_OF_ONE_GROUP: Final = 7
"""The version of OffsetFetch; later ones take many groups."""

_NO_OFFSET: Final = -1

_GROUPS_AT_ONCE: Final = 100
"""Requests without a response on one connection. One after the other, thousands of groups of a distant cluster take minutes."""


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """By group, and one line for each group or broker whose offsets could not be read."""

    by_group: Mapping[str, Mapping[TopicPartition, int]]
    unread: tuple[str, ...] = ()


async def committed_offsets(connection: ClusterConnection) -> CommittedOffsets:
    """The offsets of every group that this user may see. Errors: SourceError."""
    brokers = await alive_brokers(connection)
    found: dict[str, Mapping[TopicPartition, int]] = {}
    unread: list[str] = []
    for committed in await asyncio.gather(*(_of_coordinator(connection, broker) for broker in brokers)):
        found.update(committed.by_group)
        unread += committed.unread
    return CommittedOffsets(found, tuple(unread))


async def _of_coordinator(connection: ClusterConnection, broker: int) -> CommittedOffsets:
    try:
        listed: ListGroupsResponseData = await connection.call(
            ApiKey.LIST_GROUPS, ListGroupsRequestData(), broker=broker
        )
        raise_for(listed)
    except FAILURES as error:
        return CommittedOffsets({}, (f"the groups of broker {broker}: {message_of(error)}",))
    found: dict[str, Mapping[TopicPartition, int]] = {}
    unread: list[str] = []
    for groups in batches([group.group_id for group in listed.groups], _GROUPS_AT_ONCE):
        responses = await asyncio.gather(
            *(_of_group(connection, broker, group) for group in groups), return_exceptions=True
        )
        for group, response in zip(groups, responses, strict=True):
            if not isinstance(response, BaseException):
                found[group], refused = response
                unread += (
                    f"offsets of group {group}: {code} of {count_noun(partitions, 'partition')}"
                    for code, partitions in refused.items()
                )
            elif isinstance(response, FAILURES):
                unread.append(f"offsets of group {group}: {_reason(group, response)}")
            else:
                raise response
    return CommittedOffsets(found, tuple(unread))


async def _of_group(
    connection: ClusterConnection, broker: int, group_id: str
) -> tuple[dict[TopicPartition, int], Counter[str]]:
    """OffsetFetch (key 9) of all partitions of one group, and how many the broker refused, by error.

    None for a share group, and one that has just gone.
    """
    request = OffsetFetchRequestData(group_id=group_id, topics=None)
    response: OffsetFetchResponseData = await connection.call(
        ApiKey.OFFSET_FETCH, request, broker=broker, most=_LAST_OF_ONE_GROUP
    )
    if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}, Counter()
    raise_for(response)
    offsets = {
        TopicPartition(topic.name, row.partition_index): row.committed_offset
        for topic in response.topics
        for row in topic.partitions
        if row.error_code == ErrorCode.NONE and row.committed_offset != _NO_OFFSET
    }
    codes = (row.error_code for topic in response.topics for row in topic.partitions)
    return offsets, Counter(error_code(code).name for code in codes if code != ErrorCode.NONE)


def _reason(group_id: str, error: Exception) -> str:
    if isinstance(error, ErrorResponse) and error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return needs(f"Describe on Group {group_id}")
    return message_of(error)
