"""For engineers in a notebook: tables as DataFrames, judgements that are not written, and names in Spark's catalog.

Each function takes a Spark session with Delta Lake, classic or Spark Connect. `spark_session` of spark/session.py makes one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from rackspan.audit import ClusterPolicies, RackPolicy
from rackspan.errors import UsageError
from rackspan.pipeline.changes import views
from rackspan.pipeline.delta.table import open_table
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.names import has_names
from rackspan.pipeline.landing.neighbours import neighbours
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import (
    BROKERS,
    CLUSTERS,
    DERIVED,
    DRIFT,
    FINDINGS,
    HISTORY,
    JUDGED,
    LANDING,
    OUTAGE_IMPACT,
    RUNS,
    SNAPSHOTS,
    TABLES,
    Table,
    table_named,
)
from rackspan.pipeline.table import version_in_force
from rackspan.pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_QUERIES: Final[Mapping[str, tuple[Callable[..., str], Sequence[Table]]]] = {
    "current_findings": (views.current_findings, (FINDINGS, JUDGED)),
    "risk_by_topic": (views.risk_by_topic, (OUTAGE_IMPACT, JUDGED)),
    "racks_survived": (views.racks_survived, (OUTAGE_IMPACT, JUDGED)),
    "incidents": (views.incidents, (DRIFT, OUTAGE_IMPACT, BROKERS, SNAPSHOTS, JUDGED)),
}
"""What `register` names beside the tables, each with the tables that it reads."""


def read(
    spark: "SparkSession", warehouse: Warehouse, name: str, *, at: datetime | None = None, changes: bool = False
) -> "DataFrame":
    """A table as readers see it: a derived one at the version of the newest run, with its rows at each snapshot.

    With `at`, the rows as of a time; with `changes`, what is stored, which landing tables always give. Grain: the table's.
    Errors: UsageError for an unknown table, or for `at` with a table that is none of changes; InvalidWarehouse where no run has
    made it yet.
    """
    table = table_named(name)
    stored = _reader(spark, warehouse)
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


def incidents(spark: "SparkSession", warehouse: Warehouse) -> "DataFrame":
    """Racks that were lost: what `outage_impact` foretold beside what was observed, as `views.incidents` has it.

    `cluster` is its name, null where it has none. Grain: `cluster_id`, `taken_at`, `lost_rack`. Errors: InvalidWarehouse where no run has made the tables yet.
    """
    stored = _reader(spark, warehouse)
    query, parts = _QUERIES["incidents"]
    tables: dict[str, Any] = {table.name: stored(table) for table in parts}
    found = query(views.SPARK, *(f"{{{name}}}" for name in tables))
    if has_names(warehouse):
        tables[CLUSTERS.name] = stored(CLUSTERS)
    clusters = f"{{{CLUSTERS.name}}}" if CLUSTERS.name in tables else None
    return spark.sql(views.with_names(found, clusters), **tables)


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
    from rackspan.pipeline.spark.executors import send_code

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
    """Register every table that readers can see, and the queries of `views` over them, in a schema of Spark's catalog. Returns the names.

    What runs make is registered as views of the versions that the newest run names, so that all are of one run; a version is fixed when a
    view is made, so register again after a run. Landing tables and `runs` have no such version, and are registered by their path.
    Errors: UsageError where the schema has those of another warehouse.
    """
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
    _refuse_another(spark, warehouse, schema)
    run, names = last_run(warehouse), []
    for table in (*DERIVED.values(), *LANDING.values(), *HISTORY.values(), CLUSTERS):
        if open_table(warehouse.table(table.name)) is None:
            continue
        full, path = f"{_quoted(schema)}.{_quoted(table.name)}", warehouse.spark_path(table.name)
        if table.name in LANDING or table in (RUNS, CLUSTERS):
            location = path.replace("\\", "\\\\").replace("'", "\\'")
            spark.sql(f"CREATE TABLE IF NOT EXISTS {full} USING DELTA LOCATION '{location}'")
        elif run is not None and table.name in run.versions:
            stored = f"delta.{_quoted(path)} VERSION AS OF {run.versions[table.name]}"
            spark.sql(f"CREATE OR REPLACE VIEW {full} AS SELECT * FROM {stored}")  # noqa: S608 - the names are quoted
        else:
            continue
        names.append(table.name)
    for name, (query, parts) in _QUERIES.items():
        if {part.name for part in parts} <= set(names):
            stored = query(views.SPARK, *(f"{_quoted(schema)}.{_quoted(part.name)}" for part in parts))
            clusters = f"{_quoted(schema)}.{_quoted(CLUSTERS.name)}" if CLUSTERS.name in names else None
            stored = views.with_names(stored, clusters)
            spark.sql(f"CREATE OR REPLACE VIEW {_quoted(schema)}.{name} AS {stored}")
            names.append(name)
    return [f"{schema}.{name}" for name in names]


def _reader(spark: "SparkSession", warehouse: Warehouse) -> Callable[[Table], "DataFrame"]:
    """Reads a table as it is stored, at the version that the newest run names."""
    run = last_run(warehouse)

    def stored(table: Table) -> "DataFrame":
        version = version_in_force(warehouse, table, run)
        reader = spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(warehouse.spark_path(table.name))

    return stored


def _refuse_another(spark: "SparkSession", warehouse: Warehouse, schema: str) -> None:
    """Errors: UsageError where a schema has the tables of another warehouse: beside them views of this one would show rows of both."""
    from pyspark.errors import PySparkException

    tables = spark.sql(f"SHOW TABLES IN {_quoted(schema)}").collect()
    if SNAPSHOTS.name not in {row["tableName"] for row in tables}:
        return
    try:
        details = spark.sql(f"DESCRIBE DETAIL {_quoted(schema)}.{_quoted(SNAPSHOTS.name)}").collect()
        there = str(details[0]["location"])
    except PySparkException:
        there = "a folder that is gone"
    if _place(there) != _place(warehouse.spark_path(SNAPSHOTS.name)):
        raise UsageError(
            f"schema {schema}: its table {SNAPSHOTS.name} is that of {there}, and not of {warehouse.root}; name another schema, or drop that one"
        )


def _place(url: str) -> str:
    """A path, or a URL as Hadoop writes it, in one form."""
    return url if "://" in url and not url.startswith("file:") else "/" + unquote(url.removeprefix("file:")).strip("/")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
