"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ended, so that a consumer notices a log that was cut (KIP-320)."""

from typing import Any

from rackspan.cluster.answers import Body, Call
from rackspan.cluster.core.ids import TopicPartition


def handle(call: Call) -> Body:
    return {
        "topics": [
            {"topic": topic["topic"], "partitions": [_end(call, topic["topic"], one) for one in topic["partitions"]]}
            for topic in call.body["topics"]
        ]
    }


def _end(call: Call, topic: str, one: dict[str, Any]) -> dict[str, Any]:
    result = call.broker.offset_for_leader_epoch(
        TopicPartition(topic, one["partition"]), one["current_leader_epoch"], one["leader_epoch"]
    )
    return {
        "partition": one["partition"],
        "error_code": call.broker.code(result.error),
        "leader_epoch": result.leader_epoch,
        "end_offset": result.offset,
    }
