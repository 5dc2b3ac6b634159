"""Makes the rows of a run with Spark, in one job without a shuffle of rows: a task judges some snapshots and writes files of every table.

Constraints: only files of attempts that came back are committed; no row of a partition passes through Spark or the driver. The
tasks, which the driver plans from the logs, are the rows of a data frame; mapInArrow runs them (judging/) on the executors, and
returns a row for each file. Spark schedules, retries and ships. Source: our own. Tests: tests/pipeline/spark/test_build.py.
"""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rackspan.audit import ClusterPolicies
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.append import NewFile
from rackspan.pipeline.delta.credentials import redacted
from rackspan.pipeline.hours.task import write_task as write_hours
from rackspan.pipeline.hours.work import HoursWork, HourTask, hour_tasks
from rackspan.pipeline.incremental import Files, RunWork
from rackspan.pipeline.judging.tasks import TASK_PARTITIONS, JudgeTask, judge_tasks
from rackspan.pipeline.judging.write import keyed_rows, table_rows, write_task
from rackspan.pipeline.schemas import TABLES, Table, ddl
from rackspan.pipeline.spark.executors import REQUIRED_BY_READINGS, require_on_executors
from rackspan.pipeline.warehouse import Warehouse

FILES: Final = "table STRING, path STRING, day STRING, size BIGINT, stats STRING"
FILE_ROWS: Final = pa.schema(
    [*((name, pa.string()) for name in ("table", "path", "day")), ("size", pa.int64()), ("stats", pa.string())]
)


class SparkBuild:
    """Runs the tasks of runs on Spark. `session` is called when it is needed first, and then kept."""

    def __init__(self, session: Callable[[], SparkSession], warehouse: Warehouse) -> None:
        self._session, self._warehouse = session, warehouse
        self._spark: SparkSession | None = None

    def judged(self, work: RunWork, policies: ClusterPolicies) -> Files:
        """Errors: InvalidWarehouse where Spark fails; UsageError where a policy refuses a cluster."""
        return self._run(judge_tasks(replace(self._warehouse, damaged=work.damaged), work, policies))

    def hours(self, work: HoursWork, policies: ClusterPolicies) -> Files:
        """Errors: InvalidWarehouse where Spark fails; UsageError where executors lack what hours of readings need."""
        tasks = hour_tasks(self._warehouse, work, policies)
        if any(task.of_readings for task in tasks):
            # `follow` may have started before there were any.
            require_on_executors(self._opened(), REQUIRED_BY_READINGS)
        return self._run(tasks)

    def _opened(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._session()
        return self._spark

    def _run(self, tasks: Sequence[JudgeTask] | Sequence[HourTask]) -> Files:
        if not tasks:
            return {}
        spark = self._opened()
        with _in_one_line(self._warehouse):
            rows = task_frame(spark, tasks).mapInArrow(_written, FILES).collect()
        files: dict[str, list[NewFile]] = {}
        for row in rows:
            file = NewFile(row["path"], date.fromisoformat(row["day"]), row["size"], json.loads(row["stats"]))
            files.setdefault(row["table"], []).append(file)
        return files


def judged_frame(
    spark: SparkSession, warehouse: Warehouse, work: RunWork, policies: ClusterPolicies, table: Table
) -> DataFrame:
    """The rows of one table at each snapshot of a run that is to write them whole. Grain: the table's."""
    tasks = judge_tasks(warehouse, work, policies)
    name, view = table.name, table.at_each_snapshot.schema.names

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in _tasks(batches):
            for of_table, found in keyed_rows(task):
                if of_table == name:
                    day = pa.repeat(pa.scalar(task.judged[0].stored.day, pa.date32()), len(found))
                    keyed = table_rows(task, TABLES[name], found).append_column("day", day)
                    names = [
                        "valid_from" if column == "taken_at" and TABLES[name].as_changes else column for column in view
                    ]
                    yield from keyed.select(names).rename_columns(view).combine_chunks().to_batches()

    return task_frame(spark, tasks).mapInArrow(rows, ddl(table.at_each_snapshot.columns))


def task_frame(spark: SparkSession, tasks: Sequence[JudgeTask] | Sequence[HourTask]) -> DataFrame:
    """A row for each task, in as many partitions as there is work for. Grain: task."""
    pickled = pa.array([pickle.dumps(task) for task in tasks], pa.binary())
    frame = spark.createDataFrame(pa.table({"task": pickled, "number": range(len(tasks))})).coalesce(1)
    full = -(-sum(task.partitions for task in tasks) // TASK_PARTITIONS)
    count = min(len(tasks), full)
    # Spark deals rows out in turn, from a random partition on: evenly only where all come from one. It skips a `coalesce` directly
    # below a `repartition`, so a sort is between them.
    return frame.sortWithinPartitions("number").repartition(count) if count > 1 else frame


def _tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    # Made by our own driver, as the functions that Spark sends.
    return (pickle.loads(task) for batch in batches for task in batch.column(0).to_pylist())  # noqa: S301 - made by the driver of this run


def _written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function of the executors: a row for each file."""
    for task in _tasks(batches):
        files = [
            {
                "table": name,
                "path": file.path,
                "day": str(file.day),
                "size": file.size_bytes,
                "stats": json.dumps(file.stats),
            }
            for name, file in (write_task(task) if isinstance(task, JudgeTask) else write_hours(task))
        ]
        yield pa.RecordBatch.from_pylist(files, schema=FILE_ROWS)


@contextmanager
def _in_one_line(warehouse: Warehouse) -> Iterator[None]:
    from py4j.protocol import Py4JError

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise InvalidWarehouse(f"{warehouse.root}: Spark stopped: {root_cause(error)}; see --debug") from error


def root_cause(error: Exception) -> str:
    """What an executor's Python raised, or the message of the innermost of Spark's causes, in one line."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    text = (str(error) if cause is None else cause.toString()).strip()
    lines = text.splitlines()
    if "Traceback (most recent call last):" in text:
        # The last line that is not indented, without the module of the exception.
        raised = [line for line in lines if line and not line[0].isspace() and not line.startswith("Traceback")]
        lines = [raised[-1].partition(": ")[2] or raised[-1]]
    return redacted(lines[0])[:400]
