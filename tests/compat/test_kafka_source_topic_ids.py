"""Real Spark and real Kafka: a stream whose topic is created again while it is stopped, and offsets beyond the log."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rackspan.kafka_process import KafkaCluster
from tests.compat.spark_connector import add_connector
from tests.kafka_fixtures import create_topic
from tests.kafka_source.ended_query import ended
from tests.kafka_source.filled_topics import created, deleted, produced
from tests.pipeline.conftest import spark

__all__ = ["spark"]

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.rest
def test_a_topic_that_is_created_again_fails_the_stream_and_is_then_read_from_its_first_record(
    spark: SparkSession, kafka: KafkaCluster, tmp_path: Path
) -> None:
    topic = created(kafka, partitions=1)
    produced(kafka.bootstrap_servers, topic, 50, partitions=1)

    def run(fail: str) -> None:
        reader = spark.readStream.format("rackspan-kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").option("failOnDataLoss", fail)
        writer = frame.load().select("offset").writeStream.format("parquet").trigger(availableNow=True)
        ended(lambda: writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(tmp_path / "rows")))

    def rows() -> list[int]:
        return sorted(row.offset for row in spark.read.parquet(str(tmp_path / "rows")).collect())

    run("true")
    assert rows() == list(range(50))
    deleted(kafka, topic)
    create_topic(kafka, topic, replication_factor=3, config={"retention.ms": "-1"})
    produced(kafka.bootstrap_servers, topic, 80, partitions=1)
    with pytest.raises(PySparkException) as raised:
        run("true")
    assert any(
        f"topic {topic} was deleted and created again: its id" in line for line in str(raised.value).splitlines()
    )
    assert rows() == list(range(50))
    run("false")
    assert rows() == sorted([*range(50), *range(80)])


def load(spark: SparkSession, kind: str, kafka: KafkaCluster, options: Mapping[str, Any]) -> DataFrame:
    return spark.read.format(kind).option("kafka.bootstrap.servers", kafka.bootstrap_servers).options(**options).load()


@pytest.mark.soak
def test_offsets_beyond_the_log_are_refused_where_sparks_connector_skips_or_waits(
    spark: SparkSession, kafka: KafkaCluster
) -> None:
    add_connector(spark)
    topic = created(kafka, partitions=1)
    produced(kafka.bootstrap_servers, topic, 50, partitions=1)
    start = {"subscribe": topic, "startingOffsets": f'{{"{topic}": {{"0": 60}}}}'}
    end = {"subscribe": topic, "endingOffsets": f'{{"{topic}": {{"0": 60}}}}'}
    # Theirs skips the partition where it splits ranges, and where it does not it fails in a task.
    assert load(spark, "kafka", kafka, {**start, "minPartitions": "3"}).count() == 0
    with pytest.raises(Exception, match="Task 0 in stage"):
        load(spark, "kafka", kafka, start).count()
    with pytest.raises(PySparkException, match="is to be read from offset 60, and its log ends at 50"):
        load(spark, "rackspan-kafka", kafka, start).count()
    assert load(spark, "rackspan-kafka", kafka, {**start, "failOnDataLoss": "false"}).count() == 0
    with pytest.raises(PySparkException, match="is to be read up to offset 60, and its log ends at 50"):
        load(spark, "rackspan-kafka", kafka, end).count()
    with pytest.raises(Exception, match="Task 0 in stage"):
        load(spark, "kafka", kafka, {**end, "kafkaConsumer.pollTimeoutMs": "3000"}).count()
