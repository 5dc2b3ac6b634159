"""Follows the marker table with Spark Structured Streaming: new snapshots are judged as they are stored.

Begin with follow(). Constraints: the tables get the rows that `run` would give them, each snapshot once, in whatever order snapshots
come and whenever the process is killed. The stream reads `snapshots` alone, whose rows are whole snapshots; a batch is
one run over the ids it has (incremental.py), which leaves out those that `judged` lists and judges again what now follows a late
one. A batch that Spark repeats after a kill therefore finds nothing to do. Source: Structured Streaming, foreachBatch. Tests:
tests/pipeline/test_follow.py.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rackspan.audit import ClusterPolicies
from rackspan.ends import end_within
from rackspan.errors import InvalidWarehouse, RackspanError, UsageError, WarehouseBusy
from rackspan.pipeline.hours.work import HoursWork
from rackspan.pipeline.incremental import Build, Files, RunReport, RunWork, refresh
from rackspan.pipeline.judging.newest_losses import NewestLosses
from rackspan.pipeline.schemas import SNAPSHOTS
from rackspan.pipeline.warehouse import NOT_REPAIRED, FilesRead, Warehouse, only_follow
from rackspan.traffic import PriceFile

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT: Final = "checkpoints/follow"
"""Below the warehouse. It only saves reading markers again: what was judged is in `judged`."""

FILES_PER_BATCH: Final = 20
"""Of the marker table: one is a round of `collect`, so a backlog is worked off some rounds at a time."""

POLL_SECONDS: Final = 0.2
BUSY_SECONDS: Final = 1.0
"""Until a batch tries again that met a `run` at work."""

SCHEMA_CHANGES_MAX: Final = 5
"""In a row, without a batch between them; a release adds its columns in one commit."""


@dataclass(frozen=True, slots=True)
class FollowedBatch:
    """One batch that has ended. `behind_seconds` is the time from its newest snapshot until its rows were in force.

    `judge_seconds` is the part of its time that Spark took.
    """

    number: int
    report: RunReport
    behind_seconds: float | None
    judge_seconds: float = 0.0


@dataclass(slots=True)
class FollowTotals:
    """What a `follow` has done since it started, for its metrics."""

    batches: int = 0
    snapshots: int = 0
    corrected: int = 0
    partitions: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    judge_seconds: float = 0.0
    behind_seconds: float | None = None

    def add(self, batch: FollowedBatch) -> None:
        self.batches += 1
        self.snapshots += batch.report.snapshots
        self.corrected += batch.report.corrected
        self.seconds += batch.report.seconds
        self.judge_seconds += batch.judge_seconds
        self.partitions += batch.report.partitions
        for name, rows in batch.report.rows.items():
            self.rows[name] = self.rows.get(name, 0) + rows
        if batch.behind_seconds is not None:
            self.behind_seconds = batch.behind_seconds


def metric_families(totals: FollowTotals) -> "Iterator[Family]":
    """The Prometheus metrics of a `follow`."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for name, meaning, value in (
        ("batches", "Batches that have ended", totals.batches),
        ("snapshots", "Snapshots judged for the first time", totals.snapshots),
        ("corrected", "Snapshots compared again because an earlier one came late", totals.corrected),
        ("partitions", "Partitions read, of the snapshots judged and of those before them", totals.partitions),
        ("batch_seconds", "Seconds that batches took", totals.seconds),
        (
            "judge_seconds",
            "Seconds of them that the job of Spark took; the rest is planning and commits",
            totals.judge_seconds,
        ),
    ):
        yield CounterMetricFamily(f"rackspan_follow_{name}", meaning, value)
    rows = CounterMetricFamily("rackspan_follow_rows", "Rows written", labels=("table",))
    for table, count in sorted(totals.rows.items()):
        rows.add_metric((table,), count)
    yield rows
    if totals.behind_seconds is not None:
        meaning = "Seconds from the newest snapshot of the last batch until its rows were in force"
        yield GaugeMetricFamily("rackspan_follow_behind_seconds", meaning, totals.behind_seconds)


def follow(
    warehouse: Warehouse,
    policies: ClusterPolicies,
    on_batch: Callable[[FollowedBatch], None],
    stop: threading.Event,
    *,
    master: str | None = None,
    every: float = 10.0,
    available_now: bool = False,
    prices: PriceFile | None = None,
    losses: NewestLosses | None = None,
) -> None:
    """Judge snapshots as they are stored until `stop` is set; with `available_now`, those that are stored now.

    `prices` make the table `bill`. `losses` are judged meanwhile, of the snapshots that the caller adds. A batch at work is finished before this returns,
    but for what Ctrl-C leaves no time for (interrupts.py). `on_batch` is called from another thread. Errors: InvalidWarehouse;
    WarehouseBusy where another process follows the same warehouse; MissingRequirement; UsageError where a policy refuses a cluster or Spark does not come up.
    """
    from rackspan.pipeline.spark import session
    from rackspan.pipeline.spark.executors import required_modules

    if master is None and "SPARK_REMOTE" in os.environ:
        raise UsageError(
            "SPARK_REMOTE is set, and follow does not run through Spark Connect; unset it, or give --master"
        )
    warehouse = replace(warehouse, read=FilesRead())
    required = required_modules(warehouse)
    judged = nullcontext() if losses is None else losses.judged(warehouse)
    with only_follow(warehouse), judged, session.spark_session(master, light=True, required=required) as spark:
        batches = _Batches(warehouse, policies, _spark_build(spark, warehouse), on_batch, stop, prices)
        # Its type wants exactly one of the two, which an expression cannot show.
        trigger: Mapping[str, Any] = {"availableNow": True} if available_now else {"processingTime": f"{every} seconds"}
        changes, ended = 0, 0
        query = _started(spark, warehouse, batches, trigger)
        try:
            while not stop.is_set():
                if query.isActive:
                    time.sleep(POLL_SECONDS)
                    continue
                changes, ended = 1 if batches.ended > ended else changes + 1, batches.ended
                if changes > SCHEMA_CHANGES_MAX or not _schema_changed(query):
                    break
                query = _started(spark, warehouse, batches, trigger)
        finally:
            end_within("the batch at work", batches.finish, math.inf)
            end_within("the stream", query.stop, session.STOP_SECONDS)
        _raise_failure(warehouse, batches, query)


