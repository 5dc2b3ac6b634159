"""What Spark calls for a write: a task sends its rows, and the driver prints a line when a batch is complete.

At least once: a task or a batch that Spark runs again writes its records again. Nothing is undone when a query fails.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from rackspan.errors import MissingRequirement, UsageError, how_to_install
from rackspan.kafka_source.writing.options import SinkOptions
from rackspan.kafka_source.writing.rows import outgoing_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from rackspan.kafka_source.writing.sender import WriteReport

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    _STREAMS_ARROW = True
except ImportError:  # Spark 4.0 streams only rows to a Python sink.
    from pyspark.sql.datasource import DataSourceStreamWriter as DataSourceStreamArrowWriter  # type: ignore[assignment]  # as above

    _STREAMS_ARROW = False

_MB: Final = 1_000_000


@dataclass
class TaskWritten(WriterCommitMessage):
    """What a task reports to the driver."""

    report: "WriteReport"


def check_requirements(*, streaming: bool) -> None:
    """Errors: MissingRequirement, UsageError."""
    if streaming and not _STREAMS_ARROW:
        raise UsageError("writeStream: only Spark 4.1 and newer give Arrow batches to a Python sink; use foreachBatch")
    if find_spec("confluent_kafka") is None:
        raise MissingRequirement(
            f"confluent-kafka is not installed, and writing to Kafka needs it; {how_to_install('clients')}"
        )


def write_rows(batches: Iterator["pa.RecordBatch"], options: SinkOptions) -> TaskWritten:
    """All rows of a task. Errors: as RowSender's."""
    check_requirements(streaming=False)
    from rackspan.kafka_source.writing.sender import opened_sender

    with opened_sender(options) as sender:
        for batch in batches:
            sender.send(outgoing_rows(batch, options.topic))
        return TaskWritten(sender.finish())


def written_line(reports: Sequence["WriteReport"], options: SinkOptions, *, complete: bool) -> str:
    """One line about a batch, or about what tasks had written when it failed."""
    records: Counter[str] = Counter()
    for report in reports:
        records.update(report.records)
    topics = ", ".join(f"{count:,} to {topic}" for topic, count in sorted(records.items()))
    size = sum(report.size_bytes for report in reports) / _MB
    racks = options.min_insync_racks
    parts = [f"rackspan-kafka: {records.total():,} records ({size:.1f} MB) written{': ' + topics if topics else ''}"]
    if racks > 1:
        parts.append(f"each in sync in at least {racks} racks")
    if again := sum(report.sent_again for report in reports):
        parts.append(f"{again:,} of them twice, since racks were lost in between")
    if (waited := max((report.waited_seconds for report in reports), default=0.0)) >= 1:
        parts.append(f"waited up to {waited:.0f} s for racks")
    if not complete:
        parts.append("the batch failed after that, and these records stay")
    return "; ".join(parts)


def _print_line(messages: Sequence[WriterCommitMessage | None], options: SinkOptions, *, complete: bool) -> None:
    reports = [message.report for message in messages if isinstance(message, TaskWritten)]
    if reports:
        print(written_line(reports, options, complete=complete), file=sys.stderr, flush=True)


class KafkaWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        return write_rows(iterator, self._options)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _print_line(messages, self._options, complete=True)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _print_line(messages, self._options, complete=False)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """The micro-batches of a stream, one after another."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["pa.RecordBatch"]) -> WriterCommitMessage:
        return write_rows(iterator, self._options)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 — Spark's name
        _print_line(messages, self._options, complete=True)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 — Spark's name
        _print_line(messages, self._options, complete=False)
