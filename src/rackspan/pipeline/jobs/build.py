"""Makes days of tables with Spark: reads snapshots, runs the jobs, writes sorted files below the staging folder."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.frames.registrations import registrations
from rackspan.pipeline.incremental import Work
from rackspan.pipeline.jobs.tables import JOBS, JobInputs, TableRows, keyed
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.warehouse import Day, StoredSnapshot, Warehouse


def build(
    spark: SparkSession, warehouse: Warehouse, work: Mapping[str, list[Work]], policy: RackPolicy, staging: Path
) -> None:
    """Each table's work as `TABLE/unit=N/*.parquet`. Errors: InvalidWarehouse where Spark cannot read a snapshot."""
    job_inputs: dict[tuple[tuple[StoredSnapshot, ...], tuple[Day, ...]], JobInputs] = {}
    try:
        for name, days in work.items():
            read = _read_by(days), tuple(one.day for one in days)
            if read not in job_inputs:
                job_inputs[read] = _job_inputs(Inputs(spark, warehouse, *read), policy)
            job = job_inputs[read]
            write(JOBS[name](job), job.inputs.snapshots, days[0].table, staging / name)
    except (PySparkException, Py4JError) as error:
        raise InvalidWarehouse(f"{warehouse.root}: Spark stopped: {_root_cause(error)}; see --debug") from error
    finally:
        for one in job_inputs.values():
            one.registrations.destroy()


def _read_by(days: Iterable[Work]) -> tuple[StoredSnapshot, ...]:
    """The snapshots of the days and the ones before them, each once, in order of cluster and time."""
    read = {one for day in days for one in (day.previous, *day.snapshots) if one is not None}
    return tuple(sorted(read, key=lambda one: (one.day.cluster_id, one.taken_at)))


def _job_inputs(inputs: Inputs, policy: RackPolicy) -> JobInputs:
    return JobInputs(inputs, inputs.spark.sparkContext.broadcast(registrations(inputs, policy)), policy)


def write(rows: TableRows, snapshots: DataFrame, table: Table, folder: Path) -> None:
    """Write Parquet files of a size that readers prefer, each of one day and sorted by the grain."""
    # Snapshots are numbered in order of cluster and time, so sorting by `snapshot` sorts by both.
    order = ("unit", "snapshot", *(name for name in table.grain if name not in ("cluster_id", "taken_at")))
    together = keyed(rows.frame, snapshots).hint("rebalance", "unit").sortWithinPartitions(*order)
    finished = rows.finished(together).withColumn("schema_version", F.lit(table.version))
    finished.select("unit", *table.schema.names).write.partitionBy("unit").parquet(str(folder))


def _root_cause(error: Exception) -> str:
    """The message of the innermost of Spark's causes, in one line."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error) if cause is None else cause.toString()
    return text.strip().splitlines()[0][:400]
