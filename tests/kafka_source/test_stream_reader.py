"""Streams over the embedded cluster: limits, AvailableNow, restarts from the checkpoint, new partitions, lost records."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.query import StreamingQuery

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.options import parse
from rackspan.kafka_source.stream_reader import KafkaStreamReader
from rackspan.model.ids import TopicPartition
from tests.kafka_source.ended_query import ended
from tests.kafka_source.filled_topics import consumed, created, produced, transaction
from tests.waiting import WITHIN_SECONDS


def stream(spark: SparkSession, cluster: EmbeddedCluster, topic: str, **options: str) -> DataFrame:
    named = {name.replace("__", "."): value for name, value in options.items()}
    reader = spark.readStream.format("rackspan-kafka").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").options(**named).load()


def run_available(frame: DataFrame, folder: Path) -> StreamingQuery:
    """One run to the end of what there is, into Parquet, whose sink keeps each batch once."""
    writer = frame.select("partition", "offset").writeStream.format("parquet").trigger(availableNow=True)
    return ended(lambda: writer.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "rows")))


def written(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(folder / "rows")).select("partition", "offset").collect()
    return sorted((row.partition, row.offset) for row in rows)


def offsets(
    cluster: EmbeddedCluster, topic: str, partitions: int = 2, *, committed: bool = False
) -> list[tuple[int, int]]:
    found = consumed(cluster.bootstrap_servers, topic, partitions, committed=committed)
    return [(row.partition, row.offset) for row in found]


@pytest.mark.spark
def test_limited_batches_and_restarts_read_each_record_once(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 100)
    query = run_available(stream(spark, cluster, topic, maxOffsetsPerTrigger="40"), tmp_path)
    assert [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]] == [40, 40, 20]
    assert written(spark, tmp_path) == offsets(cluster, topic)
    produced(cluster.bootstrap_servers, topic, 30, first=100)
    run_available(stream(spark, cluster, topic), tmp_path)
    again = run_available(stream(spark, cluster, topic), tmp_path)
    assert sum(progress["numInputRows"] for progress in again.recentProgress) == 0
    assert written(spark, tmp_path) == offsets(cluster, topic)


@pytest.mark.spark
def test_a_partition_that_is_added_is_read_from_its_first_record(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    topic = created(cluster)
    transaction(cluster.bootstrap_servers, topic, [b"a", b"b"], commit=False)
    run_available(stream(spark, cluster, topic, kafka__isolation__level="read_committed"), tmp_path)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.create_partitions([NewPartitions(topic, 3)]).values():
        future.result()
    transaction(cluster.bootstrap_servers, topic, [b"c", b"d", b"e"], commit=True, partitions=3)
    run_available(stream(spark, cluster, topic, kafka__isolation__level="read_committed"), tmp_path)
    assert written(spark, tmp_path) == offsets(cluster, topic, 3, committed=True)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaStreamReader, "_sleep", lambda *_: None)


def reader(cluster: EmbeddedCluster, topic: str, **options: str) -> KafkaStreamReader:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, **options}
    return KafkaStreamReader(parse(given, streaming=True), ("offset",))


def plain(offsets: dict[str, dict[str, int | str]]) -> dict[str, dict[str, int | str]]:
    """Offsets as Spark's connector has them, without topic ids."""
    return {topic: {n: at for n, at in row.items() if n != "topicId"} for topic, row in offsets.items()}


def test_a_stream_begins_at_the_end_by_default(cluster: EmbeddedCluster) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 10)
    latest, earliest = reader(cluster, topic), reader(cluster, topic, startingOffsets="earliest")
    assert plain(latest.initialOffset()) == {topic: {"0": 5, "1": 5}}
    assert latest.reportLatestOffset() == latest.initialOffset()
    assert plain(earliest.initialOffset()) == {topic: {"0": 0, "1": 0}}
    latest.stop()
    earliest.stop()


