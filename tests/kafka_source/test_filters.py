"""Pushed filters, against the same conditions tested row by row."""

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from rackspan.kafka_source.filters import Bounds
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.model.ids import TopicPartition

ROWS = [(topic, partition, offset) for topic in "ab" for partition in (0, 1, 2) for offset in range(8)]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "In": lambda found, values: found in values,
}
COLUMNS = {"topic": 0, "partition": 1, "offset": 2}

number = st.integers(-2, 9)
compare = st.sampled_from(
    [spark.EqualTo, spark.GreaterThan, spark.GreaterThanOrEqual, spark.LessThan, spark.LessThanOrEqual]
)
conditions = st.one_of(
    st.builds(lambda kind, value: kind(("offset",), value), compare, number),
    st.builds(lambda kind, value: kind(("partition",), value), compare, st.integers(0, 3)),
    st.builds(lambda values: spark.In(("partition",), tuple(values)), st.lists(st.integers(0, 3), max_size=3)),
    st.builds(lambda value: spark.EqualTo(("topic",), value), st.sampled_from("abc")),
    st.just(spark.IsNotNull(("offset",))),
    st.just(spark.IsNull(("key",))),
    st.builds(lambda value: spark.Not(spark.EqualTo(("offset",), value)), number),
)


def holds(condition: spark.Filter, row: tuple[str, int, int]) -> bool:
    if isinstance(condition, spark.Not):
        return not holds(condition.child, row)
    if isinstance(condition, spark.IsNull):
        return False
    found: Any = row[COLUMNS[condition.attribute[0]]]  # type: ignore[attr-defined]
    if isinstance(condition, spark.IsNotNull):
        return True
    value: Any = condition.value  # type: ignore[attr-defined]
    return bool(OPERATORS[type(condition).__name__](found, value))


@given(st.lists(conditions, max_size=4))
def test_bounds_and_what_is_left_give_the_rows_of_all_conditions(drawn: list[spark.Filter]) -> None:
    bounds, rest = Bounds().pushed(drawn)
    partitions = bounds.partitions(sorted({TopicPartition(topic, partition) for topic, partition, _ in ROWS}))
    read = [
        (part.topic, part.partition, offset)
        for part in partitions
        for narrowed in [bounds.narrowed(OffsetRange(part, 0, 8))]
        for offset in range(narrowed.start, narrowed.end)
    ]
    assert [row for row in read if all(holds(one, row) for one in rest)] == [
        row for row in ROWS if all(holds(one, row) for one in drawn)
    ]


def test_equality_of_offset_partition_and_topic_is_pushed_and_nothing_else() -> None:
    pushed = [spark.EqualTo(("offset",), 3), spark.In(("partition",), (1,)), spark.EqualTo(("topic",), "a")]
    left = [spark.EqualTo(("key",), b"k"), spark.StringStartsWith(("topic",), "a"), spark.EqualTo(("a", "offset"), 3)]
    assert Bounds().pushed([*pushed, *left])[1] == left


def test_each_comparison_of_offsets_has_its_bounds() -> None:
    kinds = (spark.EqualTo, spark.GreaterThan, spark.GreaterThanOrEqual, spark.LessThan, spark.LessThanOrEqual)
    for kind in kinds:
        bounds, rest = Bounds().pushed([kind(("offset",), 4)])
        found = bounds.narrowed(OffsetRange(TopicPartition("a", 0), 0, 8))
        assert list(range(found.start, found.end)) == [n for n in range(8) if OPERATORS[kind.__name__](n, 4)], kind
        assert rest == []


def test_conditions_on_one_column_hold_together() -> None:
    both = [spark.In(("topic",), ("a", "b")), spark.EqualTo(("topic",), "b"), spark.In(("topic",), ("b", "c"))]
    bounds, rest = Bounds().pushed(both)
    assert (bounds.topics, rest) == (frozenset("b"), [])
    numbers, _ = Bounds().pushed([spark.In(("partition",), (0, 1)), spark.In(("partition",), (1, 2))])
    assert numbers.numbers == frozenset({1})


def test_a_condition_on_null_stays_with_spark() -> None:
    """`= null` holds for no row, and `<=> null` for none either where a column is never null: Spark decides."""
    for kind in (spark.EqualTo, spark.EqualNullSafe):
        condition = kind(("topic",), None)
        assert Bounds().pushed([condition]) == (Bounds(), [condition])
