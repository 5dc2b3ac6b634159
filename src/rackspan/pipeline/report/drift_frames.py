"""The frames of the report's two histories: losses that would not have been survived, and changes.

As in frames.py, times are microseconds since 1970 UTC.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from rackspan.pipeline.report.frames import AT, lasting


def loss_histories(impact: DataFrame, latest: DataFrame) -> DataFrame:
    """The effect of each rack's loss over time. Grain: cluster_id, rack."""
    whole = impact.where("topic IS NULL").join(F.broadcast(latest.select("cluster_id")), "cluster_id")
    timed = whole.withColumn(AT, F.unix_micros("taken_at"))
    # Every snapshot has one row for the loss of no rack; these give the duration of each snapshot.
    waits = lasting(timed.where("size(lost_racks) = 0").select("cluster_id", AT))
    failed = ~F.col("survived")
    return (
        timed.where("size(lost_racks) = 1")
        .join(waits, ["cluster_id", AT])
        .groupBy("cluster_id", F.col("lost_racks")[0].alias("rack"))
        .agg(
            F.count("*").alias("snapshots"),
            F.count_if(failed).alias("not_survived"),
            F.sum(F.when(failed, F.col("seconds")).otherwise(0.0)).alias("seconds_not_survived"),
            F.max(F.when(failed, F.col(AT))).alias("last_at"),
            *(F.max(state).alias(f"most_{state}") for state in ("offline", "under_min_isr", "under_min_racks")),
        )
    )


def drift_groups(drift: DataFrame, latest: DataFrame, most: int) -> DataFrame:
    """Changes grouped by kind and time, at most `most` groups a cluster, the latest first, and the number of all groups.

    Grain: cluster_id, at_micros, change, cause, cause_broker, state_before, state_after.
    """
    safety = F.col("change").startswith("safety-")
    states = [F.when(safety, F.col(side)).alias(f"state_{side}") for side in ("before", "after")]
    example = F.struct("topic", "partition", "broker", "before", "after")
    grouped = (
        drift.join(F.broadcast(latest.select("cluster_id")), "cluster_id")
        .groupBy("cluster_id", F.unix_micros("taken_at").alias(AT), "change", "cause", "cause_broker", *states)
        .agg(F.count("*").alias("changes"), F.count_distinct("topic").alias("topics"), F.min(example).alias("example"))
    )
    safety_first = F.when(F.col("change") == "safety-lost", 0).when(safety, 1).otherwise(2)
    by_need = Window.partitionBy("cluster_id").orderBy(
        F.desc(AT), safety_first, F.desc("changes"), "change", "cause", "cause_broker", "state_before", "state_after"
    )
    return (
        grouped.withColumn("rank", F.row_number().over(by_need))
        .withColumn("groups", F.count("*").over(Window.partitionBy("cluster_id")))
        .where(F.col("rank") <= most)
        .select("cluster_id", AT, "change", "cause", "cause_broker", "changes", "topics", "example.*", "rank", "groups")
    )
