"""Whether grouping ranges into tasks by rack could save bytes (docs/decisions/0018-one-range-a-task.md), by enumeration."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.kafka_source.range_partition import planned
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.model.ids import TopicPartition

RACKS = ("r1", "r2", "r3")
Holders = Sequence[frozenset[str]]


def groupings(count: int, tasks: int) -> Iterator[tuple[int, ...]]:
    """The task of each partition, in every way in which no task is empty; equal but for the tasks' numbers counts once."""

    def extended(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(chosen) == count:
            if len(set(chosen)) == tasks:
                yield chosen
            return
        for task in range(min(tasks, max(chosen, default=-1) + 2)):
            yield from extended((*chosen, task))

    return extended(())


def across(grouping: Sequence[int], racks: Sequence[str], sizes: Sequence[int], holders: Holders) -> int:
    """Bytes across racks where task i runs in racks[i]."""
    return sum(size for task, size, held in zip(grouping, sizes, holders, strict=True) if racks[task] not in held)


partitions = st.lists(
    st.tuples(st.integers(1, 9), st.frozensets(st.sampled_from(RACKS), min_size=1)), min_size=2, max_size=4
)


@given(partitions, st.lists(st.sampled_from(RACKS), min_size=4, max_size=4), st.data())
def test_every_grouping_has_the_same_mean_bytes_across_racks(
    found: list[tuple[int, frozenset[str]]], slots: list[str], data: st.DataObject
) -> None:
    """Over all ways in which Spark can put the tasks on slots; the mean is that of one range a task, too."""
    sizes, holders = [size for size, _ in found], [held for _, held in found]
    tasks = data.draw(st.integers(1, len(found)))
    means = {
        mean([Fraction(across(grouping, racks, sizes, holders)) for racks in permutations(slots, tasks)])
        for grouping in groupings(len(found), tasks)
    }
    alone = tuple(range(len(found)))
    means.add(mean([Fraction(across(alone, racks, sizes, holders)) for racks in permutations(slots, len(found))]))
    assert len(means) == 1


def test_a_task_that_spark_could_place_would_read_less() -> None:
    """Groupings differ by their best placement, which the enumeration shows; only the mean is equal."""
    sizes, holders, slots = [1, 1], [frozenset({"r1"}), frozenset({"r2"})], ["r1", "r2"]
    best: Mapping[int, int] = {
        tasks: min(
            across(grouping, racks, sizes, holders)
            for grouping in groupings(2, tasks)
            for racks in permutations(slots, tasks)
        )
        for tasks in (1, 2)
    }
    assert best == {1: 1, 2: 0}


@pytest.mark.parametrize("count", [0, 1, 5])
def test_each_range_is_a_task_of_one_batch(count: int) -> None:
    parts = [OffsetRange(TopicPartition("orders", number), 0, 9) for number in range(count)]
    tasks = planned(parts)
    assert [task.wanted for task in tasks] == parts
    assert len({task.batch for task in tasks}) == min(1, count)
    assert all(task.batch.tasks == count for task in tasks)
