"""The data pipeline: stores snapshots of clusters in a warehouse, audits them on Spark, and writes tables.

From a snapshot to a row of partition_durability: collect.py, warehouse.py (the folders), incremental.py (which days to make),
jobs/build.py and jobs/tables.py, frames/inputs.py, frames/requirements.py, frames/durability.py, rackspan.audit. schemas.py
defines the tables, report/ draws a page from them. Spark calls the functions of rackspan.audit on Arrow batches or, where
that is three times as fast, computes the same in columns of its own (frames/bits/); a test compares the two. Only `run` and
`draw_report` import Spark, so collecting and reading need neither Spark nor Java.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from rackspan.audit import RackPolicy
from rackspan.pipeline.collect import Collected, SnapshotLocation, collect, collect_every, from_folder, store
from rackspan.pipeline.incremental import RunReport, Work, refresh
from rackspan.pipeline.manifest import policy_warnings, read_manifest
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.table import in_force, rows
from rackspan.pipeline.warehouse import Warehouse, create_warehouse, open_warehouse

__all__ = [
    "TABLES",
    "Collected",
    "RunReport",
    "SnapshotLocation",
    "Warehouse",
    "collect",
    "collect_every",
    "create_warehouse",
    "draw_report",
    "from_folder",
    "open_warehouse",
    "rows",
    "run",
    "store",
]


def run(warehouse: Warehouse, policy: RackPolicy, master: str | None = None) -> RunReport:
    """Bring every table up to date. Spark is started only where there is something to do.

    Errors: InvalidWarehouse, InvalidSnapshot, MissingRequirement without pyspark or Java, UsageError where the policy
    refuses a cluster or Spark does not come up on `master`.
    """

    def build(work: Mapping[str, list[Work]], policy: RackPolicy, staging: Path) -> None:
        from rackspan.pipeline import session

        with session.spark_session(master) as spark:
            from rackspan.pipeline.jobs import build as job

            job.build(spark, warehouse, work, policy, staging)

    return refresh(warehouse, policy, build, now=lambda: datetime.now(UTC), seconds=time.monotonic)


def draw_report(warehouse: Warehouse, policy: RackPolicy, out: Path, master: str | None = None) -> list[str]:
    """Write one HTML page from the tables in force. Returns its warnings, a line each.

    Errors: as `run`, and UsageError where `out` cannot be written.
    """
    # Errors of the warehouse are raised before Spark is started, which takes seconds.
    manifest = read_manifest(warehouse)
    in_force(warehouse, manifest, TABLES["partition_durability"])
    from rackspan.pipeline import session

    session.require_pyspark()
    from rackspan.pipeline.report import write_report
    from rackspan.pipeline.report.from_warehouse import report_data

    write_report(report_data(warehouse, policy, master), out)
    return policy_warnings(manifest, policy)
