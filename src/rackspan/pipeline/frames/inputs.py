"""The input of a run: a frame for each landing table, with the number of the snapshot in each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.schemas import PARTITIONS, TOPICS, Table
from rackspan.pipeline.warehouse import Warehouse

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

IDS_MAX: Final = 500
"""Ids in a filter of their own. More of them are found by the join alone, among the files of their days."""


@dataclass(frozen=True)
class Inputs:
    """The snapshots of one run. `snapshots` has the grain snapshot; the others are below it.

    `stored` is in order of cluster and time, `read` the numbers of those that are read. `pairs` are numbers of a snapshot
    and the one before it of its cluster, the earlier first.
    """

    spark: SparkSession
    warehouse: Warehouse
    stored: Sequence[StoredSnapshot]
    read: Sequence[int]
    pairs: Sequence[tuple[int, int]] = ()

    @cached_property
    def snapshots(self) -> DataFrame:
        """Which snapshot is which. Grain: snapshot."""
        numbered = self.spark.createDataFrame(_numbered(self.stored, self.read))
        taken_at = F.timestamp_micros("taken_at_micros")
        return numbered.select("snapshot", "snapshot_id", "cluster_id", taken_at.alias("taken_at"), "day")

    @cached_property
    def topics(self) -> DataFrame:
        """Grain: snapshot, name."""
        return self._numbered(TOPICS)

    @cached_property
    def partitions(self) -> DataFrame:
        """Grain: snapshot, topic, partition."""
        return self._numbered(PARTITIONS)

    @property
    def topic_count(self) -> int:
        """Topics of all snapshots together."""
        return sum(self.stored[one].topics for one in self.read)

    @property
    def longest_list(self) -> int:
        """The length of the longest list of replicas or ISR."""
        return max((self.stored[one].longest_list for one in self.read), default=0)

    def _numbered(self, table: Table) -> DataFrame:
        numbers = F.broadcast(self.snapshots.select("snapshot", "snapshot_id"))
        rows = self.spark.read.format("delta").load(self.warehouse.spark_path(table.name))
        return (
            rows.where(self._near)
            .drop("cluster_id", "taken_at", "day")
            .join(numbers, "snapshot_id")
            .drop("snapshot_id")
        )

    @property
    def _near(self) -> Column:
        """A condition on the partition column and on statistics, by which Delta skips the files of other snapshots."""
        ids = sorted(self.stored[one].snapshot_id for one in self.read)
        # As text: a Python date crosses into Java by a calendar that differs before October 1582.
        days = F.col("day").isin(
            [F.lit(day.isoformat()).cast("date") for day in sorted({self.stored[one].day for one in self.read})]
        )
        if len(ids) <= IDS_MAX:
            return days & F.col("snapshot_id").isin(ids)
        return days & F.col("snapshot_id").between(ids[0], ids[-1])


def _numbered(stored: Sequence[StoredSnapshot], read: Sequence[int]) -> pa.Table:
    stored = [stored[one] for one in read]
    return pa.table(
        {
            "snapshot": pa.array(read, pa.int32()),
            "snapshot_id": pa.array([one.snapshot_id for one in stored], pa.string()),
            "cluster_id": pa.array([one.cluster_id for one in stored], pa.string()),
            "day": pa.array([one.day for one in stored], pa.date32()),
            "taken_at_micros": pa.array([(one.taken_at - EPOCH) // MICROSECOND for one in stored], pa.int64()),
        }
    )
