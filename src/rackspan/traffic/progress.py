"""Bytes that groups read between two readings, by the offsets that they committed."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from rackspan.model.ids import TopicPartition
from rackspan.traffic.logs import ClusterLogs, Volumes

GroupProgress: TypeAlias = Mapping[str, Mapping[TopicPartition, int | None]]
"""Bytes by group and partition; None if the group reads and they are not known."""

NOTHING_COMMITTED: Final[GroupProgress] = {}


def group_progress(before: ClusterLogs, after: ClusterLogs, volumes: Volumes) -> GroupProgress:
    """The bytes of the records between the offsets that each group had committed at both readings.

    A group that committed nothing while records arrived may be behind, or commit seldom; one with an offset at one reading
    only began, or was reset: what it read is not known. A group without offsets is left out: it may keep them elsewhere.
    """
    names = [str(topic.name) for topic in after.snapshot.topics]
    rows = after.snapshot.partitions
    columns = rows.topic.tolist(), rows.partition.tolist(), volumes.records.tolist(), volumes.record_bytes.tolist()
    written = {
        TopicPartition(names[topic], partition): (records, size)
        for topic, partition, records, size in zip(*columns, strict=True)
    }
    return {
        group: {
            partition: _bytes_read(_advanced(earlier, later, partition), *written[partition])
            for partition in {*earlier, *later}
            if partition in written
        }
        for group in {*before.committed, *after.committed}
        for earlier, later in [(before.committed.get(group, {}), after.committed.get(group, {}))]
    }


def _advanced(
    earlier: Mapping[TopicPartition, int], later: Mapping[TopicPartition, int], partition: TopicPartition
) -> int | None:
    if partition in earlier and partition in later:
        return later[partition] - earlier[partition]
    return None


def _bytes_read(read: int | None, written: int, record_bytes: float) -> int | None:
    """`read` and `written` count records; `written` is negative, and `record_bytes` infinite, if not known."""
    if read == 0 and written == 0:
        return 0
    if read is None or read <= 0 or record_bytes == float("inf"):
        return None
    return round(read * record_bytes)
