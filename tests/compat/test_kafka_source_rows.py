"""The same topics of real Kafka read by Spark's own connector and by this source: equal rows, column by column."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import DataFrame, SparkSession

from rackspan.kafka_process import KafkaCluster
from tests.compat.spark_connector import add_connector
from tests.compat.test_kafka_source import compacted
from tests.kafka_fixtures import await_partitions
from tests.kafka_source.ended_query import ended
from tests.kafka_source.filled_topics import CODECS, consumed, created, produced, transaction
from tests.pipeline.conftest import spark
from tests.waiting import WITHIN_SECONDS

__all__ = ["spark"]

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

THEIRS, OURS = "kafka", "rackspan-kafka"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    add_connector(spark)
    return spark


@pytest.fixture(scope="module")
def topics(kafka: KafkaCluster) -> Mapping[str, str]:
    """Two partitions each: every codec with headers and nulls; transactions; a log that was compacted; append times."""
    servers = kafka.bootstrap_servers
    found = {"codecs": created(kafka), "transactions": created(kafka)}
    for index, codec in enumerate(CODECS):
        produced(servers, found["codecs"], 200, codec, first=200 * index)
    for number in range(4):
        transaction(servers, found["transactions"], [b"%d" % value for value in range(10)], commit=number % 2 == 0)
    found["compacted"], _ = compacted(kafka)
    found["append times"] = created(kafka, config={"message.timestamp.type": "LogAppendTime"})
    produced(servers, found["append times"], 100)
    return found


def load(session: SparkSession, kind: str, kafka: KafkaCluster, options: Mapping[str, str]) -> DataFrame:
    reader = session.read.format(kind).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    return reader.option("includeHeaders", "true").options(**options).load()


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row.partition, row.offset))


LEVELS = ("read_committed", "read_uncommitted")


@pytest.mark.parametrize(
    ("name", "level"),
    [
        # What a level changes in make test, every pair in make soak.
        pytest.param(name, level, marks=pytest.mark.soak if level == LEVELS[1] and name != "transactions" else [])
        for name in ("codecs", "transactions", "compacted", "append times")
        for level in LEVELS
    ],
)
def test_a_batch_has_the_rows_of_sparks_connector(
    session: SparkSession, kafka: KafkaCluster, topics: Mapping[str, str], name: str, level: str
) -> None:
    options = {"subscribe": topics[name], "kafka.isolation.level": level, "minPartitions": "3"}
    theirs, ours = (load(session, kind, kafka, options) for kind in (THEIRS, OURS))
    assert ours.schema == theirs.schema
    found, expected = rows(ours), rows(theirs)
    if name == "compacted":
        # The cleaner may run between the two reads: a record that only one has is one that it removes.
        both = {row.offset for row in found} & {row.offset for row in expected}
        found, expected = ([row for row in part if row.offset in both] for part in (found, expected))
        assert len({row.key for row in found}) == 7
    assert found
    assert found == expected


POSITIONS = (
    {"startingOffsets": '{"TOPIC": {"0": 7, "1": -2}}', "endingOffsets": '{"TOPIC": {"0": 90, "1": -1}}'},
    {"startingTimestamp": "1700000000123", "endingTimestamp": "1700000000456"},
    {
        "startingOffsetsByTimestamp": '{"TOPIC": {"0": 1700000000100, "1": 1700000000200}}',
        "endingOffsetsByTimestamp": '{"TOPIC": {"0": 1700000000300, "1": 1800000000000}}',
    },
    {"startingTimestamp": "1800000000000", "startingOffsetsByTimestampStrategy": "latest"},
    {"maxRecordsPerPartition": "37"},
)


@pytest.mark.rest
@pytest.mark.parametrize("position", POSITIONS, ids=lambda value: next(iter(value)))
def test_positions_mean_what_they_mean_to_sparks_connector(
    session: SparkSession, kafka: KafkaCluster, topics: Mapping[str, str], position: Mapping[str, str]
) -> None:
    topic = topics["codecs"]
    options = {"subscribe": topic} | {name: value.replace("TOPIC", topic) for name, value in position.items()}
    theirs, ours = (load(session, kind, kafka, options) for kind in (THEIRS, OURS))
    assert rows(ours) == rows(theirs)


@pytest.mark.parametrize("name", [pytest.param("codecs", marks=pytest.mark.soak), "transactions"])
def test_a_stream_has_the_rows_of_sparks_connector_and_its_offsets(
    session: SparkSession, kafka: KafkaCluster, name: str, tmp_path: Path
) -> None:
    """In two runs from one checkpoint each; before the second, records and a partition are added."""
    servers, topic = kafka.bootstrap_servers, created(kafka)

    def fill(first: int, partitions: int) -> None:
        if name == "codecs":
            produced(servers, topic, 100, "zstd", partitions=partitions, first=first)
        else:
            for commit in (True, False):
                transaction(
                    servers, topic, [b"%d" % n for n in range(first, first + 9)], commit=commit, partitions=partitions
                )

    def run(kind: str) -> Any:
        reader = session.readStream.format(kind).option("kafka.bootstrap.servers", servers).option("subscribe", topic)
        options = {"startingOffsets": "earliest", "includeHeaders": "true", "maxOffsetsPerTrigger": "40"}
        frame = reader.options(**options).option("kafka.isolation.level", "read_committed").load()
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / kind / "checkpoint")).trigger(
            availableNow=True
        )
        query = ended(lambda: writer.format("parquet").start(str(tmp_path / kind / "rows")))
        assert query.lastProgress is not None
        end = json.loads(query.lastProgress["sources"][0]["endOffset"])
        return {name: {n: at for n, at in row.items() if n != "topicId"} for name, row in end.items()}

    fill(0, 2)
    assert run(OURS) == run(THEIRS)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    await_partitions(kafka, topic, 3)
    fill(100, 3)
    assert run(OURS) == run(THEIRS)
    theirs, ours = (rows(session.read.parquet(str(tmp_path / kind / "rows"))) for kind in (THEIRS, OURS))
    assert ours == theirs
    assert {row.partition for row in ours} == {0, 1, 2}


@pytest.mark.rest
def test_written_rows_are_those_of_sparks_connector_in_the_same_partitions(
    session: SparkSession, kafka: KafkaCluster
) -> None:
    found = []
    frame = session.range(500).selectExpr(
        "cast(id as string) as key",
        "if(id % 7 = 0, null, cast(id * id as string)) as value",
        "if(id % 3 = 0, array(named_struct('key', 'h', 'value', cast(cast(id as string) as binary))), null) as headers",
    )
    for kind in (THEIRS, OURS):
        topic = created(kafka, partitions=2)
        writer = frame.write.format(kind).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        writer.option("topic", topic).mode("append").save()
        records = consumed(kafka.bootstrap_servers, topic)
        found.append(sorted((row.partition, row.key, row.value, row.headers) for row in records))
    theirs, ours = found
    assert len(ours) == 500
    assert ours == theirs


PARTS: list[Any] = [(None, None, None), (b"", b"", []), (b"v", None, [("", b""), ("a", None), ("a", b"2")])]


def test_a_record_without_any_part_is_read_alike(session: SparkSession, kafka: KafkaCluster) -> None:
    topic = created(kafka, partitions=1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value, key, headers in PARTS:
        producer.produce(topic, value, key, headers=headers)
    producer.flush(WITHIN_SECONDS)
    theirs, ours = (rows(load(session, kind, kafka, {"subscribe": topic})) for kind in (THEIRS, OURS))
    assert len(ours) == 3
    assert ours == theirs
