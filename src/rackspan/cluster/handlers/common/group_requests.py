"""Requests to the group coordinator, and the offsets that two of them commit."""

from collections.abc import Iterable
from typing import Any

from rackspan.cluster.context import Call
from rackspan.cluster.core.groups.requests import CommittedOffset, GroupRequest
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.group_offsets import OffsetCommitRequestTopic
from rackspan.wire.messages.transactions import TxnOffsetCommitRequestTopic


async def group_response(call: Call[object], request: GroupRequest) -> Any:
    """The group coordinator's response, of the class that belongs to the request's."""
    return await call.broker.requests.coordinator_response(request)


def partition_exists(call: Call[object], partition: TopicPartition) -> bool:
    return call.broker.image.partition(partition) is not None


def committed_offsets(
    topics: Iterable[OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic],
) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic.name, partition.partition_index): CommittedOffset(
            partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata or ""
        )
        for topic in topics
        for partition in topic.partitions
    }
