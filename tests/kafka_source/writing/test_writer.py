"""Writes through Spark to topics on the embedded cluster, as librdkafka's consumer reads them."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_source.data_source import RackspanKafkaDataSource
from rackspan.kafka_source.writing.options import parse_sink
from rackspan.kafka_source.writing.sender import WriteReport
from rackspan.kafka_source.writing.writer import written_line
from tests.kafka_source.filled_topics import consumed, created, produced

HEADERS = "array<struct<key:string,value:binary>>"


def write(cluster: EmbeddedCluster, frame: DataFrame, mode: str = "append", **options: str) -> None:
    named = {name.replace("__", "."): value for name, value in options.items()}
    writer = frame.write.format("rackspan-kafka").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    writer.options(**named).mode(mode).save()


@pytest.mark.spark
def test_every_column_arrives(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    topic, other = created(cluster), created(cluster)
    frame = spark.createDataFrame(
        [
            ("a", b"1", [("h", b"x"), ("h", None)], topic, 1),
            (None, b"", [], topic, 0),
            ("", None, None, other, 1),
        ],
        f"key string, value binary, headers {HEADERS}, topic string, partition int",
    ).coalesce(1)
    write(cluster, frame, min__insync__racks="3")
    found = [(row.partition, row.key, row.value, row.headers) for row in consumed(cluster.bootstrap_servers, topic)]
    assert found == [(0, None, b"", None), (1, b"a", b"1", (("h", b"x"), ("h", None)))]
    (row,) = consumed(cluster.bootstrap_servers, other)
    assert (row.partition, row.key, row.value) == (1, b"", None)
    write(cluster, frame.drop("partition", "key"), topic=other)
    assert len(consumed(cluster.bootstrap_servers, other)) == 4


@pytest.mark.spark
def test_a_stream_from_topic_to_topic_writes_each_record_once(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    source, target = created(cluster), created(cluster)
    produced(cluster.bootstrap_servers, source, 60)
    for _ in range(2):
        stream = spark.readStream.format("rackspan-kafka").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
        frame = (
            stream.option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .load()
        )
        writer = frame.writeStream.format("rackspan-kafka").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
        query = (
            writer.option("topic", target).option("checkpointLocation", str(tmp_path))
            .option("min.insync.racks", "2").trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    def records(topic: str) -> list[tuple[int, object, object, object]]:
        rows = consumed(cluster.bootstrap_servers, topic)
        return sorted(((row.partition, row.key, row.value, row.headers) for row in rows), key=repr)

    assert len(records(source)) == 60
    assert records(target) == records(source)


@pytest.mark.rest
@pytest.mark.spark
def test_complete_mode_writes_all_rows_of_each_batch_and_update_mode_is_refused(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    source, target = created(cluster), created(cluster)
    produced(cluster.bootstrap_servers, source, 20)
    stream = spark.readStream.format("rackspan-kafka").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    stream = (
        stream.option("subscribe", source).option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "10")
    )
    counts = stream.load().selectExpr("cast(partition as string) as key").groupBy("key").count()
    frame = counts.selectExpr("key", "cast(count as string) as value")

    def run(mode: str) -> None:
        writer = frame.writeStream.format("rackspan-kafka").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
        writer = writer.option("topic", target).option("checkpointLocation", str(tmp_path / mode)).outputMode(mode)
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(PySparkException, match=r"(?i)update"):
        run("update")
    assert consumed(cluster.bootstrap_servers, target) == []
    run("complete")
    found = sorted((row.key, row.value) for row in consumed(cluster.bootstrap_servers, target))
    assert found == [(b"0", b"10"), (b"0", b"5"), (b"1", b"10"), (b"1", b"5")]


WRONG = [
    ({"mode": "overwrite"}, "mode overwrite: Kafka keeps what was written before"),
    ({"topic": "no-such-topic"}, "topic no-such-topic: UNKNOWN_TOPIC_OR_PARTITION (3); create it"),
    ({"min__insync__racks": "4"}, "in-sync racks r1,r2,r3 = 3 < min.insync.racks 4"),
    ({"column": "partition", "expression": "7"}, "has 2 partitions, and a row names 7"),
    ({"column": "amount", "expression": "1"}, "schema: column 'amount' is not written"),
]


@pytest.mark.spark
@pytest.mark.parametrize(("change", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_what_is_wrong_is_a_line_within_sparks_error_and_nothing_is_written(
    spark: SparkSession, cluster: EmbeddedCluster, change: dict[str, str], message: str
) -> None:
    topic = created(cluster)
    options = {"topic": topic, **change}
    frame = spark.range(1).selectExpr("cast(id as string) as value")
    if name := options.pop("column", None):
        frame = frame.selectExpr("value", f"{options.pop('expression')} as {name}")
    with pytest.raises(PySparkException) as raised:
        write(cluster, frame, **options)
    assert any(message in line for line in str(raised.value).splitlines())
    assert consumed(cluster.bootstrap_servers, topic) == []


def test_a_writer_has_the_options_that_are_given() -> None:
    source = RackspanKafkaDataSource({"kafka.bootstrap.servers": "h:1", "topic": "orders"})
    writer = source.writer(StructType([StructField("value", StringType())]), overwrite=False)
    assert vars(writer) == {"_options": parse_sink(source.options)}


def test_the_line_at_the_end_of_a_batch_counts_what_tasks_wrote() -> None:
    options = parse_sink({"kafka.bootstrap.servers": "h:1", "min.insync.racks": "2", "underMinRacks": "wait"})
    reports = [
        WriteReport(Counter(orders=1200), 2_000_000, 0, 0.0),
        WriteReport(Counter(orders=1, bills=2), 500_000, 2, 7.4),
    ]
    assert written_line(reports, options, complete=True) == (
        "rackspan-kafka: 1,203 records (2.5 MB) written: 2 to bills, 1,201 to orders; each in sync in at least 2 racks; "
        "2 of them twice, since racks were lost in between; waited up to 7 s for racks"
    )
    plain = parse_sink({"kafka.bootstrap.servers": "h:1"})
    assert written_line(reports[:1], plain, complete=False) == (
        "rackspan-kafka: 1,200 records (2.0 MB) written: 1,200 to orders; the batch failed after that, and these records stay"
    )
