"""The input of a run: a frame for each kind of snapshot file, with the number of the snapshot in each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.pipeline import paths
from rackspan.pipeline.warehouse import Day, StoredSnapshot, Warehouse
from rackspan.sources.snapshot_folder import count_topics

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

TOPICS: Final = "name STRING, topic_id STRING, internal BOOLEAN, config MAP<STRING, STRING>"
PARTITIONS: Final = (
    "topic STRING, partition INT, leader INT, replicas ARRAY<INT>, isr ARRAY<INT>, adding_replicas ARRAY<INT>, "
    "removing_replicas ARRAY<INT>, size_bytes BIGINT"
)
KEYS: Final = "cluster_id STRING, day STRING, taken_at STRING"


@dataclass(frozen=True)
class Inputs:
    """The snapshots of one run. `snapshots` has the grain snapshot; the others are below it.

    `stored` is in order of cluster and time. `days` are those being made, in the order of their units; a snapshot of
    another day is only compared with the next one.
    """

    spark: SparkSession
    warehouse: Warehouse
    stored: Sequence[StoredSnapshot]
    days: Sequence[Day]

    @property
    def snapshots(self) -> DataFrame:
        """Which snapshot is which. Grain: snapshot."""
        numbered = self.spark.createDataFrame(_numbered(self.stored, self.days))
        taken_at = F.timestamp_micros("taken_at_micros")
        return numbered.select("snapshot", "unit", "cluster_id", "day", "folder_key", taken_at.alias("taken_at"))

    @property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """The numbers of each snapshot of `days` and the one before it of its cluster, the earlier first."""
        made = set(self.days)
        return [
            (number - 1, number)
            for number, (before, after) in enumerate(pairwise(self.stored), start=1)
            if before.day.cluster_id == after.day.cluster_id and after.day in made
        ]

    @property
    def topics(self) -> DataFrame:
        """Grain: snapshot, name."""
        return self._numbered(self._files("topics", TOPICS))

    @property
    def partitions(self) -> DataFrame:
        """Grain: snapshot, topic, partition."""
        return self._numbered(self.partition_files)

    @cached_property
    def partition_files(self) -> DataFrame:
        """The partition rows without snapshot numbers. Cached, since Spark lists every file again each time."""
        return self._files("partitions", PARTITIONS)

    def _files(self, name: str, columns: str) -> DataFrame:
        files = [glob_escaped(one.folder / f"{name}.parquet") for one in self.stored]
        reader = self.spark.read.schema(f"{columns}, {KEYS}").option("basePath", str(self.warehouse.snapshots))
        return reader.parquet(*files)

    def _numbered(self, files: DataFrame) -> DataFrame:
        numbers = F.broadcast(self.snapshots.select("snapshot", "cluster_id", "folder_key"))
        keyed = files.withColumnRenamed("taken_at", "folder_key").join(numbers, ["cluster_id", "folder_key"])
        return keyed.drop("cluster_id", "day", "folder_key")


def topic_count(inputs: Inputs) -> int:
    """Topics of all snapshots together. Errors: InvalidSnapshot."""
    return sum(count_topics(one.folder) for one in inputs.stored)


def widest_list(inputs: Inputs) -> int:
    """The length of the longest `replicas` or `isr` list. One Spark job, which reads these two columns."""
    length = F.greatest(F.size("replicas"), F.size("isr"))
    ((widest,),) = inputs.partition_files.agg(F.max(length)).collect()
    return widest or 0


def glob_escaped(file: Path) -> str:
    """The path, escaped for Hadoop, which reads every path as a glob pattern."""
    return "".join(f"\\{character}" if character in r"\{}[]*?" else character for character in str(file))


def _numbered(stored: Sequence[StoredSnapshot], days: Sequence[Day]) -> pa.Table:
    """`unit` is the place of a snapshot's day in `days`, null for another's."""
    units = {day: unit for unit, day in enumerate(days)}
    return pa.table(
        {
            "snapshot": pa.array(range(len(stored)), pa.int32()),
            "unit": pa.array([units.get(one.day) for one in stored], pa.int32()),
            "cluster_id": pa.array([one.day.cluster_id for one in stored], pa.string()),
            "day": pa.array([one.day.day for one in stored], pa.string()),
            "folder_key": pa.array([paths.timestamp_text(one.taken_at) for one in stored], pa.string()),
            "taken_at_micros": pa.array([(one.taken_at - EPOCH) // MICROSECOND for one in stored], pa.int64()),
        }
    )