def _started(
    spark: "SparkSession", warehouse: Warehouse, batches: "_Batches", trigger: Mapping[str, Any]
) -> "StreamingQuery":
    markers = spark.readStream.format("delta").option("maxFilesPerTrigger", FILES_PER_BATCH)
    # Retention removes rows; only added ones are of interest.
    stored = markers.option("skipChangeCommits", "true").load(warehouse.spark_path(SNAPSHOTS.name))
    writer = stored.select("snapshot_id").writeStream.foreachBatch(batches.judge)
    writer = writer.option("checkpointLocation", f"{warehouse.spark_root}/{CHECKPOINT}")
    return writer.trigger(**trigger).start()


def _schema_changed(query: "StreamingQuery") -> bool:
    """Whether a newer collector has added its columns to the marker table: Delta then ends a stream, to be started again."""
    error = query.exception()
    return error is not None and "DELTA_SCHEMA_CHANGED" in str(error)


def _spark_build(spark: "SparkSession", warehouse: Warehouse) -> Build:
    from rackspan.pipeline.spark.build import SparkBuild

    return SparkBuild(lambda: spark, warehouse)


class _TimedBuild:
    """A build that adds up the seconds it takes."""

    def __init__(self, build: Build) -> None:
        self.seconds = 0.0
        self._build = build

    def judged(self, work: RunWork, policies: ClusterPolicies) -> Files:
        return self._timed(lambda: self._build.judged(work, policies))

    def hours(self, work: HoursWork, policies: ClusterPolicies) -> Files:
        return self._timed(lambda: self._build.hours(work, policies))

    def _timed(self, built: Callable[[], Files]) -> Files:
        began = time.monotonic()
        try:
            return built()
        finally:
            self.seconds += time.monotonic() - began


class _Batches:
    """Judges the stream's batches one after another, until `finish`."""

    def __init__(
        self,
        warehouse: Warehouse,
        policies: ClusterPolicies,
        build: Build,
        on_batch: Callable[[FollowedBatch], None],
        stop: threading.Event,
        prices: PriceFile | None = None,
    ) -> None:
        self.failure: RackspanError | None = None
        self.ended = 0
        self._warehouse, self._policies, self._build = warehouse, policies, _TimedBuild(build)
        self._prices = prices
        self._on_batch, self._stop = on_batch, stop
        self._at_work = threading.Lock()

    def judge(self, markers: "DataFrame", number: int) -> None:
        """The function of foreachBatch. Errors: those of `refresh`, and WarehouseBusy where it ends while it waits."""
        with self._at_work:
            if self._stop.is_set():
                raise WarehouseBusy(f"{self._warehouse.root}: follow ends")
            try:
                ids = [row.snapshot_id for row in markers.collect()]
                report = self._judged(ids)
            except RackspanError as error:
                self.failure = error
                raise
            # Reported once.
            self._warehouse = replace(self._warehouse, repair=NOT_REPAIRED)
            newest = report.newest
            behind = None if newest is None else (datetime.now(UTC) - newest).total_seconds()
            self.ended += 1
            self._on_batch(FollowedBatch(number, report, behind, self._build.seconds))

    def finish(self) -> None:
        """Wait for the batch at work and its report, and let none begin after it."""
        self._stop.set()
        with self._at_work:
            pass

    def _judged(self, ids: list[str]) -> RunReport:
        self._build.seconds = 0.0
        while True:
            try:
                return refresh(
                    self._warehouse,
                    self._policies,
                    self._build,
                    now=lambda: datetime.now(UTC),
                    seconds=time.monotonic,
                    kind="follow",
                    only=ids,
                    prices=self._prices,
                )
            except WarehouseBusy:
                if self._stop.wait(BUSY_SECONDS):
                    raise


def _raise_failure(warehouse: Warehouse, batches: _Batches, query: "StreamingQuery") -> None:
    """Raise what ended the stream, unless that was its end."""
    if isinstance(batches.failure, WarehouseBusy):
        return
    if batches.failure is not None:
        raise batches.failure
    error = query.exception()
    if error is not None and "follow ends" not in str(error):
        line = str(error).strip().splitlines()[0][:400]
        raise InvalidWarehouse(
            f"{warehouse.root}: the stream ended: {line}; where {CHECKPOINT} is named, remove that folder and start again: "
            "nothing is judged twice"
        )
