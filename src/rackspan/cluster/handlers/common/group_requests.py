"""What the handlers of groups and transactions share: partitions of a request, and errors by topic for a response."""

from collections.abc import Callable, Mapping
from typing import Any

from rackspan.cluster.context.call import Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import CommittedOffset, GroupRequest
from rackspan.model.ids import TopicPartition


async def group_response(call: Call, request: GroupRequest) -> Any:
    """The group coordinator's response."""
    return await call.broker.group_requests.response(request)


def exists(call: Call, partition: TopicPartition) -> bool:
    return call.broker.image.partition(partition) is not None


def committed(body: Mapping[str, Any]) -> dict[TopicPartition, CommittedOffset]:
    """The offsets of an OffsetCommit or TxnOffsetCommit."""
    return {
        TopicPartition(topic["name"], one["partition_index"]): CommittedOffset(
            one["committed_offset"], one.get("committed_leader_epoch", -1), one["committed_metadata"] or ""
        )
        for topic in body["topics"]
        for one in topic["partitions"]
    }


def errors_by_topic(
    call: Call, errors: Mapping[TopicPartition, KafkaError], order: Callable[[], list[TopicPartition]]
) -> list[dict[str, Any]]:
    """`order` is the request's: a response names topics and partitions as it was asked."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for partition in order():
        place = {"partition_index": partition.partition, "error_code": call.broker.code(errors[partition])}
        topics.setdefault(partition.topic, []).append(place)
    return [{"name": topic, "partitions": partitions} for topic, partitions in topics.items()]
