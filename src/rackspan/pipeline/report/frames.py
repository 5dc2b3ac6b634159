"""The frames of the report: tables in, bounded summaries out, each with its grain.

Times are microseconds since 1970 UTC, so that no session's or driver's time zone can shift them.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from rackspan.pipeline.report.data import AT_RISK, DurabilityState

AT: Final = "at_micros"
MICROS: Final = 1_000_000


def points(durability: DataFrame, latest: DataFrame) -> DataFrame:
    """How many partitions were in each state, 0 for all where a latest snapshot has none.

    `latest` is (cluster_id, at_micros); clusters it does not name are left out. Grain: cluster_id, at_micros.
    """
    counted = (
        durability.join(F.broadcast(latest.select("cluster_id")), "cluster_id")
        .groupBy("cluster_id", F.unix_micros("taken_at").alias(AT))
        .agg(*_state_counts())
    )
    return counted.join(latest, ["cluster_id", AT], "full_outer").fillna(0)


def lasting(points: DataFrame) -> DataFrame:
    """Each point with the seconds until the next one of its cluster, 0 for the last. Grain: as `points`."""
    following = F.lead(AT).over(Window.partitionBy("cluster_id").orderBy(AT))
    return points.withColumn("seconds", F.coalesce((following - F.col(AT)) / MICROS, F.lit(0.0)))


def histories(lasting: DataFrame) -> DataFrame:
    """A cluster's history in numbers: snapshots, ends, seconds at risk, and each state's most, when and how long.

    Grain: cluster_id.
    """
    at_risk = sum((F.col(state.field) for state in AT_RISK), F.lit(0)) > 0
    return lasting.groupBy("cluster_id").agg(
        F.count("*").alias("snapshots"),
        F.min(AT).alias("first"),
        F.max(AT).alias("last"),
        F.max("seconds").alias("longest_gap_seconds"),
        _seconds_while(at_risk).alias("seconds_at_risk"),
        *(measure for state in AT_RISK for measure in _state_time(state)),
    )


def drawn_points(points: DataFrame, most: int) -> DataFrame:
    """At most `most` points a cluster, for its picture: the worst of each of `most` − 1 stretches, and the last.

    Stretches hold equally many snapshots. Grain: cluster_id, at_micros.
    """
    by_time = Window.partitionBy("cluster_id").orderBy(AT)
    whole = Window.partitionBy("cluster_id")
    numbered = points.withColumn("row", F.row_number().over(by_time) - 1).withColumn("rows", F.count("*").over(whole))
    stretch = (
        F.when((F.col("rows") <= most) | (F.col("row") == F.col("rows") - 1), F.col("row").cast("double"))
        # The half distinguishes a stretch's number from the number of the last row.
        .otherwise(F.floor(F.col("row") * (most - 1) / (F.col("rows") - 1)) - F.lit(0.5))
    )
    worst_first = Window.partitionBy("cluster_id", "stretch").orderBy(*(F.desc(one.field) for one in AT_RISK), AT)
    return (
        numbered.withColumn("stretch", stretch)
        .withColumn("rank", F.row_number().over(worst_first))
        .where("rank = 1")
        .select(*points.columns)
    )


def topics_at_risk(durability: DataFrame, latest: DataFrame, most: int) -> DataFrame:
    """Topics of the latest snapshot with partitions that are not ok, at most `most` a cluster, the worst first.

    Grain: cluster_id, topic.
    """
    counted = (
        durability.withColumn(AT, F.unix_micros("taken_at"))
        .join(F.broadcast(latest), ["cluster_id", AT], "left_semi")
        .groupBy("cluster_id", "topic")
        .agg(*_state_counts())
        .where(" + ".join(state.field for state in AT_RISK) + " > 0")
    )
    at_risk = sum((F.col(state.field) for state in AT_RISK), F.lit(0))
    worst_first = Window.partitionBy("cluster_id").orderBy(_worst_rank(), F.desc(at_risk), "topic")
    return counted.withColumn("rank", F.row_number().over(worst_first)).where(F.col("rank") <= most)


def finding_groups(findings: DataFrame, latest: DataFrame) -> DataFrame:
    """Findings by constraint and severity: how many there are now, when they last occurred, one example.

    Grain: cluster_id, constraint, severity.
    """
    at = F.unix_micros("taken_at")
    example = F.struct("topic", "partition", "reason", "remedy")
    first_of_last = F.struct(-at, "topic", "partition", "reason", "remedy")
    now = at == F.col(AT)
    return (
        findings.join(F.broadcast(latest), "cluster_id")
        .groupBy("cluster_id", "constraint", "severity")
        .agg(
            F.sum(F.when(now, 1).otherwise(0)).alias("findings"),
            F.count_distinct(F.when(now, F.col("topic"))).alias("topics"),
            F.count_distinct(at).alias("snapshots"),
            F.max(at).alias("last_found"),
            F.min_by(example, first_of_last).alias("example"),
        )
        .select("cluster_id", "constraint", "severity", "findings", "topics", "snapshots", "last_found", "example.*")
    )


def _state_counts() -> list[Column]:
    return [F.count_if(F.col("state") == state.value).alias(state.field) for state in DurabilityState]


def _seconds_while(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("seconds")).otherwise(0.0))


def _state_time(state: DurabilityState) -> tuple[Column, Column, Column]:
    count = F.col(state.field)
    return (
        F.max(count).alias(f"{state.field}_most"),
        F.max_by(AT, F.struct(count, -F.col(AT))).alias(f"{state.field}_most_at"),
        _seconds_while(count > 0).alias(f"{state.field}_seconds"),
    )


def _worst_rank() -> Column:
    """0 where any partition is in the worst state, 1 in the next, and so on."""
    ranks = [F.when(F.col(state.field) > 0, F.lit(rank)) for rank, state in enumerate(AT_RISK)]
    return F.coalesce(*ranks)
