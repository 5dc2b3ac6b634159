"""OffsetFetch (key 9), versions 1-9. All of a group's offsets from v2 on, stable ones from v7, several groups from v8."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import FetchedOffset, OffsetFetch, OffsetFetchResponse
from rackspan.cluster.handlers.common import by_topic
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.group_offsets import (
    OffsetFetchRequestData,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseData,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

T = TypeVar("T")

SEVERAL_GROUPS_SINCE: Final = 8
GROUP_ERROR_SINCE: Final = 2
"""Version 1 has no error for the whole group; each of its partitions has the error instead."""


def handle(call: Call[OffsetFetchRequestData]) -> OffsetFetchResponseData:
    request = call.request
    if call.version >= SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponseData(groups=[_group(call, group) for group in request.groups])
    fetch = OffsetFetch(request.group_id, _partitions(request.topics), request.require_stable)
    response = call.broker.groups.fetch_offsets(fetch)
    if call.version < GROUP_ERROR_SINCE and response.error is not ErrorCode.NONE:
        failed = FetchedOffset(error=response.error)
        response = OffsetFetchResponse(response.error, dict.fromkeys(fetch.partitions or (), failed))
    return OffsetFetchResponseData(
        topics=_fetched(call, response, OffsetFetchResponseTopic, OffsetFetchResponsePartition),
        error_code=call.broker.code(response.error),
    )


def _group(call: Call[OffsetFetchRequestData], group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    fetch = OffsetFetch(group.group_id, _partitions(group.topics), call.request.require_stable)
    response = call.broker.groups.fetch_offsets(fetch)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=_fetched(call, response, OffsetFetchResponseTopics, OffsetFetchResponsePartitions),
        error_code=call.broker.code(response.error),
    )


def _fetched(
    call: Call[OffsetFetchRequestData],
    response: OffsetFetchResponse,
    of_topic: Callable[..., T],
    of_partition: Callable[..., OffsetFetchResponsePartition | OffsetFetchResponsePartitions],
) -> list[T]:
    """The offsets by topic, in the structures of the version: those of several groups have names of their own."""
    return [
        of_topic(
            name=topic,
            partitions=[
                of_partition(
                    partition_index=partition.partition,
                    committed_offset=fetched.offset,
                    committed_leader_epoch=fetched.leader_epoch,
                    metadata=fetched.metadata,
                    error_code=call.broker.code(fetched.error),
                )
                for partition, fetched in items
            ],
        )
        for topic, items in by_topic(response.offsets.items(), lambda item: item[0]).items()
    ]


def _partitions(
    topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
) -> tuple[TopicPartition, ...] | None:
    """None: all partitions with a committed offset."""
    if topics is None:
        return None
    return tuple(TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes)
