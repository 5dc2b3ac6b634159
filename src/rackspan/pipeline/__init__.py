"""The data pipeline: snapshots of clusters into a warehouse, the judge over all of them on Spark, tables for readers.

Begin with warehouse.py (what lies where), collect.py and incremental.py; frames/ and jobs/ are the Spark part, schemas.py
what comes out. The judge is rackspan.audit: Spark carries its functions over Arrow batches, or, where that is three times as
fast, says the same in columns of its own (frames/broker_bits.py), held to it by a test. Spark is imported by `run` alone, so
collecting and reading need neither it nor Java.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from rackspan.audit import RackPolicy
from rackspan.pipeline.collect import Collected, Stored, collect, collect_every, from_folder, store
from rackspan.pipeline.incremental import RunReport, Work, refresh
from rackspan.pipeline.manifest import judged_otherwise, read_manifest
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.table import in_force, rows
from rackspan.pipeline.warehouse import Warehouse, create_warehouse, open_warehouse

__all__ = [
    "TABLES",
    "Collected",
    "RunReport",
    "Stored",
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
    """Bring every table up to date with Spark; no Spark is started where nothing is to do.

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
    """Draw one page from the tables in force. Returns what is odd about it, a line each.

    Errors: as `run`, and UsageError where `out` cannot be written.
    """
    # What is wrong with the warehouse is said before Spark's seconds.
    manifest = read_manifest(warehouse)
    in_force(warehouse, manifest, TABLES["partition_durability"])
    from rackspan.pipeline import session

    session.require_pyspark()
    from rackspan.pipeline.report import write_report
    from rackspan.pipeline.report.from_warehouse import report_data

    write_report(report_data(warehouse, policy, master), out)
    return judged_otherwise(manifest, policy)
