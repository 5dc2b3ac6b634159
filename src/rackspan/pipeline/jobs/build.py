"""Make days of tables with Spark: read snapshots, run the job, write sorted files below the staging folder."""

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
from rackspan.pipeline.jobs.tables import JOBS, Judged, Made, keyed
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.warehouse import Day, StoredSnapshot, Warehouse


def build(
    spark: SparkSession, warehouse: Warehouse, work: Mapping[str, list[Work]], policy: RackPolicy, staging: Path
) -> None:
    """Each table's work as `TABLE/unit=N/*.parquet`. Errors: InvalidWarehouse where Spark cannot read a snapshot."""
    judged: dict[tuple[tuple[StoredSnapshot, ...], tuple[Day, ...]], Judged] = {}
    try:
        for name, days in work.items():
            read = _read_by(days), tuple(one.day for one in days)
            if read not in judged:
                judged[read] = _judged(Inputs(spark, warehouse, *read), policy)
            write(JOBS[name](judged[read]), judged[read].inputs.snapshots, days[0].table, staging / name)
    except (PySparkException, Py4JError) as error:
        raise InvalidWarehouse(f"{warehouse.root}: Spark stopped: {_said(error)}; see --debug") from error
    finally:
        for one in judged.values():
            one.registrations.destroy()


def _read_by(days: Iterable[Work]) -> tuple[StoredSnapshot, ...]:
    """The snapshots of the days and those before them, each once, in order of cluster and time."""
    read = {one for day in days for one in (day.previous, *day.snapshots) if one is not None}
    return tuple(sorted(read, key=lambda one: (one.day.cluster_id, one.taken_at)))


def _judged(inputs: Inputs, policy: RackPolicy) -> Judged:
    return Judged(inputs, inputs.spark.sparkContext.broadcast(registrations(inputs, policy)), policy)


def write(made: Made, snapshots: DataFrame, table: Table, folder: Path) -> None:
    """Files of a size readers like, each of one day and sorted by the grain."""
    # In order of cluster and moment is in order of `snapshot`.
    order = ("unit", "snapshot", *(name for name in table.grain if name not in ("cluster_id", "taken_at")))
    together = keyed(made.frame, snapshots).hint("rebalance", "unit").sortWithinPartitions(*order)
    rows = made.finished(together).withColumn("schema_version", F.lit(table.version))
    rows.select("unit", *table.schema.names).write.partitionBy("unit").parquet(str(folder))


def _said(error: Exception) -> str:
    """What went wrong at the bottom of Spark's causes, in one line."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = str(error) if cause is None else cause.toString()
    return text.strip().splitlines()[0][:400]
