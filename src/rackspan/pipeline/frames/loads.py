"""The load of each broker, summed in each batch by rackspan.audit, and over batches by Spark."""

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rackspan.audit.loads import LARGEST, figures, loads
from rackspan.pipeline.frames.batches import NumberedBatch, partition_batches
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.pipeline.frames.requirements import BatchFunction

FIGURES: Final = "snapshot INT, field STRING, index INT, value BIGINT"

ARROW: Final = pa.schema(
    [("snapshot", pa.int32()), ("field", pa.string()), ("index", pa.int32()), ("value", pa.int64())]
)


def partial_figures(partitions_with_requirements: DataFrame, known: Registrations) -> DataFrame:
    """The load that each batch of partitions puts on the brokers. Grain: batch, snapshot, field, index."""
    return partitions_with_requirements.mapInArrow(_figures_by_batch(known), FIGURES)


def no_figures(snapshots: DataFrame) -> DataFrame:
    """A zero for each snapshot, so that a cluster without partitions is audited too. Grain: snapshot."""
    zero = F.lit(0)
    return snapshots.select(
        "snapshot", F.lit(LARGEST).alias("field"), zero.alias("index"), zero.cast("long").alias("value")
    )


def summed_figures(partial: DataFrame) -> DataFrame:
    """The loads of whole snapshots. Grain: snapshot, field, index."""
    total = F.when(F.col("field") == LARGEST, F.max("value")).otherwise(F.sum("value"))
    return partial.groupBy("snapshot", "field", "index").agg(total.alias("value"))


def _figures_by_batch(known: Registrations) -> BatchFunction:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in partition_batches(batches, known):
            yield from map(_figures, batch.by_snapshot())

    return over


def _figures(batch: NumberedBatch) -> pa.RecordBatch:
    snapshot = int(batch.snapshot[0])
    rows = [
        {"snapshot": snapshot, "field": one.field, "index": one.index, "value": one.value}
        for one in figures(loads(batch.partitions))
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ARROW)
