"""Make days of tables with Spark: read snapshots, run the job, write sorted files below the staging folder."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.frames.registrations import registrations
from rackspan.pipeline.incremental import Work
from rackspan.pipeline.jobs.tables import JOBS, Judged, keyed
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.warehouse import StoredSnapshot, Warehouse


def build(
    spark: SparkSession, warehouse: Warehouse, work: Mapping[str, list[Work]], policy: RackPolicy, staging: Path
) -> None:
    """Each table's work as `TABLE/unit=N/*.parquet`. Errors: InvalidWarehouse where Spark cannot read a snapshot."""
    judged: dict[tuple[StoredSnapshot, ...], Judged] = {}
    try:
        for name, days in work.items():
            stored = tuple(one for day in days for one in day.snapshots)
            if stored not in judged:
                judged[stored] = _judged(Inputs(spark, warehouse, stored), policy)
            rows = keyed(JOBS[name](judged[stored]), judged[stored].inputs.snapshots, days[0].table)
            write(rows, days[0].table, staging / name)
    except PySparkException as error:
        raise InvalidWarehouse(f"{warehouse.root}: Spark stopped: {_first_line(error)}; see --debug") from error
    finally:
        for one in judged.values():
            one.registrations.destroy()


def _judged(inputs: Inputs, policy: RackPolicy) -> Judged:
    return Judged(inputs, inputs.spark.sparkContext.broadcast(registrations(inputs, policy)), policy)


def write(rows: DataFrame, table: Table, folder: Path) -> None:
    """Files of a size readers like, each of one day and sorted by the grain."""
    together = rows.hint("rebalance", "unit").sortWithinPartitions("unit", *table.grain)
    together.write.partitionBy("unit").parquet(str(folder))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300]
