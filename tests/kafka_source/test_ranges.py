"""Ranges: what is read, split into tasks and limited, against the properties that Spark documents and brute force."""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import ClusterRequestFailed, UsageError
from rackspan.kafka_source.cluster import SourceMetadata, SourcePartition, SourceTopic
from rackspan.kafka_source.options import Position, parse
from rackspan.kafka_source.ranges import OffsetRange, chosen_partitions, limited, resolved, split
from rackspan.model.ids import TopicPartition

ORDERS = [TopicPartition("orders", number) for number in range(6)]

whole = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 300)), min_size=1, max_size=6).map(
    lambda drawn: [OffsetRange(ORDERS[i], start, start + size) for i, (start, size) in enumerate(drawn)]
)
counts = st.none() | st.integers(1, 40)


@given(whole, counts, counts)
def test_parts_cover_every_record_once_in_order(ranges: list[OffsetRange], least: int | None, most: int | None) -> None:
    parts = split(ranges, least, most)
    covered = [(part.partition, offset) for part in parts for offset in range(part.start, part.end)]
    assert covered == [(one.partition, offset) for one in ranges for offset in range(one.start, one.end)]
    assert all(part.size for part in parts)
    assert most is None or all(part.size <= most for part in parts)


@given(whole, st.integers(1, 40))
def test_tasks_follow_sparks_formula(ranges: list[OffsetRange], least: int) -> None:
    """Small ranges are one task; the others share what is left in proportion, rounded half up: Spark's documented rule."""
    sizes = [one.size for one in ranges if one.size]
    expected = [1] * len(sizes)
    if sizes and len(sizes) < least:

        def share(size: int, total: int, tasks: int) -> int:
            return max(1, math.floor(Fraction(size * tasks, total) + Fraction(1, 2)))

        alone = [share(size, sum(sizes), least) == 1 for size in sizes]
        rest = sum(size for size, single in zip(sizes, alone, strict=True) if not single)
        tasks = max(1, least - sum(alone))
        expected = [
            1 if single else min(size, share(size, rest, tasks)) for size, single in zip(sizes, alone, strict=True)
        ]
    parts = split(ranges, least, None)
    partitions = [one.partition for one in ranges if one.size]
    assert [sum(part.partition == partition for part in parts) for partition in partitions] == expected


@given(whole, st.integers(1, 500))
def test_a_limit_draws_back_ends_in_proportion_and_starves_no_partition(ranges: list[OffsetRange], limit: int) -> None:
    start = {one.partition: one.start for one in ranges}
    end = {one.partition: one.end for one in ranges}
    found = limited(start, end, limit)
    total = sum(one.size for one in ranges)
    for one in ranges:
        read = found[one.partition] - one.start
        assert 0 <= read <= one.size
        if total <= limit:
            assert read == one.size
        elif one.size:
            assert read >= 1
            assert abs(read - limit * one.size / total) < 1
    assert total <= limit or sum(found[one.partition] - one.start for one in ranges) <= limit + len(ranges)


@given(whole, st.lists(st.floats(1, 5000), min_size=6, max_size=6), st.integers(1, 200_000))
def test_a_limit_of_bytes_weighs_records(ranges: list[OffsetRange], weights: list[float], limit: int) -> None:
    start = {one.partition: one.start for one in ranges}
    end = {one.partition: one.end for one in ranges}
    sizes = {one.partition: weights[index] for index, one in enumerate(ranges)}
    found = limited(start, end, limit, sizes)
    read = {partition: found[partition] - start[partition] for partition in end}
    if sum(one.size * sizes[one.partition] for one in ranges) <= limit:
        assert found == end
        return
    assert all(read[one.partition] >= 1 for one in ranges if one.size)
    beyond_one = {partition: count for partition, count in read.items() if count > 1}
    assert sum(count * sizes[partition] for partition, count in beyond_one.items()) <= limit
    # Not much less than was allowed: each partition is rounded down by less than one record.
    assert sum((count + 1) * sizes[partition] for partition, count in read.items()) >= limit


class FakeCluster:
    """Topics a and b with two partitions each; records 0 to 9 of a-0, one each 100 ms, and no record elsewhere."""

    def __init__(self, **errors: str) -> None:
        self.errors = errors
        self.requests: list[Mapping[TopicPartition, int]] = []

    def metadata(self, topics: Iterable[str]) -> SourceMetadata:
        row = SourcePartition(1, (1,), (1,))
        known = {name: SourceTopic(None, {0: row, 1: row}) for name in topics if name not in self.errors}
        return SourceMetadata({1: None}, known, self.errors)

    def offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self.requests.append(timestamps)
        return {partition: self._offset(partition, at) for partition, at in timestamps.items()}

    def _offset(self, partition: TopicPartition, at: int) -> int:
        end = 10 if partition == TopicPartition("a", 0) else 0
        if at < 0:
            return {-1: end, -2: 0}[at]
        return at // 100 if at // 100 < end else -1


A0, A1, B0, B1 = (TopicPartition(name, number) for name in "ab" for number in (0, 1))


def chosen(cluster: FakeCluster, **given: str) -> list[TopicPartition]:
    options = parse({"kafka.bootstrap.servers": "h:1", **given}, streaming=False)
    return chosen_partitions(cluster, options).partitions()  # type: ignore[arg-type]


def test_topics_and_assigned_partitions_are_chosen() -> None:
    assert chosen(FakeCluster(), subscribe="a, b") == [A0, A1, B0, B1]
    assert chosen(FakeCluster(), assign='{"a": [1], "b": [0]}') == [A1, B0]


def test_a_topic_or_partition_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ClusterRequestFailed, match=r"topic b: UNKNOWN_TOPIC_OR_PARTITION \(3\); create it"):
        chosen(FakeCluster(b="UNKNOWN_TOPIC_OR_PARTITION (3)"), subscribe="a,b")
    with pytest.raises(ClusterRequestFailed, match="option assign: there is no partition a-2"):
        chosen(FakeCluster(), assign='{"a": [0, 2]}')


def at(position: Position, *, young_is_end: bool = False) -> dict[TopicPartition, int]:
    return resolved(FakeCluster(), [A0, A1], position, "startingOffsets", young_is_end=young_is_end)  # type: ignore[arg-type]


def test_positions_become_offsets() -> None:
    assert at(Position(name="earliest")) == {A0: 0, A1: 0}
    assert at(Position(name="latest")) == {A0: 10, A1: 0}
    assert at(Position(offsets={A0: 4, A1: -2})) == {A0: 4, A1: 0}
    assert at(Position(timestamp_ms=300), young_is_end=True) == {A0: 3, A1: 0}
    assert at(Position(timestamps_ms={A0: 1000, A1: 0}), young_is_end=True) == {A0: 10, A1: 0}


def test_no_record_so_young_is_an_error_unless_the_end_is_meant() -> None:
    with pytest.raises(UsageError, match="a-1 has no record at or after 300 ms"):
        at(Position(timestamp_ms=300))


@pytest.mark.parametrize("position", [lambda at: Position(offsets=at), lambda at: Position(timestamps_ms=at)])
def test_positions_name_exactly_the_partitions_that_are_read(
    position: Callable[[Mapping[TopicPartition, int]], Position],
) -> None:
    with pytest.raises(UsageError, match="a-1 is read and has no offset there"):
        at(position({A0: 1}))
    with pytest.raises(UsageError, match="b-0 is not among the partitions that are read"):
        at(position({A0: 1, A1: 1, B0: 1}))
