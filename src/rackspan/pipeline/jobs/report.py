"""The report's job: the tables in force as frames, the latest judged snapshot of each cluster, one page."""

from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.model import ClusterSnapshot
from rackspan.pipeline.frames.inputs import EPOCH, MICROSECOND, glob_escaped
from rackspan.pipeline.manifest import Manifest, read_manifest
from rackspan.pipeline.report.summaries import summarize
from rackspan.pipeline.report.write import write_report
from rackspan.pipeline.schemas import FINDINGS, PARTITION_DURABILITY, Table
from rackspan.pipeline.table import in_force
from rackspan.pipeline.warehouse import Warehouse, snapshot_folder, stored_snapshots
from rackspan.sources import snapshot_file


def report(spark: SparkSession, warehouse: Warehouse, policy: RackPolicy, out: Path) -> None:
    """Draw every cluster of the tables. Errors: InvalidWarehouse where no run has made them, or a snapshot is gone."""
    manifest = read_manifest(warehouse)
    durability = table_frame(spark, warehouse, manifest, PARTITION_DURABILITY)
    findings = table_frame(spark, warehouse, manifest, FINDINGS)
    judged = latest_judged(durability.select("cluster_id", "taken_at").union(findings.select("cluster_id", "taken_at")))
    clusters = sorted({day.cluster_id for day in manifest.tables[PARTITION_DURABILITY.name]})
    latest = {one: _snapshot(warehouse, one, judged.get(one)) for one in clusters}
    write_report(summarize(durability, findings, latest, policy), out)


def table_frame(spark: SparkSession, warehouse: Warehouse, manifest: Manifest, table: Table) -> DataFrame:
    """A table as the manifest has it. Grain: the table's."""
    days = in_force(warehouse, manifest, table)
    files = [glob_escaped(warehouse.tables / file) for day in days.values() for file in day.files]
    return spark.read.schema(table.ddl).parquet(*files) if files else spark.createDataFrame([], table.ddl)


def latest_judged(moments: DataFrame) -> dict[str, datetime]:
    """The last moment of each cluster that the tables know. Grain: cluster_id; as many rows as there are clusters."""
    # Whole microseconds, since a driver in another time zone must not shift them.
    last = moments.groupBy("cluster_id").agg(F.max(F.unix_micros("taken_at")).alias("micros"))
    return {row.cluster_id: EPOCH + row.micros * MICROSECOND for row in last.collect()}


def _snapshot(warehouse: Warehouse, cluster_id: str, taken_at: datetime | None) -> ClusterSnapshot:
    folder = (
        _last_stored(warehouse, cluster_id) if taken_at is None else snapshot_folder(warehouse, cluster_id, taken_at)
    )
    if not folder.is_dir():
        raise InvalidWarehouse(
            f"{folder}: the latest snapshot of the tables is gone; collect another and run rackspan pipeline run"
        )
    return snapshot_file.read(folder).snapshot


def _last_stored(warehouse: Warehouse, cluster_id: str) -> Path:
    """Of a cluster without partitions and findings the tables hold no row."""
    stored = [one for day, days in stored_snapshots(warehouse).items() if day.cluster_id == cluster_id for one in days]
    return max(stored, key=lambda one: one.taken_at).folder if stored else warehouse.snapshots / cluster_id
