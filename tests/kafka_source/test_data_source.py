"""Batch reads through Spark of topics on the embedded cluster, against librdkafka's consumer."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.functions import unix_millis

from rackspan.cluster import EmbeddedCluster
from tests.kafka_source.filled_topics import CODECS, Row, consumed, created, produced, transaction

pytestmark = pytest.mark.spark


def load(spark: SparkSession, cluster: EmbeddedCluster, schema: str | None = None, **options: str) -> DataFrame:
    named = {name.replace("__", "."): value for name, value in options.items()}
    reader = spark.read.format("rackspan-kafka").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    reader = reader.options(**named) if schema is None else reader.schema(schema).options(**named)
    return reader.load()


def rows(frame: DataFrame) -> list[Row]:
    found = frame.select("*", unix_millis("timestamp").alias("ms")).drop("timestamp").collect()
    return sorted(
        (
            Row(
                row.partition,
                row.offset,
                None if row.key is None else bytes(row.key),
                None if row.value is None else bytes(row.value),
                row.ms,
                None
                if row.headers is None
                else tuple((h.key, None if h.value is None else bytes(h.value)) for h in row.headers),
            )
            for row in found
        ),
        key=lambda row: (row.partition, row.offset),
    )


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


@pytest.fixture(scope="module")
def filled(cluster: EmbeddedCluster) -> str:
    topic = created(cluster)
    for index, codec in enumerate(CODECS):
        produced(cluster.bootstrap_servers, topic, 300, codec, first=300 * index)
    return topic


@pytest.fixture(scope="module")
def with_gaps(cluster: EmbeddedCluster) -> str:
    """Committed and aborted transactions; each leaves a marker, so the last offset is one."""
    topic = created(cluster)
    for number in range(4):
        values = [b"%d-%d" % (number, index) for index in range(10)]
        transaction(cluster.bootstrap_servers, topic, values, commit=number % 2 == 0)
    return topic


def test_every_column_equals_what_librdkafka_reads(spark: SparkSession, cluster: EmbeddedCluster, filled: str) -> None:
    frame = load(spark, cluster, subscribe=filled, includeHeaders="true", minPartitions="5")
    expected = consumed(cluster.bootstrap_servers, filled)
    assert len(expected) == 1500
    assert rows(frame) == expected
    assert {(row.topic, row.timestampType) for row in frame.select("topic", "timestampType").distinct().collect()} == {
        (filled, 0)
    }


@pytest.mark.parametrize("committed", [True, False])
def test_markers_and_aborted_records_are_gaps(
    spark: SparkSession, cluster: EmbeddedCluster, with_gaps: str, committed: bool
) -> None:
    level = "read_committed" if committed else "read_uncommitted"
    frame = load(spark, cluster, subscribe=with_gaps, includeHeaders="true", kafka__isolation__level=level)
    expected = consumed(cluster.bootstrap_servers, with_gaps, committed=committed)
    assert len(expected) == (20 if committed else 40)
    assert rows(frame) == expected


def test_every_range_of_offsets_around_gaps_ends(spark: SparkSession, cluster: EmbeddedCluster, with_gaps: str) -> None:
    """Of each partition 24 offsets, 4 of them markers and 10 aborted: one task for each record or gap."""
    frame = load(
        spark, cluster, subscribe=with_gaps, maxRecordsPerPartition="1", kafka__isolation__level="read_committed"
    )
    expected = consumed(cluster.bootstrap_servers, with_gaps, committed=True)
    assert offsets(frame) == [(row.partition, row.offset) for row in expected]


@pytest.mark.parametrize("rack", ["r1", "r2", "r3"])
def test_a_task_reads_the_replica_of_its_rack(
    spark: SparkSession, cluster: EmbeddedCluster, filled: str, rack: str, tmp_path: Path
) -> None:
    (tmp_path / "rack").write_text(rack)
    metrics = tmp_path / "metrics"
    frame = load(spark, cluster, subscribe=filled, rack__file=str(tmp_path / "rack"), metricsPath=str(metrics))
    assert frame.count() == 1500
    read = [json.loads(line) for file in metrics.rglob("*.json") for line in file.read_text().splitlines()]
    assert {(row["broker_rack"], row["executor_rack"], row["choice"]) for row in read} == {(rack, rack, "same-rack")}
    assert sum(row["records"] for row in read) == 1500
    assert spark.read.json(str(metrics)).where("broker_rack != executor_rack").count() == 0


def test_a_rack_of_no_broker_is_reported_and_the_leader_read(
    spark: SparkSession, cluster: EmbeddedCluster, filled: str, tmp_path: Path
) -> None:
    frame = load(spark, cluster, subscribe=filled, kafka__client__rack="r9", metricsPath=str(tmp_path / "m"))
    assert frame.count() == 1500
    assert [row.choice for row in spark.read.json(str(tmp_path / "m")).select("choice").distinct().collect()] == [
        "rack-of-no-broker"
    ]


def test_spark_takes_no_preferred_locations_from_python(spark: SparkSession) -> None:
    """When this fails, tasks can be placed by rack: docs/decisions/0018-one-range-a-task.md."""
    assert [name for name in vars(InputPartition) if "ocation" in name] == []
    package = spark._jvm.org.apache.spark.sql.execution.datasources.v2.python  # type: ignore[union-attr]
    assert list(package.PythonInputPartition(0, bytearray(b"range")).preferredLocations()) == []


def test_starts_and_ends(spark: SparkSession, cluster: EmbeddedCluster, filled: str) -> None:
    every = consumed(cluster.bootstrap_servers, filled)
    given = load(
        spark, cluster, assign=f'{{"{filled}": [1]}}',
        startingOffsets=f'{{"{filled}": {{"1": 100}}}}', endingOffsets=f'{{"{filled}": {{"1": 103}}}}',
    )  # fmt: skip
    assert offsets(given) == [(1, 100), (1, 101), (1, 102)]
    timed = load(
        spark, cluster, subscribePattern=f"^{filled[:5]}.*{filled[-2:]}$",
        startingTimestamp="1700000000100", endingTimestamp="1700000000200",
    )  # fmt: skip
    first, last = 1_700_000_000_100, 1_700_000_000_200
    assert offsets(timed) == [(row.partition, row.offset) for row in every if first <= row.timestamp_ms < last]
    young = {"startingTimestamp": "1900000000000", "startingOffsetsByTimestampStrategy": "latest"}
    assert load(spark, cluster, subscribe=filled, **young).count() == 0


def test_a_schema_chooses_columns(spark: SparkSession, cluster: EmbeddedCluster, filled: str) -> None:
    frame = load(spark, cluster, schema="offset long, value binary", subscribe=filled)
    assert frame.columns == ["offset", "value"]
    expected = consumed(cluster.bootstrap_servers, filled)
    assert sum(row.offset for row in frame.collect()) == sum(row.offset for row in expected)


def test_filters_narrow_what_is_fetched(
    spark: SparkSession, cluster: EmbeddedCluster, filled: str, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = load(spark, cluster, subscribe=filled, filterPushdown="true", metricsPath=str(tmp_path / "m"))
        found = offsets(frame.where("partition = 1 and offset >= 10 and offset < 13"))
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert found == [(1, 10), (1, 11), (1, 12)]
    (row,) = spark.read.json(str(tmp_path / "m")).collect()
    assert (row.partition, row.start_offset, row.end_offset, row.records) == (1, 10, 13, 3)


WRONG = [
    ({"subscribe": "no-such-topic"}, "topic no-such-topic: UNKNOWN_TOPIC_OR_PARTITION"),
    ({"assign": '{"FILLED": [7]}'}, "option assign: there is no partition"),
    ({"subscribe": "FILLED", "startingOffsets": '{"FILLED": {"0": 1}}'}, "-1 is read and has no offset there"),
    ({"subscribe": "FILLED", "startingTimestamp": "1900000000000"}, "has no record at or after 1900000000000 ms"),
    ({"subscribe": "FILLED", "startingOffset": "latest"}, "did you mean startingOffsets?"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_what_is_wrong_is_a_line_within_sparks_error(
    spark: SparkSession, cluster: EmbeddedCluster, filled: str, options: dict[str, str], message: str
) -> None:
    options = {name: value.replace("FILLED", filled) for name, value in options.items()}
    with pytest.raises(PySparkException) as raised:
        load(spark, cluster, **options).count()
    assert any(message in line for line in str(raised.value).splitlines())


def test_a_schema_of_other_columns_is_refused(spark: SparkSession, cluster: EmbeddedCluster, filled: str) -> None:
    with pytest.raises(PySparkException, match="column 'value' is binary, not string; cast it after reading"):
        load(spark, cluster, schema="value string", subscribe=filled).count()


def test_deleted_records_fail_the_read_or_are_skipped(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    topic = created(cluster, partitions=1)
    produced(cluster.bootstrap_servers, topic, 50, partitions=1)
    options = {"subscribe": topic, "startingOffsets": f'{{"{topic}": {{"0": 5}}}}', "metricsPath": str(tmp_path / "m")}
    delete_before(cluster, topic, 20)
    with pytest.raises(PySparkException, match="offsets 5 to 20 are gone; the log begins at 20"):
        load(spark, cluster, **options).count()
    found = offsets(load(spark, cluster, failOnDataLoss="false", **options))
    assert found == [(0, offset) for offset in range(20, 50)]


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()
