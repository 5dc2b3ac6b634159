"""The data pipeline: stores snapshots of clusters in a warehouse of Delta tables, audits them on Spark, and writes tables.

From a snapshot to a row of partition_durability: collect.py, landing/store.py, incremental.py (which snapshots to judge),
spark/build.py (the job), judging/tasks.py and judging/task.py, rackspan.audit. schemas/ defines the tables, warehouse.py where they are, runs.py
which version of each a reader reads; report/ draws a page from them. Only `run` and `follow` start Spark: delta-rs writes the snapshots, and
reads every table, so collecting and reading need neither Spark nor Java.
Depends on: advice, audit, clients, model, prometheus_metrics, report, sources, streams, traffic.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rackspan.audit import ClusterPolicies
from rackspan.errors import UsageError
from rackspan.pipeline import warehouse as layout
from rackspan.pipeline.collect import Collected, TrafficReadings, collect, collect_every, from_folder
from rackspan.pipeline.export import Exported, export
from rackspan.pipeline.hours.work import HoursWork
from rackspan.pipeline.incremental import Files, RunReport, RunWork, refresh
from rackspan.pipeline.landing import recover
from rackspan.pipeline.landing.store import SnapshotLocation, store
from rackspan.pipeline.policies import policy_warnings
from rackspan.pipeline.schemas import DERIVED, HISTORY, TABLES, table_named
from rackspan.pipeline.table import rows
from rackspan.pipeline.warehouse import FilesRead, Warehouse, open_warehouse
from rackspan.traffic import PriceFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rackspan.pipeline.spark.build import SparkBuild

__all__ = [
    "TABLES",
    "Collected",
    "Exported",
    "RunReport",
    "SnapshotLocation",
    "TrafficReadings",
    "Warehouse",
    "collect",
    "collect_every",
    "create_warehouse",
    "draw_report",
    "export",
    "from_folder",
    "open_warehouse",
    "rows",
    "run",
    "store",
]

PARTITIONS_AT_ONCE: Final = 50_000_000
"""Of the snapshots without rows: a longer backlog is judged in parts, each of which is in force before the next one begins."""

EVERY: Final = "every"
"""In the place of a table's name."""


def create_warehouse(root: str | Path) -> Warehouse:
    """An existing warehouse, repaired after a power cut or a bad block if need be, or a new one. Errors: InvalidWarehouse.

    Its `repair` says what was repaired.
    """
    return layout.create_warehouse(root, recover.repair)


def repaired_warehouse(root: str | Path) -> Warehouse:
    """An existing warehouse, repaired as by `create_warehouse`. Errors: InvalidWarehouse."""
    return open_warehouse(root, recover.repair)


def run(
    warehouse: Warehouse,
    policies: ClusterPolicies,
    master: str | None = None,
    *,
    remote: str | None = None,
    rebuild: str | None = None,
    prices: PriceFile | None = None,
) -> RunReport:
    """Bring every table up to date. Spark is started only where there is something to do. `prices` make the table `bill`.

    `rebuild` names a derived table whose rows are all made again; with `every` that is done to all of them. Errors:
    InvalidWarehouse, MissingRequirement without pyspark or Java, UsageError where a policy refuses a cluster or
    Spark does not come up on `master` or `remote`, or where `rebuild` is no derived table.
    """
    rebuilt: tuple[str, ...] = () if rebuild is None else (rebuild,)
    if rebuild == EVERY:
        rebuilt = (*DERIVED, *HISTORY)
    elif rebuild is not None and rebuild not in DERIVED:
        table_named(rebuild)
        raise UsageError(
            f"table {rebuild}: not one that a run makes, so nothing can make it again; the derived tables are {', '.join(DERIVED)}; "
            f"rackspan pipeline check --warehouse {warehouse.root} shows what to do about the others"
        )

    warehouse = replace(warehouse, read=FilesRead())
    with ExitStack() as started:

        def session() -> "SparkSession":
            from rackspan.pipeline.spark.executors import required_modules
            from rackspan.pipeline.spark.session import spark_session

            required = required_modules(warehouse)
            return started.enter_context(spark_session(master, remote, delta=False, light=True, required=required))

        def part(rebuilt: tuple[str, ...]) -> RunReport:
            return refresh(
                warehouse,
                policies,
                build,
                now=lambda: datetime.now(UTC),
                seconds=time.monotonic,
                kind="rebuild" if rebuilt else "run",
                rebuild=rebuilt,
                partitions_max=PARTITIONS_AT_ONCE,
                prices=prices,
            )

        build = _LazyBuild(session, warehouse)
        report = part(rebuilt)
        while report.left:
            report = report.with_next(part(()))
        return report


class _LazyBuild:
    """Makes rows on Spark, which is imported and started only where there is something to do."""

    def __init__(self, session: "Callable[[], SparkSession]", warehouse: Warehouse) -> None:
        self._session, self._warehouse = session, warehouse
        self._build: SparkBuild | None = None

    def judged(self, work: RunWork, policies: ClusterPolicies) -> Files:
        return self._of_spark().judged(work, policies)

    def hours(self, work: HoursWork, policies: ClusterPolicies) -> Files:
        return self._of_spark().hours(work, policies)

    def _of_spark(self) -> "SparkBuild":
        from rackspan.pipeline.spark.build import SparkBuild

        if self._build is None:
            self._build = SparkBuild(self._session, self._warehouse)
        return self._build


def draw_report(
    warehouse: Warehouse,
    policies: ClusterPolicies,
    out: Path,
    names: Mapping[str, str] = MappingProxyType({}),
    left_out: Callable[[str], None] | None = None,
) -> list[str]:
    """Write one HTML page from the tables in force, without Spark. Returns its warnings, a line each.

    `names`: what to call clusters, by id. With `left_out`, damaged files are left out, and it gets a line for each.
    Errors: InvalidWarehouse; UsageError where a policy refuses a cluster, or where `out` cannot be written.
    """
    from rackspan.pipeline.report.from_warehouse import report_data
    from rackspan.report import write_report

    run, data = report_data(warehouse, policies, names, left_out)
    write_report(data, out)
    return policy_warnings(run, policies, [str(cluster.cluster_id) for cluster in data.clusters])
