"""Makes ReportData from a warehouse: the tables in force, and the latest snapshot of each cluster, summarized."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import groupby

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.audit.policy import RackPolicy
from rackspan.pipeline import session
from rackspan.pipeline.frames.inputs import glob_escaped
from rackspan.pipeline.incremental import fingerprint
from rackspan.pipeline.manifest import Manifest, read_manifest
from rackspan.pipeline.report.data import ReportData
from rackspan.pipeline.report.summaries import EPOCH, Tables, summarize
from rackspan.pipeline.schemas import DRIFT, FINDINGS, OUTAGE_IMPACT, PARTITION_DURABILITY, Table
from rackspan.pipeline.table import in_force
from rackspan.pipeline.warehouse import StoredSnapshot, Warehouse, stored_snapshots
from rackspan.sources import snapshot_file


def report_data(warehouse: Warehouse, policy: RackPolicy, master: str | None = None) -> ReportData:
    """A summary of the tables in force, and the outcome of each loss for the latest snapshot of each cluster in them.

    Snapshots collected since the last run are left out. Errors: InvalidWarehouse where nothing has been run;
    MissingRequirement without pyspark or Java; UsageError where the policy refuses a cluster.
    """
    manifest = read_manifest(warehouse)
    with session.spark_session(master) as spark:
        read_tables = (PARTITION_DURABILITY, FINDINGS, OUTAGE_IMPACT, DRIFT)
        tables = Tables(*(table_frame(spark, warehouse, manifest, table) for table in read_tables))
        latest = latest_known(warehouse, manifest, policy, last_rows(tables.impact))
        snapshots = {one.day.cluster_id: snapshot_file.read(one.folder).snapshot for one in latest}
        return summarize(tables, snapshots, policy)


def table_frame(spark: SparkSession, warehouse: Warehouse, manifest: Manifest, table: Table) -> DataFrame:
    """A table's rows by the manifest. Grain: the table's. Errors: InvalidWarehouse."""
    days = in_force(warehouse, manifest, table)
    files = [glob_escaped(warehouse.tables / file) for one in days.values() for file in one.files]
    return spark.read.schema(table.ddl).parquet(*files) if files else spark.createDataFrame([], table.ddl)


def last_rows(impact: DataFrame) -> dict[str, datetime]:
    """The time of each cluster's last snapshot in the tables: outage_impact has rows for every snapshot."""
    newest = impact.groupBy("cluster_id").agg(F.max(F.unix_micros("taken_at")).alias("at_micros"))
    return {row.cluster_id: EPOCH + timedelta(microseconds=row.at_micros) for row in newest.collect()}


def latest_known(
    warehouse: Warehouse, manifest: Manifest, policy: RackPolicy, last: Mapping[str, datetime]
) -> Iterable[StoredSnapshot]:
    """The latest snapshot of each cluster that is in the tables.

    A snapshot is in the tables if it has rows, or if its day is up to date: one without partitions may have no rows.
    """
    known = (
        one
        for day, stored in stored_snapshots(warehouse).items()
        for up_to_date in [_up_to_date(manifest, stored, policy)]
        for one in stored
        if up_to_date or one.taken_at == last.get(day.cluster_id)
    )
    for _cluster_id, of_cluster in groupby(known, key=lambda one: one.day.cluster_id):
        yield max(of_cluster, key=lambda one: one.taken_at)


def _up_to_date(manifest: Manifest, stored: list[StoredSnapshot], policy: RackPolicy) -> bool:
    made = manifest.day(PARTITION_DURABILITY.name, stored[0].day)
    return made is not None and made.inputs == fingerprint(PARTITION_DURABILITY, stored, policy)
