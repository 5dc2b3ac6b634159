"""The rows of drift: Spark finds what differs between a snapshot and the one before, rackspan.audit names the changes.

`snapshot` is the later one of a pair, `previous` the number of the earlier one.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rackspan.audit.drift.changes import member_changes
from rackspan.audit.drift.unread import is_known, unread
from rackspan.pipeline.frames.drift_batches import ARROW, ROWS, WHOLE, Gaps, change_row, partition_rows, topic_rows
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.frames.registrations import Registrations

IN_TOPIC: Final = ("topic_id", "min_insync_replicas", "min_insync_racks")
IN_PARTITION: Final = ("leader", "replicas", "isr", "min_insync_replicas", "min_insync_racks")

PAIRS: Final = pa.schema([("previous", pa.int32()), ("snapshot", pa.int32()), ("relabelled", pa.bool_())])


def pairs(inputs: Inputs, known: Registrations) -> DataFrame:
    """Which snapshot follows which, and whether brokers changed between them. Grain: snapshot."""
    places = known.of_snapshot
    rows = [
        {"previous": before, "snapshot": after, "relabelled": bool(places[before] != places[after])}
        for before, after in inputs.pairs
    ]
    return inputs.spark.createDataFrame(pa.Table.from_pylist(rows, schema=PAIRS))


def compared_with(rows: DataFrame, pairs: DataFrame, snapshots: DataFrame) -> DataFrame:
    """The rows with the time of the snapshot they are compared with. Grain: as `rows`."""
    times = snapshots.select(F.col("snapshot").alias("previous"), F.col("taken_at").alias("previous_taken_at"))
    return rows.join(F.broadcast(pairs.join(times, "previous").drop("previous", "relabelled")), "snapshot")


def registration_drift(inputs: Inputs, known: Registrations) -> DataFrame:
    """Changes of brokers and voters. Grain: snapshot, change, broker."""
    rows = [
        change_row(after, change)
        for before, after in inputs.pairs
        if known.of_snapshot[before] != known.of_snapshot[after]
        for change in member_changes(known.of(before), known.of(after))
        if is_known(change, *gaps(inputs).get(after, WHOLE))
    ]
    return inputs.spark.createDataFrame(pa.Table.from_pylist(rows, schema=ARROW))


def partitions_twice(partitions: DataFrame, pairs: DataFrame) -> DataFrame:
    """Partitions in either snapshot of a pair, `before` and `after` null where absent. Grain: snapshot, topic, partition."""
    return _twice(partitions, pairs, ("topic", "partition"), IN_PARTITION)


def topics_twice(topics: DataFrame, requirements: DataFrame, pairs: DataFrame) -> DataFrame:
    """Topics in either snapshot of a pair, and the change of each as a whole. Grain: snapshot, topic."""
    ids = topics.select("snapshot", F.col("name").alias("topic"), "topic_id")
    twice = _twice(requirements.join(ids, ["snapshot", "topic"]), pairs, ("topic",), IN_TOPIC)
    became = (
        F.when(F.col("before").isNull(), "topic-created")
        .when(F.col("after").isNull(), "topic-deleted")
        .when(F.col("before.topic_id") != F.col("after.topic_id"), "topic-recreated")
    )
    return twice.withColumn("became", became)


def gaps(inputs: Inputs) -> Gaps:
    """What the snapshots of each pair could not read, where they lack something, by the later one."""
    lacks = {
        after: (unread(inputs.stored[before].partial), unread(inputs.stored[after].partial))
        for before, after in inputs.pairs
    }
    return {after: both for after, both in lacks.items() if both != WHOLE}


def topic_drift(topics_twice: DataFrame, partitions_twice: DataFrame, gaps: Gaps) -> DataFrame:
    """Changes of topics. Grain: snapshot, change, topic."""
    present = [F.col(side).isNotNull() for side in ("before", "after")]
    counts = partitions_twice.groupBy("snapshot", "topic").agg(
        F.count_if(present[0]).alias("partitions_before"),
        F.count_if(present[1]).alias("partitions_after"),
        F.count_if(present[0] & present[1]).alias("partitions_kept"),
    )
    numbers = ("partitions_before", "partitions_after", "partitions_kept")
    counted = topics_twice.join(counts, ["snapshot", "topic"], "left").fillna(0, numbers)
    same_count = (F.col("partitions_before") == F.col("partitions_kept")) & (
        F.col("partitions_after") == F.col("partitions_kept")
    )
    changed = counted.where(~(_same() & same_count))

    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return topic_rows(batches, gaps)

    return changed.select("snapshot", "topic", *_flat(IN_TOPIC), *numbers).mapInArrow(over, ROWS)


def partition_drift(
    partitions_twice: DataFrame, topics_twice: DataFrame, pairs: DataFrame, known: Registrations, gaps: Gaps
) -> DataFrame:
    """Changes of partitions, and of their safety. Grain: snapshot, change, topic, partition."""
    changed = partitions_twice.join(F.broadcast(pairs), "snapshot").where(~_same() | F.col("relabelled"))
    whole = topics_twice.select("snapshot", "topic", "became")
    flat = changed.join(whole, ["snapshot", "topic"]).select(
        "snapshot", "previous", "topic", "partition", "became", *_flat(IN_PARTITION)
    )

    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return partition_rows(batches, known, gaps)

    return flat.mapInArrow(over, ROWS)


def _twice(rows: DataFrame, pairs: DataFrame, keys: tuple[str, ...], columns: tuple[str, ...]) -> DataFrame:
    pairs = F.broadcast(pairs.select("previous", "snapshot"))
    after = rows.join(pairs, "snapshot").select("snapshot", *keys, F.struct(*columns).alias("after"))
    earlier = rows.withColumnRenamed("snapshot", "previous").join(pairs, "previous")
    before = earlier.select("snapshot", *keys, F.struct(*columns).alias("before"))
    return before.join(after, ["snapshot", *keys], "full_outer")


def _same() -> Column:
    return F.col("before").eqNullSafe(F.col("after"))


def _flat(columns: tuple[str, ...]) -> list[Column]:
    """`before_leader` for `before.leader`, and whether each side is present."""
    present = [F.col(side).isNotNull().alias(f"in_{side}") for side in ("before", "after")]
    return [
        *present,
        *(F.col(f"{side}.{name}").alias(f"{side}_{name}") for side in ("before", "after") for name in columns),
    ]
