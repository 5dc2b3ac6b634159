"""For engineers in a notebook: tables as DataFrames, judgements that are not written, and names in Spark's catalog.

Each function takes a Spark session with Delta Lake, classic or Spark Connect. `spark_session` of spark/session.py makes one.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from rackspan.audit import ClusterPolicies, RackPolicy
from rackspan.errors import UsageError
from rackspan.pipeline.changes import views
from rackspan.pipeline.delta.table import open_table
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.neighbours import neighbours
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import DERIVED, DRIFT, HISTORY, JUDGED, LANDING, TABLES, Table, table_named
from rackspan.pipeline.table import version_in_force
from rackspan.pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(
    spark: "SparkSession", warehouse: Warehouse, name: str, *, at: datetime | None = None, changes: bool = False
) -> "DataFrame":
    """A table as readers see it: a derived one at the version of the newest run, with its rows at each snapshot.

    With `at`, the rows as of a time; with `changes`, what is stored, which landing tables always give. Grain: the table's.
    Errors: UsageError for an unknown table, or for `at` with a table that is none of changes; InvalidWarehouse where no run has
    made it yet.
    """
    table, run = table_named(name), last_run(warehouse)

    def stored(of: Table) -> "DataFrame":
        version = version_in_force(warehouse, of, run)
        reader = spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(warehouse.spark_path(of.name))

    as_changes = table.as_changes and name in TABLES
    if at is not None and not as_changes:
        named = ", ".join(of.name for of in TABLES.values() if of.as_changes)
        raise UsageError(f"table {name}: has no rows as of a time; those that have are {named}")
    if changes or not as_changes:
        return stored(table)
    if at is None:
        query = views.at_each_snapshot(table, views.SPARK, "{rows}", "{judged}")
    else:
        query = views.as_of(table, views.SPARK, "{rows}", at, "{judged}")
    return spark.sql(query, rows=stored(table), judged=stored(JUDGED))


def judge(
    spark: "SparkSession",
    warehouse: Warehouse,
    name: str,
    snapshot_ids: Iterable[str],
    policies: ClusterPolicies = RackPolicy(),
) -> "DataFrame":
    """The rows that a derived table would have of some stored snapshots under a policy, or that of each cluster. Nothing is written.

    `run_id` is empty. Grain: the table's. Errors: UsageError for a table that is not derived, or an id that is not stored.
    """
    from rackspan.pipeline.spark.build import judged_frame
    from rackspan.pipeline.spark.session import send_code

    if name not in TABLES:
        raise UsageError(f"table {name!r}: not one of judged snapshots; choose one of {', '.join(TABLES)}")
    wanted = set(snapshot_ids)
    markers = read_markers(warehouse)
    given = markers.named(wanted)
    missing = wanted - {snapshot.snapshot_id for snapshot in given}
    if missing:
        raise UsageError(f"{warehouse.root}: no snapshot {min(missing)}; the table snapshots lists them")
    previous = neighbours(markers, given).previous if name == DRIFT.name else ()
    stored = tuple(sorted((*given, *previous), key=lambda snapshot: (snapshot.cluster_id, snapshot.taken_at)))
    places = tuple(place for place, snapshot in enumerate(stored) if snapshot.snapshot_id in wanted)
    send_code(spark)
    work = RunWork("", stored, {name: TableWork(TABLES[name], 0, places)}, whole=True)
    return judged_frame(spark, warehouse, work, policies, TABLES[name])


def register(spark: "SparkSession", warehouse: Warehouse, schema: str = "rackspan") -> list[str]:
    """Register every table that exists in a schema of Spark's catalog, by its path. Returns the names.

    The registered tables are the newest versions; `read` follows `runs`.
    """
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
    names = []
    for name in (*DERIVED, *LANDING, *HISTORY):
        if open_table(warehouse.table(name)) is None:
            continue
        full = f"{_quoted(schema)}.{_quoted(name)}"
        location = warehouse.spark_path(name).replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"CREATE TABLE IF NOT EXISTS {full} USING DELTA LOCATION '{location}'")
        names.append(f"{schema}.{name}")
    return names


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
