"""The rows of outage_impact: the effect of each loss, computed in each batch by rackspan.audit and summed by Spark."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.audit.json_format import STATES
from rackspan.audit.outage import RackLoss, judge_losses, losses_each_rack
from rackspan.audit.quorum import quorum_without
from rackspan.pipeline.frames.batches import NumberedBatch, partition_batches
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.pipeline.frames.requirements import BatchFunction
from rackspan.pipeline.schemas import RACK_NAMES

ARROW: Final = pa.schema(
    [
        ("snapshot", pa.int32()),
        ("loss", pa.int32()),
        ("topic", pa.string()),
        ("internal", pa.bool_()),
        *((state, pa.int64()) for state in STATES),
        ("broker", pa.int32()),
        ("leaders", pa.int64()),
    ]
)
"""Harm of a topic, or, where `topic` is null, leaders that a broker takes over. `loss` is the place in `losses_each_rack`."""

HARM: Final = (
    f"snapshot INT, loss INT, topic STRING, internal BOOLEAN, {', '.join(f'{state} BIGINT' for state in STATES)}, "
    "broker INT, leaders BIGINT"
)

LOSSES: Final = pa.schema(
    [
        ("registration", pa.int32()),
        ("loss", pa.int32()),
        ("lost_racks", RACK_NAMES),
        ("quorum_holds", pa.bool_()),
        ("quorum_certain", pa.bool_()),
    ]
)


def losses(spark: SparkSession, known: Registrations) -> DataFrame:
    """Each loss, and whether a majority of controllers is left after it. Grain: registration, loss."""
    rows = [
        {
            "registration": place,
            "loss": loss,
            "lost_racks": list(racks),
            "quorum_holds": quorum and quorum.holds,
            "quorum_certain": quorum and quorum.certain,
        }
        for place, registered in enumerate(known.distinct)
        for loss, racks in enumerate(losses_each_rack(registered))
        for quorum in [quorum_without(registered, frozenset(racks))]
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=LOSSES))


def losses_of_snapshots(
    spark: SparkSession, losses: DataFrame, known: Registrations, snapshots: Sequence[int]
) -> DataFrame:
    """The losses of the registrations of some snapshots. Grain: snapshot, loss."""
    numbers = pa.array(snapshots, pa.int32())
    registered = pa.array(known.of_snapshot[list(snapshots)])
    of_snapshot = spark.createDataFrame(pa.table({"snapshot": numbers, "registration": registered}))
    return of_snapshot.join(F.broadcast(losses), "registration").drop("registration")


def partial_harm(partitions_with_requirements: DataFrame, known: Registrations) -> DataFrame:
    """The effect of each loss on each batch of partitions. Grain: batch, snapshot, loss, topic, broker."""
    return partitions_with_requirements.mapInArrow(_harm_by_batch(known), HARM)


def impact(partial: DataFrame, losses: DataFrame) -> DataFrame:
    """The effect of each loss on the topics it harms and, where `topic` is null, on the whole cluster, harmed or not.

    Grain: snapshot, loss, topic.
    """
    whole, judged = F.col("topic").isNull(), _in_all(_summed(partial, losses)).join(losses, ["snapshot", "loss"])
    none_harmed = F.col("offline") + F.col("under_min_isr") + F.col("under_min_racks") == 0
    return judged.withColumns(
        {
            "survived": F.when(whole, none_harmed & F.coalesce("quorum_certain", F.lit(True))),
            "quorum_holds": F.when(whole, F.col("quorum_holds")),
            "leader_surge": F.when(whole, F.col("leader_surge")),
        }
    ).drop("quorum_certain")


def _summed(partial: DataFrame, losses: DataFrame) -> DataFrame:
    """The effect of each loss on each topic, and the leaders each broker gains. Grain: snapshot, loss, topic, broker."""
    # A row for each loss, otherwise those that harm nothing would be missing.
    rows = partial.unionByName(losses.select("snapshot", "loss"), allowMissingColumns=True)
    sums = [F.sum(name).alias(name) for name in (*STATES, "leaders")]
    # Moved by what all sums below have in common, so that rows are moved once.
    return rows.repartition("snapshot", "loss").groupBy("snapshot", "loss", "topic", "internal", "broker").agg(*sums)


def _in_all(harm: DataFrame) -> DataFrame:
    """Topics and the sums over them, in one pass: two frames joined later would each read every partition."""
    scopes = F.when(F.col("topic").isNotNull(), F.array(F.lit(True), F.lit(False))).otherwise(F.array(F.lit(False)))
    twice = harm.withColumn("in_topic", F.explode(scopes))
    scoped = twice.withColumns({name: F.when(F.col("in_topic"), F.col(name)) for name in ("topic", "internal")})
    sums = [F.coalesce(F.sum(state), F.lit(0)).cast("bigint").alias(state) for state in STATES]
    gained = F.when(F.col("broker").isNotNull(), F.struct("broker", "leaders"))
    surge = F.transform(F.sort_array(F.collect_list(gained)), _nullable).alias("leader_surge")
    return scoped.groupBy("snapshot", "loss", "topic", "internal").agg(*sums, surge)


def _nullable(one: Column) -> Column:
    """The same value, nullable for Spark, so that files of all days have one schema."""
    return F.when(one["leaders"] > 0, one)


def _harm_by_batch(known: Registrations) -> BatchFunction:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in partition_batches(batches, known):
            yield from map(harm_batch, batch.by_snapshot())

    return over


def harm_batch(batch: NumberedBatch) -> pa.RecordBatch:
    """The effect of every loss on one snapshot's partitions, columns as in HARM."""
    partitions = batch.partitions
    internal = np.zeros(len(partitions.topics), dtype=np.bool_)
    internal[partitions.rows.topic] = batch.internal
    judged = judge_losses(partitions, internal, losses_each_rack(partitions.members))
    rows = [row for number, loss in enumerate(judged) for row in _rows(int(batch.snapshot[0]), number, loss)]
    return pa.RecordBatch.from_pylist(rows, schema=ARROW)


def _rows(snapshot: int, number: int, loss: RackLoss) -> Iterator[dict[str, Any]]:
    key = {"snapshot": snapshot, "loss": number}
    for harm in loss.topics:
        yield {**key, "topic": harm.topic, "internal": harm.internal, **{name: getattr(harm, name) for name in STATES}}
    for broker, leaders in loss.leader_surge.items():
        yield {**key, "broker": broker, "leaders": leaders}
