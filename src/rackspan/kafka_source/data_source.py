"""Spark's Python data source "rackspan-kafka", source and sink, batch and streaming: `spark.dataSource.register(RackspanKafkaDataSource)`.

Where the package `pyspark_rackspan`, which ships with this one, can be imported, Spark registers it by itself.

Source: pyspark.sql.datasource (Spark 4.0 and newer); what limits a trigger needs Spark 4.2.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from rackspan.errors import ClusterRequestFailed, UsageError
from rackspan.kafka_source import ranges
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.data_loss import ends_below, report_loss
from rackspan.kafka_source.filters import Bounds
from rackspan.kafka_source.options import KafkaSourceOptions, Position, parse, without_effect_line
from rackspan.kafka_source.range_partition import planned, read_partition
from rackspan.kafka_source.ranges import OffsetRange, Offsets
from rackspan.kafka_source.reading.task import TaskOptions
from rackspan.kafka_source.records import rows
from rackspan.kafka_source.stream_reader import KafkaStreamReader
from rackspan.kafka_source.writing.options import SinkOptions, parse_sink
from rackspan.kafka_source.writing.rows import check_columns
from rackspan.kafka_source.writing.writer import KafkaStreamWriter, KafkaWriter, check_requirements
from rackspan.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

NAME: Final = "rackspan-kafka"


class RackspanKafkaDataSource(DataSource):
    """Reads Kafka topics, each task from the replica in its own executor's rack, and writes to them.

    Columns and options are those of Spark's Kafka connector (docs/how-to/spark-source.md has both).
    Errors, raised by Spark as its own: UsageError for options and schema; ClusterRequestFailed, ClusterUnreachable.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        options = {key.lower(): value for key, value in self.options.items()}
        return rows.spark_schema(options.get("includeheaders", "false").lower() == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse(dict(self.options), streaming=False)
        kind = FilteringReader if options.push_filters else KafkaReader
        return kind(options, _columns(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 — Spark's name
        options = parse(dict(self.options), streaming=True)
        limits = {
            "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
            "maxBytesPerTrigger": options.max_bytes_per_trigger,
            "minOffsetsPerTrigger": options.min_offsets_per_trigger,
        }
        for name, limit in limits.items():
            if limit and not hasattr(DataSourceStreamReader, "getDefaultReadLimit"):
                raise UsageError(f"option {name}: only Spark 4.2 and newer limit Python data sources")
        return KafkaStreamReader(options, _columns(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise UsageError('mode overwrite: Kafka keeps what was written before; use mode("append")')
        return KafkaWriter(self._sink(schema, streaming=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002, N802 — Spark's name
        """Every output mode appends, as in Spark's connector: `complete` writes all rows of each batch."""
        return KafkaStreamWriter(self._sink(schema, streaming=True))

    def _sink(self, schema: StructType, *, streaming: bool) -> SinkOptions:
        check_requirements(streaming=streaming)
        options = parse_sink(dict(self.options))
        _print_warnings(options.client.warnings, options.without_effect)
        check_columns(_types(schema), options.topic)
        return options


def _print_warnings(warnings: Iterable[str], without_effect: Sequence[str]) -> None:
    for line in (*warnings, *([without_effect_line(without_effect)] if without_effect else ())):
        print(f"{NAME}: {line}", file=sys.stderr, flush=True)


class KafkaReader(DataSourceReader):
    """A batch: ranges are fixed when the query is planned, so that every attempt of a task reads the same records."""

    def __init__(self, options: KafkaSourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._task = TaskOptions(options, columns)
        self._bounds = Bounds()

    def partitions(self) -> list[InputPartition]:
        options = self._options
        _print_warnings(options.client.warnings, options.without_effect)
        with SourceCluster(options.client) as cluster:
            chosen = ranges.chosen_partitions(cluster, options)
            wanted = self._bounds.partitions(chosen.partitions())
            # Without records so young, a batch between two timestamps is empty rather than wrong.
            start = ranges.resolved(
                cluster,
                wanted,
                self._within(options.start, wanted),
                "startingOffsets",
                young_is_end=options.start_without_timestamp_is_latest,
            )
            end = ranges.resolved(
                cluster, wanted, self._within(options.end, wanted), "endingOffsets", young_is_end=True
            )
            self._check_ends(cluster, start, end)
        ids = chosen.topic_ids()
        whole = [
            self._bounds.narrowed(OffsetRange(partition, start[partition], end[partition], ids.get(partition.topic)))
            for partition in wanted
        ]
        parts = ranges.split(whole, options.min_partitions, options.max_records_per_partition)
        return [*planned(parts)]

    def _check_ends(self, cluster: SourceCluster, start: Offsets, end: Offsets) -> None:
        """Only offsets that the options give can be beyond the end. Errors: ClusterRequestFailed."""
        if self._options.end.offsets is not None:
            for partition, log_end in sorted(ends_below(cluster, end).items()):
                raise ClusterRequestFailed(
                    f"option endingOffsets: {partition} is to be read up to offset {end[partition]}, and its log ends at {log_end}; "
                    "name an offset up to there, or latest"
                )
        if self._options.start.offsets is not None:
            for partition, log_end in sorted(ends_below(cluster, start).items()):
                report_loss(
                    f"option startingOffsets: {partition} is to be read from offset {start[partition]}, and its log ends at {log_end}: "
                    "it was truncated, or the topic was created again",
                    "name an offset up to there; failOnDataLoss=false reads nothing of this partition",
                    fail=self._options.fail_on_data_loss,
                )

    def _within(self, position: Position, wanted: Iterable[TopicPartition]) -> Position:
        """Without the partitions that a filter leaves out."""
        if not self._bounds.leaves_out_partitions:
            return position
        if position.offsets is not None:
            return replace(position, offsets=_only(position.offsets, wanted))
        if position.timestamps_ms is not None:
            return replace(position, timestamps_ms=_only(position.timestamps_ms, wanted))
        return position

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        return read_partition(partition, self._task)


class FilteringReader(KafkaReader):
    """With the option filterPushdown=true, which needs spark.sql.python.filterPushdown.enabled."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 — Spark's name
        self._bounds, rest = self._bounds.pushed(filters)
        return rest


def _only(values: Mapping[TopicPartition, int], wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    return {partition: values[partition] for partition in wanted if partition in values}


def _columns(schema: StructType, options: KafkaSourceOptions) -> tuple[str, ...]:
    """The columns of a schema, which the user may have chosen. Errors: UsageError."""
    rows.check_schema(_types(schema), options.include_headers)
    return tuple(schema.names)


def _types(schema: StructType) -> dict[str, str]:
    return {column.name: column.dataType.simpleString() for column in schema}
