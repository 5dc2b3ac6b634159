"""The streaming side of the source: offsets of micro-batches on the driver, with Spark 4.2's limits and AvailableNow.

Offsets are those of Spark's own connector, {"topic": {"0": 23}}; the checkpoint alone holds them. No consumer group is joined
and no offset is committed to Kafka.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_source import ranges
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.options import EARLIEST_OFFSET, LATEST_OFFSET, SourceOptions
from rackspan.kafka_source.range_partition import RangePartition, planned, read_partition
from rackspan.kafka_source.ranges import OffsetRange, Offsets
from rackspan.kafka_source.reading.report import finished_line
from rackspan.kafka_source.reading.task import TaskOptions
from rackspan.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.0 and 4.1 know no limits; AvailableNow is then one batch.
    ReadAllAvailable = ReadMaxBytes = ReadMaxRows = None  # type: ignore[assignment, misc]

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for Spark 4.2's class."""


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader that lives on the driver, but for `read`, which runs in tasks and sees a copy without a connection."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._task = TaskOptions(options, columns)
        self._cluster: SourceCluster | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._running: tuple[Mapping[str, Any], list[RangePartition]] | None = None
        """Where the micro-batch ends that was planned last, and its tasks, until the line about it is logged."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None, "_running": None}

    # -- Spark's names

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        partitions = ranges.chosen_partitions(self._connected(), self._options).partitions()
        start = ranges.resolved(
            self._connected(),
            partitions,
            self._options.start,
            "startingOffsets",
            young_is_end=self._options.start_without_timestamp_is_latest,
        )
        return ranges.to_json(start)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        offsets, size = self._options.max_offsets_per_trigger, self._options.max_bytes_per_trigger
        if offsets:
            return ReadMaxRows(offsets)
        return ReadMaxBytes(size) if size else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ends()

    def latestOffset(self, start: Mapping[str, Mapping[str, int]] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Without arguments in Spark 4.0 and 4.1."""
        end = self._target if self._target is not None else self._ends()
        if start is None:
            return ranges.to_json(end)
        begin = ranges.from_json(start)
        # A partition that has disappeared keeps its offset, so that the loss is found where ranges are made.
        end = {**{p: offset for p, offset in begin.items() if p not in end}, **end}
        begin = {**self._first_offsets(set(end) - set(begin)), **begin}
        end = {partition: max(offset, begin[partition]) for partition, offset in end.items()}
        if limit is None or (ReadAllAvailable is not None and isinstance(limit, ReadAllAvailable)):
            return ranges.to_json(end)  # Trigger.Once, or no limit in the options.
        return ranges.to_json(self._limited(begin, end))

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return ranges.to_json(self._ends())

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        begin, until = ranges.from_json(start), ranges.from_json(end)
        begin = {**self._first_offsets(set(until) - set(begin)), **begin}
        wanted = [OffsetRange(partition, begin[partition], until[partition]) for partition in sorted(until)]
        for gone in sorted(set(begin) - set(until)):
            self._lost(f"{gone} was read up to offset {begin[gone]} and is no longer there")
        for backwards in [part for part in wanted if part.end < part.start]:
            self._lost(f"{backwards.partition} was read up to offset {backwards.start} and now ends at {backwards.end}")
        parts = ranges.split(wanted, self._options.min_partitions, self._options.max_records_per_partition)
        self._log_running()
        tasks = planned(parts, driver_reports=True)
        self._running = (end, tasks) if tasks else None
        return [*tasks]

    def commit(self, end: Mapping[str, Any]) -> None:
        """Logs the line about the micro-batch that ended there. Nothing is committed to Kafka."""
        if self._running is not None and self._running[0] == end:
            self._log_running(committed=True)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        return read_partition(partition, self._task)

    def stop(self) -> None:
        self._log_running()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _log_running(self, *, committed: bool = False) -> None:
        """Spark commits a batch when it plans the next one, the last one of a query never: that one is done where all its tasks say so."""
        running, self._running = self._running, None
        if running is None:
            return
        _, tasks = running
        path, batch = self._options.metrics_path, tasks[0].batch
        line = finished_line(path, batch) if path else None
        if line is None and committed:
            offsets = sum(task.wanted.size for task in tasks)
            line = f"rackspan-kafka: batch {batch.name}: {offsets:,} offsets in {batch.tasks} ranges"
            line += (
                "; metricsPath adds bytes by rack" if path is None else "; rows of some tasks are not in metricsPath"
            )
        if line is not None:
            print(line, file=sys.stderr, flush=True)

    # -- offsets

    def _limited(self, begin: Offsets, end: Offsets) -> Offsets:
        """By both options: Spark hands over one limit at a time."""
        if offsets := self._options.max_offsets_per_trigger:
            end = ranges.limited(begin, end, offsets)
        if size := self._options.max_bytes_per_trigger:
            end = ranges.limited(begin, end, size, self._connected().bytes_per_offset(end))
        return end

    def _connected(self) -> SourceCluster:
        if self._cluster is None:
            self._cluster = SourceCluster(self._options.client)
        return self._cluster

    def _ends(self) -> dict[TopicPartition, int]:
        cluster = self._connected()
        partitions = ranges.chosen_partitions(cluster, self._options).partitions()
        return cluster.offsets(dict.fromkeys(partitions, LATEST_OFFSET))

    def _first_offsets(self, partitions: set[TopicPartition]) -> Offsets:
        """Partitions that were added since the query began are read from their first record on."""
        return self._connected().offsets(dict.fromkeys(sorted(partitions), EARLIEST_OFFSET))

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise ClusterRequestFailed(f"{what}; failOnDataLoss=false continues without it")
        print(f"rackspan-kafka: {what}", file=sys.stderr, flush=True)
