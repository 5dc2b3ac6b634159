"""ListOffsets (key 2), versions 1-10: the ends of logs, and the offset at a timestamp.

Answered by leaders only. A timestamp beyond the last record gives offset -1 with timestamp -1: Java clients throw at any
other pair. Special timestamps: -1 the end, -2 the start, -3 the greatest timestamp (KIP-734), -4 and -5 of tiered logs,
where every log is local here.
"""

from typing import Any, Final

from rackspan.cluster.answers import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import TopicPartition
from rackspan.cluster.opened_records import RecordPlace, first_at, latest

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5

NOWHERE: Final = RecordPlace(-1, -1)
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
    view = call.broker.leaders_view(partition, one.get("current_leader_epoch", -1))
    if isinstance(view, KafkaError):
        return {
            "partition_index": partition.partition,
            "error_code": view,
            "timestamp": -1,
            "offset": -1,
            "leader_epoch": -1,
        }
    committed_only = call.body.get("isolation_level", 0) == READ_COMMITTED
    upper = view.log.last_stable_offset if committed_only else view.log.high_watermark
    place = _place(view.log, one["timestamp"], upper)
    return {
        "partition_index": partition.partition,
        "error_code": KafkaError.NONE,
        "timestamp": place.timestamp,
        "offset": place.offset,
        "leader_epoch": view.leader_epoch if place.offset >= 0 else -1,
    }  # fmt: skip


def _place(log: Any, timestamp: int, upper: int) -> RecordPlace:
    if timestamp == LATEST:
        return RecordPlace(upper, -1)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return RecordPlace(log.start_offset, -1)
    if timestamp == LATEST_TIERED:
        return NOWHERE
    if timestamp == MAX_TIMESTAMP:
        batch = log.batch_of_greatest_timestamp(upper)
        return latest(batch) if batch is not None else NOWHERE
    batch = log.batch_at_timestamp(timestamp, upper)
    return first_at(batch, timestamp) if batch is not None else NOWHERE
