"""The classes of Spark as Java has parsed and verified them (Class-Data Sharing), for the dozens of Spark drivers that tests start.

    .venv/spark-4.2.0-classes.jsa    written by `python -m tests.spark_classes`, which make test runs: 190 MB in 45 s, once

A driver that loads them is ready in half of the time and of the processor time; without them tests take longer, no more. Java
ignores them where its build or Spark's jars are others. A user's Spark loads none: writing them takes as long as seven starts gain.
"""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from rackspan.errors import RackspanError

ARCHIVE: Final = Path(sys.prefix) / f"spark-{version('pyspark')}-classes.jsa"
_VARIABLE: Final = "SPARK_SUBMIT_OPTS"
"""Options of every driver that spark-submit starts, so of every Spark of PySpark; unlike JDK_JAVA_OPTIONS it prints nothing."""

_QUIET: Final = "-Xlog:disable"


def options() -> str:
    """Java's options to load the archive; none if it is not written."""
    return f"-XX:SharedArchiveFile={ARCHIVE} {_QUIET}" if ARCHIVE.exists() else ""


def load() -> None:
    """Let every Spark driver that this process and its children start load the archive."""
    if options():
        os.environ.setdefault(_VARIABLE, options())


def write() -> None:
    """Run what drivers of tests run, then stop Spark; it writes the archive as it ends."""
    from pyspark import SparkContext

    from rackspan.pipeline.spark.session import spark_session

    unfinished = ARCHIVE.with_name(f".{ARCHIVE.name}")
    os.environ[_VARIABLE] = f"-XX:ArchiveClassesAtExit={unfinished} {_QUIET}"
    with spark_session("local[2]", light=True) as spark:
        table = str(Path(sys.prefix) / ".spark-classes-table")
        rows = spark.range(100).selectExpr("id % 7 AS remainder", "id")
        rows.mapInArrow(lambda batches: batches, rows.schema).write.format("delta").mode("overwrite").save(table)
        spark.read.format("delta").load(table).groupBy("remainder").count().toPandas()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(120)
    unfinished.rename(ARCHIVE)


if __name__ == "__main__" and not ARCHIVE.exists():
    try:
        write()
    except RackspanError as error:
        print(f"{ARCHIVE} is not written: {error}", file=sys.stderr)
