"""DescribeLogDirs (key 35), versions 1-4: the size of every log of this broker. One folder, which exists in memory only."""

from collections.abc import Iterable
from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.handlers.common.topics import by_topic
from rackspan.model.ids import TopicPartition

LOG_DIR: Final = "/memory"
UNKNOWN: Final = -1


def handle(call: Call) -> Body:
    asked = call.body["topics"]
    logs = call.broker.logs
    wanted: Iterable[TopicPartition] = logs if asked is None else (
        TopicPartition(topic["topic"], index) for topic in asked for index in topic["partitions"]
    )  # fmt: skip
    held = by_topic(sorted(one for one in wanted if one in logs), lambda one: one.topic)
    topics = [
        {"name": topic, "partitions": [_partition(call, one) for one in listed]} for topic, listed in held.items()
    ]
    return {"results": [{"log_dir": LOG_DIR, "topics": topics, "total_bytes": UNKNOWN, "usable_bytes": UNKNOWN}]}


def _partition(call: Call, partition: TopicPartition) -> dict[str, Any]:
    return {
        "partition_index": partition.partition,
        "partition_size": call.broker.logs[partition].size_bytes,
        "offset_lag": 0,
    }
