"""ListOffsets (key 2), versions 1-10: the ends of logs, and the offset at a timestamp.

Answered by leaders only. A timestamp beyond the last record gives offset -1 with timestamp -1: Java clients throw at any
other pair. Special timestamps: -1 the end, -2 the start, -3 the greatest timestamp (KIP-734), -4 and -5 of tiered logs,
where every log is local here.
"""

from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.broker import Isolation
from rackspan.cluster.core.broker.reading import EARLIEST, MAX_TIMESTAMP, OffsetResponse
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.handlers.common.record_reader import RecordPosition, first_at, latest
from rackspan.model.ids import TopicPartition

EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5

READ_COMMITTED: Final = 1


def handle(call: Call) -> Body:
    return {
        "topics": [
            {"name": topic["name"], "partitions": [_listed(call, topic["name"], one) for one in topic["partitions"]]}
            for topic in call.body["topics"]
        ]
    }


def _listed(call: Call, topic: str, one: dict[str, Any]) -> dict[str, Any]:
    partition = TopicPartition(topic, one["partition_index"])
    result = _asked(call, partition, one)
    place = _place(result, one["timestamp"])
    return {
        "partition_index": partition.partition,
        "error_code": call.broker.code(result.error),
        "timestamp": place.timestamp,
        "offset": place.offset,
        "leader_epoch": result.leader_epoch if place.offset >= 0 else -1,
    }


def _asked(call: Call, partition: TopicPartition, one: dict[str, Any]) -> OffsetResponse:
    if one["timestamp"] == LATEST_TIERED:
        return OffsetResponse(KafkaError.NONE)
    return call.broker.core.offset_for_timestamp(
        partition,
        EARLIEST if one["timestamp"] == EARLIEST_LOCAL else one["timestamp"],
        Isolation(call.body.get("isolation_level", 0) & READ_COMMITTED),
        one.get("current_leader_epoch", -1),
    )


def _place(result: OffsetResponse, timestamp: int) -> RecordPosition:
    if result.batch is None:
        return RecordPosition(result.offset, -1)
    return latest(result.batch) if timestamp == MAX_TIMESTAMP else first_at(result.batch, timestamp)
