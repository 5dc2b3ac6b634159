"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ended, so that a consumer notices a log that was cut (KIP-320)."""

from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.model.ids import TopicPartition


def handle(call: Call) -> Body:
    return {
        "topics": [
            {"topic": topic["topic"], "partitions": [_end(call, topic["topic"], one) for one in topic["partitions"]]}
            for topic in call.body["topics"]
        ]
    }


def _end(call: Call, topic: str, one: dict[str, Any]) -> dict[str, Any]:
    error, end = call.broker.core.offset_for_leader_epoch(
        TopicPartition(topic, one["partition"]), one["leader_epoch"], one["current_leader_epoch"]
    )
    return {
        "partition": one["partition"],
        "error_code": call.broker.code(error),
        "leader_epoch": end.epoch,
        "end_offset": end.end_offset,
    }
