"""A Spark driver that the test kills: a stream from a topic into Parquet, whose sink keeps each batch once.

Arguments: master, brokers, topic, folder, and `kill-me` or `to-the-end`. The last run prints the rows as JSON. In it the first
attempt at partition 0 of each batch fails half-way, and that at partition 1 hangs until Spark's speculative copy has overtaken it.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from tests.kafka_source.standalone import QUICK

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.log.level": "ERROR",
}

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
HANGING_SECONDS = 120


def disturbed(folder: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes batches on, but in the first attempts. What happened is left as files in `folder`."""

    def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        first = task.attemptNumber() == 0
        for batch in batches:
            yield batch
            if first and task.partitionId() == 0:
                Path(folder, "failed").touch()
                raise RuntimeError("the first attempt fails")
            if first and task.partitionId() == 1:
                time.sleep(HANGING_SECONDS)
                Path(folder, "not overtaken").touch()
        if task.partitionId() == 1 and not first:
            Path(folder, "overtaken").touch()

    return passed


def main(master: str, servers: str, topic: str, folder: str, until: str) -> None:
    builder = SparkSession.builder.master(master)
    speculative = until == "to-the-end" and master.startswith("spark://")
    for name, value in {**SETTINGS, **(SPECULATION if speculative else {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    frame = (
        spark.readStream.format("rackspan-kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "60" if until == "kill-me" else "5000")
        .option("metricsPath", f"{folder}/metrics")
    )
    if script := os.environ.get("RACK_SCRIPT"):
        frame = frame.option("rack.script", script)
    rows = frame.load().select("partition", "offset", "value")
    if speculative:
        rows = rows.mapInArrow(disturbed(folder), rows.schema)
    writer = rows.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    if until == "to-the-end":
        writer = writer.trigger(availableNow=True)
    query = writer.start(f"{folder}/rows")
    query.awaitTermination()
    written = spark.read.parquet(f"{folder}/rows").collect()
    read = spark.read.json(f"{folder}/metrics").select("executor_rack", "broker_rack").distinct().collect()
    print(json.dumps({"rows": [(row.partition, row.offset) for row in written], "racks": [tuple(row) for row in read]}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
