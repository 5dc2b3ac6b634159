"""Ranges of offsets: which records a query or a micro-batch reads, how they are split into tasks, and how a trigger is limited.

Pure, but for the functions that take a SourceCluster, which resolve names and timestamps to offsets.

Source: Spark's KafkaOffsetReader and KafkaOffsetRangeCalculator, whose results these equal.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, TypeAlias

from rackspan.errors import ClusterRequestFailed, UsageError
from rackspan.kafka_source.cluster import SourceCluster, SourceMetadata
from rackspan.kafka_source.options import (
    EARLIEST,
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    KafkaSourceOptions,
    Position,
    TopicChoice,
    parse_assign,
)
from rackspan.model.ids import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int]
Sizes: TypeAlias = Mapping[TopicPartition, float]

_NONE_SO_YOUNG: Final = -1
"""ListOffsets found no record at or after a timestamp."""


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """start <= offset < end of one partition."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: str | None = field(default=None, compare=False)
    """The id of the topic: one that is created again under its name has another."""

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def chosen_partitions(cluster: SourceCluster, options: KafkaSourceOptions) -> SourceMetadata:
    """The topics that the options choose. Errors: ClusterRequestFailed for a topic or partition that there is not."""
    if options.strategy is TopicChoice.SUBSCRIBE_PATTERN:
        return cluster.matching(options.topics)
    assigned = parse_assign(options.topics) if options.strategy is TopicChoice.ASSIGN else None
    names = (
        {p.topic for p in assigned}
        if assigned
        else {name.strip() for name in options.topics.split(",") if name.strip()}
    )
    metadata = cluster.metadata(names)
    for name, error in sorted(metadata.errors.items()):
        raise ClusterRequestFailed(f"topic {name}: {error}; create it, or check the name and the right to describe it")
    if assigned is None:
        return metadata
    existing = set(metadata.partitions())
    for partition in assigned:
        if partition not in existing:
            raise ClusterRequestFailed(f"option assign: there is no partition {partition}")
    topics = {
        name: replace(
            topic, partitions={n: row for n, row in topic.partitions.items() if TopicPartition(name, n) in assigned}
        )
        for name, topic in metadata.topics.items()
    }
    return replace(metadata, topics=topics)


def resolved(
    cluster: SourceCluster, partitions: Iterable[TopicPartition], position: Position, option: str, *, young_is_end: bool
) -> dict[TopicPartition, int]:
    """The offset of each partition at a position. `young_is_end`: a timestamp after the last record means the end.

    Errors: UsageError if the position names other partitions than the query reads, or no record is so young.
    """
    wanted = sorted(partitions)
    if position.name is not None:
        at = EARLIEST_OFFSET if position.name == EARLIEST else LATEST_OFFSET
        return cluster.offsets(dict.fromkeys(wanted, at))
    if position.offsets is not None:
        _check_named(wanted, position.offsets, option)
        by_name = {partition: at for partition, at in position.offsets.items() if at < 0}
        return {**position.offsets, **cluster.offsets(by_name)}
    timestamps = position.timestamps_ms
    if timestamps is None:
        timestamps = dict.fromkeys(wanted, position.timestamp_ms or 0)
    _check_named(wanted, timestamps, option)
    found = cluster.offsets(timestamps)
    too_young = {partition for partition, offset in found.items() if offset == _NONE_SO_YOUNG}
    if too_young and not young_is_end:
        partition = min(too_young)
        raise UsageError(
            f"option {option}: {partition} has no record at or after {timestamps[partition]} ms; choose an earlier time, "
            "or startingOffsetsByTimestampStrategy=latest to start at the end"
        )
    return found | cluster.offsets(dict.fromkeys(too_young, LATEST_OFFSET))


def _check_named(partitions: Iterable[TopicPartition], named: Offsets, option: str) -> None:
    wanted, given = set(partitions), set(named)
    if missing := wanted - given:
        raise UsageError(f"option {option}: {min(missing)} is read and has no offset there; name every partition")
    if surplus := given - wanted:
        raise UsageError(f"option {option}: {min(surplus)} is not among the partitions that are read")


def split(ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Ranges for tasks: at least `min_partitions` if the records suffice, none above `max_records`. Empty ones are left out."""
    parts = [part for whole in ranges if whole.size for part in _split_by_size(whole, max_records)]
    if not min_partitions or len(parts) >= min_partitions:
        return parts
    total = sum(part.size for part in parts)
    whole = {part for part in parts if _share(part.size, total, min_partitions) == 1}
    # The others share the tasks that are left, in proportion to their size.
    rest, tasks = sum(part.size for part in parts if part not in whole), max(1, min_partitions - len(whole))
    return [
        piece
        for part in parts
        for piece in ([part] if part in whole else _divided(part, _share(part.size, rest, tasks)))
    ]


def _share(size: int, total: int, tasks: int) -> int:
    return max(1, math.floor(size / total * tasks + 0.5))


def _split_by_size(whole: OffsetRange, max_records: int | None) -> list[OffsetRange]:
    return _divided(whole, math.ceil(whole.size / max_records)) if max_records else [whole]


def _divided(whole: OffsetRange, count: int) -> list[OffsetRange]:
    bounds = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [replace(whole, start=begin, end=end) for begin, end in pairwise(bounds) if end > begin]


def limited(
    start: Offsets, end: Offsets, most: int, bytes_per_offset: Sizes | None = None
) -> dict[TopicPartition, int]:
    """`end`, drawn back so that at most about `most` records are read, from each partition its share.

    With `bytes_per_offset`, averages by partition, `most` is a number of bytes. As Spark's connector: a share below one record
    is one record, so that no partition waits for ever.
    """
    sizes = {partition: max(0, end[partition] - start.get(partition, 0)) for partition in end}
    weight = bytes_per_offset or dict.fromkeys(end, 1.0)
    total = sum(size * weight[partition] for partition, size in sizes.items())
    if total <= most:
        return dict(end)
    limits = {}
    for partition, size in sizes.items():
        # The same fraction of each partition, whatever its records weigh.
        share = most * size / total
        limits[partition] = end[partition] - size + min(size, math.ceil(share) if share < 1 else math.floor(share))
    return limits
