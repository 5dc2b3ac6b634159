"""The input of a run: a frame for each landing table, with the number of the snapshot in each row."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.landing.read import files_of
from rackspan.pipeline.schemas import PARTITIONS, TOPICS, Table, ddl
from rackspan.pipeline.warehouse import Warehouse

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


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
        """The rows of the snapshots, read from the files that the table's log names: Spark need not read the log."""
        columns = [column for column in table.columns if column.name not in ("cluster_id", "taken_at", "day")]
        files = files_of(self.warehouse, table, [self.stored[one] for one in self.read])
        if not files:
            rows = self.spark.createDataFrame([], ddl(columns))
        else:
            root = self.warehouse.spark_path(table.name)
            reader = self.spark.read.schema(ddl(columns)).option("recursiveFileLookup", "true")
            rows = reader.parquet(*(as_pattern(f"{root}/{file.path}") for file in files))
        numbers = F.broadcast(self.snapshots.select("snapshot", "snapshot_id"))
        return rows.join(numbers, "snapshot_id").drop("snapshot_id")


def as_pattern(path: str) -> str:
    """The pattern that matches a path alone, since Spark takes every path for a pattern (Hadoop's globs)."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


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