def in_group(cluster: EmbeddedCluster, group: str, topic: str) -> list[int]:
    """The offsets of two partitions that librdkafka finds committed there; -1001 if there is none."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    try:
        found = consumer.committed([ConfluentPartition(topic, number) for number in (0, 1)], timeout=WITHIN_SECONDS)
        return [partition.offset for partition in found]
    finally:
        consumer.close()


@pytest.mark.spark
def test_what_a_query_has_read_is_committed_to_the_group_that_is_named(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """Up to its last batch: monitors would show the rest as lag until the next run."""
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 30)
    group = f"lag-of-{topic}"
    run_available(stream(spark, cluster, topic, maxOffsetsPerTrigger="20", commitOffsetsToGroup=group), tmp_path)
    assert in_group(cluster, group, topic) == [15, 15]
    assert in_group(cluster, f"not-{group}", topic) == [-1001, -1001]


def test_a_batch_is_in_the_group_when_spark_has_committed_it_and_not_before(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 30)
    group = f"lag-of-{topic}"
    found = reader(cluster, topic, startingOffsets="earliest", commitOffsetsToGroup=group)
    start = found.initialOffset()
    end = found.latestOffset(start, ReadAllAvailable())
    found.partitions(start, end)
    assert in_group(cluster, group, topic) == [0, 0]
    found.commit(end)
    assert in_group(cluster, group, topic) == [15, 15]
    commits: list[object] = []
    monkeypatch.setattr(SourceCluster, "commit", lambda *arguments: commits.append(arguments))
    assert found.latestOffset(end, ReadAllAvailable()) == end
    assert commits == [], "nothing new is committed again"
    found.stop()


def test_a_group_with_members_costs_one_line_and_no_query(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 10)
    group = f"busy-{topic}"
    member = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    member.subscribe([topic])
    while not member.assignment():
        member.poll(0.1)
    found = reader(cluster, topic, startingOffsets="earliest", commitOffsetsToGroup=group)
    start = found.initialOffset()
    end = found.latestOffset(start, ReadAllAvailable())
    found.commit(end)
    member.close()
    found.stop()
    assert plain(end) == {topic: {"0": 5, "1": 5}}
    assert capsys.readouterr().err == (
        f"rackspan-kafka: offsets are not committed to group {group}, and the query goes on: UNKNOWN_MEMBER_ID\n"
    )


def test_a_limit_of_bytes_counts_what_the_brokers_store(cluster: EmbeddedCluster) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 100)
    found = reader(cluster, topic, startingOffsets="earliest", maxBytesPerTrigger="2000")
    (zero, one) = (found.latestOffset(found.initialOffset(), found.getDefaultReadLimit())[topic][n] for n in "01")
    with SourceCluster(found._options.client) as source:
        averages = source.bytes_per_offset([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    assert 20 < averages[TopicPartition(topic, 0)] < 400
    read = zero * averages[TopicPartition(topic, 0)] + one * averages[TopicPartition(topic, 1)]
    assert 1500 < read <= 2000
    everything = reader(cluster, topic, startingOffsets="earliest", maxBytesPerTrigger="2000", maxOffsetsPerTrigger="4")
    limit = found.getDefaultReadLimit()
    assert plain(everything.latestOffset(found.initialOffset(), limit)) == {topic: {"0": 2, "1": 2}}
    assert plain(found.latestOffset(found.initialOffset(), ReadAllAvailable())) == {topic: {"0": 50, "1": 50}}
    found.stop()
    everything.stop()


def test_a_batch_waits_for_the_least_offsets_and_no_longer_than_the_delay(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, clock = created(cluster), [100.0]
    monkeypatch.setattr(KafkaStreamReader, "_now", lambda _self: clock[0])
    waits = {"startingOffsets": "earliest", "minOffsetsPerTrigger": "6", "maxTriggerDelay": "30s"}
    found = reader(cluster, topic, **waits)
    produced(cluster.bootstrap_servers, topic, 2)
    first = found.latestOffset(found.initialOffset(), found.getDefaultReadLimit())
    assert plain(first) == {topic: {"0": 1, "1": 1}}
    produced(cluster.bootstrap_servers, topic, 4, first=2)
    clock[0] += 29
    assert found.latestOffset(first, found.getDefaultReadLimit()) == first
    clock[0] += 1
    second = found.latestOffset(first, found.getDefaultReadLimit())
    assert plain(second) == {topic: {"0": 3, "1": 3}}
    produced(cluster.bootstrap_servers, topic, 6, first=6)
    third = found.latestOffset(second, found.getDefaultReadLimit())
    assert plain(third) == {topic: {"0": 6, "1": 6}}
    produced(cluster.bootstrap_servers, topic, 2, first=12)
    found.prepareForTriggerAvailableNow()
    assert plain(found.latestOffset(third, found.getDefaultReadLimit())) == {topic: {"0": 7, "1": 7}}
    found.stop()


def test_a_target_is_kept_whatever_is_produced_later(cluster: EmbeddedCluster) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 10)
    found = reader(cluster, topic, startingOffsets="earliest")
    found.prepareForTriggerAvailableNow()
    produced(cluster.bootstrap_servers, topic, 10, first=10)
    target = found.latestOffset(found.initialOffset(), found.getDefaultReadLimit())
    assert plain(target) == {topic: {"0": 5, "1": 5}}
    assert found.latestOffset(target, found.getDefaultReadLimit()) == target
    assert found.partitions(target, target) == []
    found.stop()


def test_a_topic_that_is_gone_is_lost(cluster: EmbeddedCluster, no_pauses: None) -> None:
    topic, other = created(cluster), created(cluster)
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribePattern": f"^({topic}|{other})$"}
    found = KafkaStreamReader(parse({**given, "startingOffsets": "earliest"}, streaming=True), ("offset",))
    there = {topic: {"0": 0, "1": 0}, other: {"0": 0, "1": 0}}
    start = {**there, "gone": {"0": 7}}
    for lost in (
        lambda: found.latestOffset(start, found.getDefaultReadLimit()),
        lambda: found.partitions(start, there),
    ):
        with pytest.raises(ClusterRequestFailed, match="gone-0 was read up to offset 7 and is no longer there"):
            lost()
    found.stop()


def test_offsets_that_went_backwards_are_lost_records(
    cluster: EmbeddedCluster, no_pauses: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after an unclean election: the log ends at 5, and the stream has read up to 9."""
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 10)
    start, end = {topic: {"0": 9, "1": 0}}, {topic: {"0": 5, "1": 5}}
    strict, tolerant = reader(cluster, topic), reader(cluster, topic, failOnDataLoss="false")
    for lost in (
        lambda: strict.latestOffset(start, strict.getDefaultReadLimit()),
        lambda: strict.partitions(start, end),
    ):
        with pytest.raises(ClusterRequestFailed, match="-0 was read up to offset 9 and now ends at 5"):
            lost()
    # What is produced from 5 on is new.
    assert plain(tolerant.latestOffset(start, tolerant.getDefaultReadLimit())) == end
    assert [part.wanted.size for part in tolerant.partitions(start, end)] == [5]  # type: ignore[attr-defined]
    assert capsys.readouterr().err.count("-0 was read up to offset 9 and now ends at 5") == 1
    strict.stop()
    tolerant.stop()


