"""How much a run reads, in the two figures that decide how it is best read."""

from dataclasses import dataclass

from pyspark.sql import functions as F

from rackspan.pipeline.frames.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Extent:
    """`topics` of all snapshots together; `widest` is the longest list of replicas, or of those in sync."""

    topics: int
    widest: int


def extent(inputs: Inputs) -> Extent:
    """Bring them to the driver: one job, which reads two columns of the partitions and none of the topics."""
    lists = inputs.listed("partitions", "replicas ARRAY<INT>, isr ARRAY<INT>")
    lengths = lists.select(F.greatest(F.size("replicas"), F.size("isr")).alias("length"), F.lit(0).alias("topic"))
    topics = inputs.listed("topics", "name STRING").select(F.lit(0).alias("length"), F.lit(1).alias("topic"))
    found = lengths.unionAll(topics).agg(F.sum("topic").alias("topics"), F.max("length").alias("widest"))
    (row,) = found.collect()
    return Extent(row["topics"] or 0, row["widest"] or 0)
