"""The classes of Spark as Java has parsed and verified them (Class-Data Sharing), for the dozens of Spark drivers that tests start.

    .venv/spark-4.2.0-classes.jsa    written by `python -m tests.spark_classes`, which make test runs: 190 MB in 45 s, once

A driver that loads them is ready in half of the time and of the processor time; without them tests take longer, no more. Java
ignores them where its build or Spark's jars are others. A user's Spark loads none: writing them takes as long as seven starts gain.
"""

import os
import sys
from importlib.metadata import version
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any, Final

from rackspan.errors import RackspanError, UsageError
from rackspan.kafka_process.release import class_archive
from tests.waiting import WITHIN_SECONDS

ARCHIVE: Final = Path(sys.prefix) / f"spark-{version('pyspark')}-classes.jsa"
_VARIABLE: Final = "SPARK_SUBMIT_OPTS"
"""Options of every driver that spark-submit starts, so of every Spark of PySpark; unlike JDK_JAVA_OPTIONS it prints nothing."""


def options() -> str:
    """Java's options to load the archive; none if it is not written."""
    return " ".join(class_archive.options(ARCHIVE))


def load() -> None:
    """Let every Spark driver that this process and its children start load the archive."""
    if words := options():
        os.environ.setdefault(_VARIABLE, words)


def write() -> None:
    """Run what drivers of tests run, then stop Spark; it writes the archive as it ends."""
    from pyspark import SparkContext

    from rackspan.pipeline.spark.session import spark_session

    with class_archive.writing(ARCHIVE) as java_options, TemporaryDirectory() as table:
        if not java_options:
            return
        os.environ[_VARIABLE] = " ".join(java_options)
        with spark_session("local[2]", light=True) as spark:
            rows = spark.range(100).selectExpr("id % 7 AS remainder", "id")
            rows.mapInArrow(lambda batches: batches, rows.schema).write.format("delta").mode("overwrite").save(table)
            spark.read.format("delta").load(table).groupBy("remainder").count().toPandas()
        gateway: Any = SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            status = gateway.proc.wait(WITHIN_SECONDS)
        except TimeoutExpired:
            gateway.proc.kill()
            raise
        if status:
            raise UsageError(f"Java ended with status {status}")


if __name__ == "__main__":
    try:
        write()
    except (RackspanError, TimeoutExpired) as error:
        print(f"{ARCHIVE} is not written: {error}", file=sys.stderr)
