"""Ranges: what is read, split into tasks and limited, against the properties that Spark documents and brute force."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import UsageError
from rackspan.kafka_source.ranges import OffsetRange, from_json, limited, split, to_json
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


def test_offsets_are_written_as_sparks_connector_writes_them() -> None:
    offsets = {TopicPartition("b", 10): 5, TopicPartition("a", 0): 1, TopicPartition("b", 9): 4}
    assert to_json(offsets) == {"a": {"0": 1}, "b": {"9": 4, "10": 5}}
    assert from_json(to_json(offsets)) == offsets


@pytest.mark.parametrize("document", [{"a": 1}, {"a": {"x": 1}}, {"a": {"0": None}}])
def test_a_foreign_checkpoint_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="not those of rackspan-kafka"):
        from_json(document)  # type: ignore[arg-type]
