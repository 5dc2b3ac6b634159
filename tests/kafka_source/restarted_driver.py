"""A Spark driver that the test kills: a stream from a topic into Parquet, whose sink keeps each batch once.

Arguments: master, brokers, topic, folder, and `kill-me` or `to-the-end`. The last run prints the rows as JSON.
"""

import json
import os
import sys

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "ERROR",
}


def main(master: str, servers: str, topic: str, folder: str, until: str) -> None:
    builder = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
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
    writer = frame.load().select("partition", "offset", "value").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    if until == "to-the-end":
        writer = writer.trigger(availableNow=True)
    query = writer.start(f"{folder}/rows")
    query.awaitTermination()
    rows = spark.read.parquet(f"{folder}/rows").collect()
    read = spark.read.json(f"{folder}/metrics").select("executor_rack", "broker_rack").distinct().collect()
    print(json.dumps({"rows": [(row.partition, row.offset) for row in rows], "racks": [tuple(row) for row in read]}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