def test_an_open_transaction_is_no_loss(cluster: EmbeddedCluster, no_pauses: None) -> None:
    """As after a change of kafka.isolation.level: the stream has read records that read_committed does not have yet."""
    topic = created(cluster)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in (0, 1):
        producer.produce(topic, b"v", partition=number)
    assert producer.flush(WITHIN_SECONDS) == 0
    found = reader(cluster, topic, **{"kafka.isolation.level": "read_committed"})
    start = {topic: {"0": 1, "1": 0}}
    assert plain(found.reportLatestOffset()) == {topic: {"0": 0, "1": 0}}
    assert plain(found.latestOffset(start, found.getDefaultReadLimit())) == start
    found.stop()
    producer.abort_transaction(30)


@pytest.mark.spark
def test_an_option_of_batches_is_refused(spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="option endingOffsets: only batch reads have it"):
        run_available(stream(spark, cluster, "orders", endingOffsets="latest"), tmp_path)


def test_the_driver_logs_a_line_about_each_micro_batch(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 10)
    start, middle, end = ({topic: {"0": n, "1": n}} for n in (0, 3, 5))
    plain = reader(cluster, topic)
    plain.partitions(start, middle)
    plain.commit(start)
    assert capsys.readouterr().err == ""
    plain.commit(middle)
    assert capsys.readouterr().err.endswith(": 6 offsets in 2 ranges; metricsPath adds bytes by rack\n")
    plain.partitions(middle, end)
    plain.stop()
    # Spark does not say whether the last batch succeeded.
    assert capsys.readouterr().err == ""
    counting = reader(cluster, topic, metricsPath=str(tmp_path), **{"kafka.client.rack": "r2"})
    for begin, until in ((start, middle), (middle, end)):
        for task in counting.partitions(begin, until):
            list(counting.read(task))
    first = capsys.readouterr().err
    assert first.startswith("rackspan-kafka: batch ")
    assert first.endswith(": 6 records in 2 ranges, 0.0 MB, 0.0 MB of it across racks\n")
    counting.stop()
    assert ": 4 records in 2 ranges, " in capsys.readouterr().err
