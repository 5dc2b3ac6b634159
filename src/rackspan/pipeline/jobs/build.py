"""Makes and commits the tables of a run with Spark: reads snapshots, runs the jobs, writes each table from the version it has."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.credentials import redacted
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.frames.registrations import Registrations, registrations
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.jobs.tables import JOBS, JobInputs, TableRows, keyed
from rackspan.pipeline.runs import TRANSACTION
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.warehouse import Warehouse

TABLES_AT_ONCE: Final = 2
"""While one table waits for its commit, another one computes."""


def build(spark: SparkSession, warehouse: Warehouse, work: RunWork, policy: RackPolicy) -> None:
    """Commit every table's rows. Errors: InvalidWarehouse where Spark fails; UsageError where the policy refuses a cluster."""
    known = registrations(warehouse, work.snapshots, policy)
    # Of every commit, a restore too: a run recognizes its own commits by it.
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", work.run_id)
    jobs: list[Callable[[], None]] = [
        partial(_one_table, spark, warehouse, work, one, known, policy) for one in work.tables.values()
    ]
    _all_done(warehouse, jobs)


def _one_table(
    spark: SparkSession,
    warehouse: Warehouse,
    work: RunWork,
    one: TableWork,
    known: Registrations,
    policy: RackPolicy,
) -> None:
    version = one.version
    path = warehouse.spark_path(one.table.name)
    if one.restored is not None:
        quoted = path.replace("`", "``")
        spark.sql(f"RESTORE TABLE delta.`{quoted}` TO VERSION AS OF {one.restored}")
        version += 1
    job = job_inputs(spark, warehouse, work, one, known, policy)
    rows = table_rows(JOBS[one.table.name](job), job.compared.snapshots, one.table, work.run_id)
    writer = rows.write.format("delta").partitionBy("day").option("mergeSchema", "true")
    # Of two runs that write at once Delta refuses the second: both would commit this version of the table.
    writer = writer.option("txnAppId", TRANSACTION).option("txnVersion", str(version + 1))
    if one.again:
        writer.mode("overwrite").option("replaceWhere", replaced_rows(work, one)).save(path)
    else:
        writer.mode("append").save(path)


def job_inputs(
    spark: SparkSession,
    warehouse: Warehouse,
    work: RunWork,
    one: TableWork,
    known: Registrations,
    policy: RackPolicy,
) -> JobInputs:
    """The frames that a table is made of."""
    pairs = work.pairs(one.judged) if one.table.looks_back else []
    both = sorted({*one.judged, *(before for before, _ in pairs)})
    return JobInputs(
        Inputs(spark, warehouse, work.snapshots, one.judged),
        Inputs(spark, warehouse, work.snapshots, both, pairs),
        known,
        policy,
    )


def table_rows(rows: TableRows, snapshots: DataFrame, table: Table, run_id: str) -> DataFrame:
    """The rows as the table has them, in files of a size that readers prefer, each of one day and sorted by the grain."""
    # Snapshots are numbered in order of cluster and time, so sorting by `snapshot` sorts by both.
    order = ("day", "snapshot", *(name for name in table.grain if name not in ("cluster_id", "taken_at")))
    together = keyed(rows.frame, snapshots).hint("rebalance", "day").sortWithinPartitions(*order)
    finished = rows.finished(together).withColumns({"run_id": F.lit(run_id), "schema_version": F.lit(table.version)})
    return finished.select(*table.schema.names)


def replaced_rows(work: RunWork, one: TableWork) -> str:
    """A condition that holds for the rows of exactly the snapshots that the run makes."""
    stored = [work.snapshots[number] for number in one.judged]
    days = sorted({snapshot.day for snapshot in stored} & one.whole_days)
    ids = sorted(snapshot.snapshot_id for snapshot in stored if snapshot.day not in one.whole_days)
    conditions = []
    if days:
        conditions.append(f"day IN ({_dates(days)})")
    if ids:
        other_days = sorted({snapshot.day for snapshot in stored} - one.whole_days)
        listed = ", ".join(f"'{identity}'" for identity in ids)
        conditions.append(f"(day IN ({_dates(other_days)}) AND snapshot_id IN ({listed}))")
    return " OR ".join(conditions)


def _dates(days: list[date]) -> str:
    return ", ".join(f"DATE'{day.isoformat()}'" for day in days)


def _all_done(warehouse: Warehouse, jobs: list[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(TABLES_AT_ONCE) as threads:
        pending = [threads.submit(job) for job in jobs]
        try:
            for one in pending:
                one.result()
        except Exception as error:
            for one in pending:
                one.cancel()
            if _is_of_spark(error):
                raise InvalidWarehouse(f"{warehouse.root}: Spark stopped: {root_cause(error)}; see --debug") from error
            raise


def _is_of_spark(error: Exception) -> bool:
    from py4j.protocol import Py4JError

    return isinstance(error, PySparkException | Py4JError)


def root_cause(error: Exception) -> str:
    """The message of the innermost of Spark's causes, in one line."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error) if cause is None else cause.toString()
    return redacted(text.strip().splitlines()[0])[:400]
