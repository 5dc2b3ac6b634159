"""Makes the tables of a run with Spark: reads snapshots, runs the jobs, writes each table's rows as files that a run commits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rackspan.audit import ClusterPolicies
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.credentials import redacted
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.frames.registrations import Registrations, registrations
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.jobs.tables import JOBS, JobInputs, TableRows, keyed, with_requirements
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.warehouse import Warehouse

TABLES_AT_ONCE: Final = 4
"""While one table is planned or waits for its files, another one computes."""

FEW_PARTITIONS: Final = 1_000_000
"""Of all snapshots of a run: up to here planning and starting tasks take longer than what the tasks do."""

FEW_SETTINGS: Final[Mapping[str, str]] = {
    # Each stage of an adaptive query is a job of its own, planned anew.
    "spark.sql.adaptive.enabled": "false",
    # What is shuffled fits into a few tasks; a cluster's 200 are 200 files with next to nothing in them.
    "spark.sql.shuffle.partitions": "4",
}
"""Settings of the run's own session for so few partitions, from which every table is made of one cached frame."""

PART_TOPICS_MAX: Final = 250_000
"""Of all snapshots of a part of a run, which are judged one after another: twice as many, where each snapshot is compared with one that is
not judged, still fit into every executor (BROADCAST_TOPICS_MAX). More would move every partition to its topic first."""

VERY_FEW_PARTITIONS: Final = 100_000
"""Of all snapshots of a run: up to here compiling a query to Java takes longer than running it as it is."""

VERY_FEW_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def build(spark: SparkSession, warehouse: Warehouse, work: RunWork, policies: ClusterPolicies) -> None:
    """Write every table's rows. Errors: InvalidWarehouse where Spark fails; UsageError where a policy refuses a cluster."""
    warehouse = replace(warehouse, damaged=work.damaged)
    known = registrations(warehouse, work.snapshots, policies)
    shared = None
    with settings_for(spark, work):
        if work.partitions <= FEW_PARTITIONS:
            every = Inputs(spark, warehouse, work.snapshots, range(len(work.snapshots)))
            shared = with_requirements(every, known).persist()
        try:
            for part in parts(work):
                jobs: list[Callable[[], None]] = [
                    partial(_one_table, spark, warehouse, part, one, known, shared) for one in part.tables.values()
                ]
                _all_done(warehouse, jobs)
        finally:
            if shared is not None:
                shared.unpersist()


def parts(work: RunWork) -> Iterator[RunWork]:
    """The run in parts of at most PART_TOPICS_MAX topics, or one snapshot. Each snapshot is in one part, with all of its tables."""
    judged = sorted({place for one in work.tables.values() for place in one.judged})
    first = topics = 0
    for end, place in enumerate(judged):
        topics += work.snapshots[place].topics
        if topics > PART_TOPICS_MAX and end > first:
            yield _part(work, judged[first:end])
            first, topics = end, work.snapshots[place].topics
    yield _part(work, judged[first:])


def _part(work: RunWork, judged: Sequence[int]) -> RunWork:
    """The work of some snapshots alone, which keep their places."""
    wanted = frozenset(judged)
    tables = {
        name: replace(
            one,
            new=tuple(place for place in one.new if place in wanted),
            again=tuple(place for place in one.again if place in wanted),
        )
        for name, one in work.tables.items()
    }
    return replace(work, tables={name: one for name, one in tables.items() if one.judged})


@contextmanager
def settings_for(spark: SparkSession, work: RunWork) -> Iterator[None]:
    """The session's settings for a run of this size, for a block."""
    settings = {
        **(FEW_SETTINGS if work.partitions <= FEW_PARTITIONS else {}),
        **(VERY_FEW_SETTINGS if work.partitions <= VERY_FEW_PARTITIONS else {}),
    }
    before = {name: spark.conf.get(name) for name in settings}
    _set(spark, settings)
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, str(value))


def _one_table(
    spark: SparkSession,
    warehouse: Warehouse,
    work: RunWork,
    one: TableWork,
    known: Registrations,
    shared: DataFrame | None,
) -> None:
    job = job_inputs(spark, warehouse, work, one, known, shared)
    rows = table_rows(JOBS[one.table.name](job), job.compared.snapshots, one.table, work.run_id)
    # Readers go by the log, where a run names its files: a mark of success would be one file more.
    # To the files of the parts before.
    writer = (
        rows.write.mode("append").partitionBy("day").option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    )
    writer.parquet(f"{warehouse.spark_path(one.table.name)}/{work.run_id}")


def job_inputs(
    spark: SparkSession,
    warehouse: Warehouse,
    work: RunWork,
    one: TableWork,
    known: Registrations,
    shared: DataFrame | None = None,
) -> JobInputs:
    """The frames that a table is made of."""
    pairs = work.pairs(one.judged) if one.table.looks_back else []
    both = sorted({*one.judged, *(before for before, _ in pairs)})
    return JobInputs(
        Inputs(spark, warehouse, work.snapshots, one.judged),
        Inputs(spark, warehouse, work.snapshots, both, pairs),
        known,
        shared,
    )


def table_rows(rows: TableRows, snapshots: DataFrame, table: Table, run_id: str) -> DataFrame:
    """The rows as the table has them, in files of a size that readers prefer, each of one day and sorted by the grain."""
    # Snapshots are numbered in order of cluster and time, so sorting by `snapshot` sorts by both.
    order = ("day", "snapshot", *(name for name in table.grain if name not in ("cluster_id", "taken_at")))
    together = _together(keyed(rows.frame, snapshots), rows.tasks).sortWithinPartitions(*order)
    finished = rows.finished(together).withColumns({"run_id": F.lit(run_id), "schema_version": F.lit(table.version)})
    return finished.select(*table.schema.names)


def _together(found: DataFrame, tasks: int | None) -> DataFrame:
    """The rows in the tasks that write them."""
    if tasks is not None:
        return found.coalesce(tasks)
    # The hint is one of adaptive queries alone; without them few rows go to few files by the plain way.
    adaptive = found.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true"
    return found.hint("rebalance", "day") if adaptive else found.repartition("day")


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
