"""Spark's own Kafka connector, added to a session that runs.

For Spark 4.2 no complete set of artefacts is published: of its token provider, which serves Kerberos alone, 4.0.0 is the newest.
"""

import functools
from pathlib import Path

from pyspark.sql import SparkSession

from tests.compat import ivy

COORDINATES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)


@functools.cache
def connector_jars() -> tuple[Path, ...]:
    return tuple(sorted(ivy.exact_jars("spark-sql-kafka-0-10-4.2.0", *COORDINATES).glob("*.jar")))


def add_connector(spark: SparkSession) -> None:
    """Format "kafka" from here on."""
    for jar in connector_jars():
        spark.sql(f"ADD JAR '{jar}'")
