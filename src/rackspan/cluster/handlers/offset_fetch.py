"""OffsetFetch (key 9), versions 1-9. All of a group's offsets from v2, stable ones from v7, several groups from v8."""

from collections.abc import Mapping
from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.requests import FetchedOffset, OffsetFetch, OffsetFetchResponse
from rackspan.model.ids import TopicPartition

SEVERAL_GROUPS = 8
GROUP_ERROR = 2
"""Version 1 has no error of the group's own: it stands at each partition."""


def handle(call: Call) -> Body:
    stable = call.body.get("require_stable", False)
    if call.version >= SEVERAL_GROUPS:
        return {"groups": [_group(call, group, stable) for group in call.body["groups"]]}
    return _group(call, call.body, stable)


def _group(call: Call, asked: Mapping[str, Any], stable: bool) -> Body:
    request = OffsetFetch(asked["group_id"], _partitions(asked["topics"]), stable)
    answer = call.broker.groups.fetch_offsets(request)
    if call.version < GROUP_ERROR:
        answer = _at_each_partition(request, answer)
    return {"group_id": request.group_id, "topics": _topics(call, answer), "error_code": call.broker.code(answer.error)}


def _partitions(topics: list[dict[str, Any]] | None) -> tuple[TopicPartition, ...] | None:
    if topics is None:
        return None
    return tuple(TopicPartition(topic["name"], number) for topic in topics for number in topic["partition_indexes"])


def _at_each_partition(request: OffsetFetch, answer: OffsetFetchResponse) -> OffsetFetchResponse:
    if answer.error is KafkaError.NONE:
        return answer
    offsets = dict.fromkeys(request.partitions or (), FetchedOffset(error=answer.error))
    return OffsetFetchResponse(answer.error, offsets)


def _topics(call: Call, answer: OffsetFetchResponse) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for partition, fetched in answer.offsets.items():
        topics.setdefault(partition.topic, []).append(
            {
                "partition_index": partition.partition,
                "committed_offset": fetched.offset,
                "committed_leader_epoch": fetched.leader_epoch,
                "metadata": fetched.metadata,
                "error_code": call.broker.code(fetched.error),
            }
        )
    return [{"name": topic, "partitions": partitions} for topic, partitions in topics.items()]
