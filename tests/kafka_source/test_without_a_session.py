"""The data source as Spark calls it before anything is read or written, without a Spark session."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from rackspan.errors import MissingRequirement, UsageError
from rackspan.kafka_source.data_source import FilteringReader, KafkaReader, RackspanKafkaDataSource
from rackspan.kafka_source.stream_reader import KafkaStreamReader
from rackspan.kafka_source.writing import sender, writer
from rackspan.kafka_source.writing.options import parse_sink
from rackspan.kafka_source.writing.sender import WriteReport
from rackspan.kafka_source.writing.writer import KafkaStreamWriter, KafkaWriter, TaskWritten

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:1"}
READ = {**SERVERS, "subscribe": "orders"}
VALUE = StructType([StructField("value", BinaryType())])
LIMITS = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger")


def source(options: dict[str, str]) -> RackspanKafkaDataSource:
    return RackspanKafkaDataSource(options)


@pytest.mark.parametrize(
    ("options", "has_headers"), [({}, False), ({"INCLUDEHEADERS": "True"}, True), ({"includeHeaders": "false"}, False)]
)
def test_the_schema_has_headers_where_they_are_requested(options: dict[str, str], has_headers: bool) -> None:
    schema = source(options).schema()
    assert schema.startswith(
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
    )
    assert ("headers" in schema) is has_headers


def test_a_batch_is_read_by_a_reader_that_takes_filters_only_by_its_option() -> None:
    assert type(source(READ).reader(VALUE)) is KafkaReader
    assert type(source({**READ, "filterPushdown": "true"}).reader(VALUE)) is FilteringReader


def test_a_column_that_there_is_not_is_refused() -> None:
    other = StructType([StructField("price", StringType())])
    for reader in (source(READ).reader, source(READ).streamReader):
        with pytest.raises(UsageError, match="price"):
            reader(other)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_needs_a_spark_that_has_limits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataSourceStreamReader, "getDefaultReadLimit", None, raising=False)
    assert isinstance(source({**READ, name: "10"}).streamReader(VALUE), KafkaStreamReader)
    monkeypatch.delattr(DataSourceStreamReader, "getDefaultReadLimit")
    assert isinstance(source(READ).streamReader(VALUE), KafkaStreamReader)
    with pytest.raises(UsageError, match=f"^option {name}: only Spark 4.2 and newer limit Python data sources$"):
        source({**READ, name: "10"}).streamReader(VALUE)


def test_rows_are_appended_and_never_take_the_place_of_others() -> None:
    sink = source({**SERVERS, "topic": "orders"})
    assert isinstance(sink.writer(VALUE, overwrite=False), KafkaWriter)
    assert isinstance(sink.streamWriter(VALUE, overwrite=True), KafkaStreamWriter)
    with pytest.raises(
        UsageError, match=r'^mode overwrite: Kafka keeps what was written before; use mode\("append"\)$'
    ):
        sink.writer(VALUE, overwrite=True)


def test_a_stream_is_written_by_spark_4_1_and_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_STREAMS_ARROW", False)
    sink = source({**SERVERS, "topic": "orders"})
    assert isinstance(sink.writer(VALUE, overwrite=False), KafkaWriter)
    with pytest.raises(UsageError, match=r"^writeStream: only Spark 4\.1 and newer"):
        sink.streamWriter(VALUE, overwrite=False)


def test_writing_needs_confluent_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "find_spec", lambda _name: None)
    with pytest.raises(MissingRequirement, match=r"^confluent-kafka is not installed, and writing to Kafka needs it; "):
        source({**SERVERS, "topic": "orders"}).writer(VALUE, overwrite=False)


@pytest.mark.parametrize("kind", [KafkaWriter, KafkaStreamWriter])
def test_a_task_returns_what_it_wrote(kind: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "write_rows", lambda batches, options: ([*batches], options))
    options = parse_sink({**SERVERS, "topic": "orders"})
    assert kind(options).write(iter(["batch"])) == (["batch"], options)


@pytest.mark.parametrize(("kind", "batch"), [(KafkaWriter, ()), (KafkaStreamWriter, (7,))])
def test_a_batch_that_was_written_or_failed_is_a_line_if_any_task_reported(
    kind: Callable[..., Any], batch: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    made = kind(parse_sink({**SERVERS, "topic": "orders"}))
    tasks = [TaskWritten(WriteReport(Counter(orders=2), 1_500_000)), None, TaskWritten(WriteReport(Counter(orders=3)))]
    made.commit(tasks, *batch)
    made.abort(tasks[:2], *batch)
    made.commit([None], *batch)
    assert capsys.readouterr().err.splitlines() == [
        "rackspan-kafka: 5 records (1.5 MB) written: 5 to orders",
        "rackspan-kafka: 2 records (1.5 MB) written: 2 to orders; the batch failed after that, and these records stay",
    ]


def test_what_verifies_records_is_closed_at_the_end_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[object] = []

    def verifier(
        servers: str, _login: object, topics: dict[str, int], *, others: int, **_: object
    ) -> tuple[object, ...]:
        return servers, topics, others

    def thread(records: object) -> SimpleNamespace:
        steps.append(records)
        return SimpleNamespace(
            verify="verify", start=lambda: steps.append("started"), close=lambda: steps.append("closed")
        )

    monkeypatch.setattr(sender, "RecordVerifier", verifier)
    monkeypatch.setattr(sender, "VerifierThread", thread)
    two_racks = parse_sink({**SERVERS, "topic": "orders", "min.insync.racks": "2"})
    with pytest.raises(ZeroDivisionError), sender._verifier(two_racks) as verify:  # noqa: PT012
        steps.append(verify)
        raise ZeroDivisionError
    assert steps == [("127.0.0.1:1", {}, 2), "started", "verify", "closed"]
    with sender._verifier(parse_sink({**SERVERS, "topic": "orders"})) as verify:
        assert verify({("orders", 0): 5}) == {}
