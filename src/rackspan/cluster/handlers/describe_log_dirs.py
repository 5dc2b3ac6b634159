"""DescribeLogDirs (key 35), versions 1-5: the size of each log of this broker. Its one log directory exists in memory only."""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.handlers.common import by_topic
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.brokers import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequestData,
    DescribeLogDirsResponseData,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

LOG_DIR: Final = "/memory"
UNKNOWN: Final = -1


def handle(call: Call[DescribeLogDirsRequestData]) -> DescribeLogDirsResponseData:
    topics = call.request.topics
    logs = call.broker.logs
    requested: Iterable[TopicPartition] = logs if topics is None else (
        TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions
    )  # fmt: skip
    partitions = by_topic(sorted(partition for partition in requested if partition in logs))
    return DescribeLogDirsResponseData(
        results=[
            DescribeLogDirsResult(
                log_dir=LOG_DIR,
                topics=[
                    DescribeLogDirsTopic(name=topic, partitions=[_partition(call, each) for each in of_topic])
                    for topic, of_topic in partitions.items()
                ],
                total_bytes=UNKNOWN,
                usable_bytes=UNKNOWN,
            )
        ]
    )


def _partition(call: Call[object], partition: TopicPartition) -> DescribeLogDirsPartition:
    size_bytes = call.broker.logs[partition].size_bytes
    return DescribeLogDirsPartition(partition_index=partition.partition, partition_size=size_bytes, offset_lag=0)
