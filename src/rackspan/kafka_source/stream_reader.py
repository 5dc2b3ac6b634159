"""The streaming side of the source: offsets of micro-batches on the driver, with Spark 4.2's limits and AvailableNow.

Offsets are those of Spark's own connector and the topics' ids (stream_offsets.py). A query goes on from those of its checkpoint.
No consumer group is joined; with `commitOffsetsToGroup` the offsets are committed to one as well, for those who watch its lag.
"""

import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rackspan.kafka_source import ranges
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.data_loss import ATTEMPTS, PAUSE_SECONDS, ends_below, report_loss
from rackspan.kafka_source.options import EARLIEST_OFFSET, LATEST_OFFSET, KafkaSourceOptions, without_effect_line
from rackspan.kafka_source.range_partition import RangePartition, planned, read_partition
from rackspan.kafka_source.ranges import OffsetRange, Offsets
from rackspan.kafka_source.reading.report import finished_line
from rackspan.kafka_source.reading.task import TaskOptions
from rackspan.kafka_source.stream_offsets import StreamOffsets
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
    ReadAllAvailable = ReadMaxBytes = ReadMaxRows = None  # type: ignore[assignment, misc]  # Spark before 4.2 has no such classes.

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]  # As above.
        """Stands in for Spark 4.2's class."""


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader that lives on the driver, but for `read`, which runs in tasks and sees a copy without a connection."""

    def __init__(self, options: KafkaSourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._task = TaskOptions(options, columns)
        self._cluster: SourceCluster | None = None
        self._target: StreamOffsets | None = None
        self._logged: set[str] = set()
        """Lines that hold for the whole query."""
        self._running: tuple[Mapping[str, Any], list[RangePartition]] | None = None
        """Where the micro-batch ends that was planned last, and its tasks, until the line about it is logged."""

        self._planned_at = -math.inf
        """By the monotonic clock, when a batch was planned last; the first one waits for nothing."""

        self._in_group: Offsets = {}
        """The offsets that the group of commitOffsetsToGroup has."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None, "_running": None}

    # -- Spark's names

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 — Spark's name
        chosen = ranges.chosen_partitions(self._connected(), self._options)
        start = ranges.resolved(
            self._connected(),
            chosen.partitions(),
            self._options.start,
            "startingOffsets",
            young_is_end=self._options.start_without_timestamp_is_latest,
        )
        return StreamOffsets(start, chosen.topic_ids()).document()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 — Spark's name
        offsets, size = self._options.max_offsets_per_trigger, self._options.max_bytes_per_trigger
        if offsets:
            return ReadMaxRows(offsets)
        return ReadMaxBytes(size) if size else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 — Spark's name
        self._target = self._ends()

    def latestOffset(self, start: Mapping[str, Mapping[str, Any]] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802 — Spark's name
        """Without arguments in Spark 4.0 and 4.1: what is lost is then found where ranges are made."""
        if start is None:
            return (self._target or self._ends()).document()
        before = StreamOffsets.from_document(start)
        end = self._ends_after(before)
        begin = self._resumed(before, end)
        # Spark plans a batch when the one before it is done, the last one of AvailableNow included.
        self._commit_to_group({partition: begin[partition] for partition in end.offsets})
        if self._waits_for_more(begin, end.offsets):
            return dict(start)
        if limit is not None and not (ReadAllAvailable is not None and isinstance(limit, ReadAllAvailable)):
            # Otherwise it is Trigger.Once, or there is no limit in the options.
            end = replace(end, offsets=self._limited(begin, end.offsets))
        return end.document()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 — Spark's name
        return self._ends().document()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        until = StreamOffsets.from_document(end)
        begin = self._resumed(StreamOffsets.from_document(start), until)
        wanted = [
            OffsetRange(partition, begin[partition], until.offsets[partition], until.topic_ids.get(partition.topic))
            for partition in sorted(until.offsets)
        ]
        parts = ranges.split(wanted, self._options.min_partitions, self._options.max_records_per_partition)
        self._log_running()
        tasks = planned(parts, driver_reports=True)
        self._running = (end, tasks) if tasks else None
        return [*tasks]

    def commit(self, end: Mapping[str, Any]) -> None:
        """Logs the line about the micro-batch that ended there, and commits its end to the group of commitOffsetsToGroup."""
        self._commit_to_group(StreamOffsets.from_document(end).offsets)
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

    def _commit_to_group(self, offsets: Offsets) -> None:
        """Nothing rests on it but monitors of lag: a failure is logged, and the query goes on."""
        group = self._options.commit_offsets_to_group
        if group is None or offsets == self._in_group:
            return
        reason = self._connected().commit(group, offsets)
        if reason is None:
            self._in_group = offsets
        else:
            self._log_once(f"offsets are not committed to group {group}, and the query goes on: {reason}")

    # -- offsets

    def _limited(self, begin: Offsets, end: Offsets) -> Offsets:
        """By both options: Spark hands over one limit at a time."""
        if offsets := self._options.max_offsets_per_trigger:
            end = ranges.limited(begin, end, offsets)
        if size := self._options.max_bytes_per_trigger:
            end = ranges.limited(begin, end, size, self._connected().bytes_per_offset(end))
        return end

    def _waits_for_more(self, begin: Offsets, end: Offsets) -> bool:
        """Whether there are too few new offsets for a batch yet. AvailableNow waits for none: it would leave them unread."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None:
            return False
        new = sum(max(0, offset - begin[partition]) for partition, offset in end.items())
        if new < least and self._now() - self._planned_at < self._options.max_trigger_delay_seconds:
            return True
        self._planned_at = self._now()
        return False

    def _connected(self) -> SourceCluster:
        for line in self._options.client.warnings:
            self._log_once(line)
        if self._options.without_effect:
            self._log_once(without_effect_line(self._options.without_effect))
        if self._cluster is None:
            self._cluster = SourceCluster(self._options.client)
        return self._cluster

    def _ends(self) -> StreamOffsets:
        cluster = self._connected()
        chosen = ranges.chosen_partitions(cluster, self._options)
        if unknown := sorted(chosen.topics.keys() - chosen.topic_ids().keys()):
            self._log_once(
                f"the brokers have no topic ids of {', '.join(unknown)}: "
                "a topic that is created again is noticed only if its log is shorter"
            )
        return StreamOffsets(cluster.offsets(dict.fromkeys(chosen.partitions(), LATEST_OFFSET)), chosen.topic_ids())

    def _ends_after(self, before: StreamOffsets) -> StreamOffsets:
        """Where the partitions end now, or ended when AvailableNow began; below `before` only where records are lost."""
        end = self._target or self._ends()
        for _ in range(ATTEMPTS - 1):
            if not end.of_another_topic(before) and before.offsets.keys() <= end.offsets.keys():
                break
            self._sleep(PAUSE_SECONDS)
            end = self._ends()
            self._target = self._target and end
        again = end.of_another_topic(before)
        # An open transaction, or a target of AvailableNow, may end before an offset that was read.
        kept = {
            partition: max(offset, before.offsets.get(partition, 0)) if partition.topic not in again else offset
            for partition, offset in end.offsets.items()
        }
        read_further = {partition: offset for partition, offset in kept.items() if offset > end.offsets[partition]}
        offsets = {**kept, **ends_below(self._connected(), read_further, self._sleep)}
        # Brokers without topic ids, for a time: the next ones are compared with what was known.
        known_ids = {topic: topic_id for topic, topic_id in before.topic_ids.items() if topic in end.topics}
        return StreamOffsets(offsets, {**known_ids, **end.topic_ids})

    def _resumed(self, before: StreamOffsets, end: StreamOffsets) -> Offsets:
        """Where each partition of `end` is read from. Logs what is lost, or raises it."""
        again = end.of_another_topic(before)
        for topic, (old, new) in again.items():
            self._lost(
                f"topic {topic} was deleted and created again: its id was {old} when the stream read it last, and is {new} now, "
                "so that what was not read of the old topic is gone and the new one is to be read from its beginning",
                "set failOnDataLoss=false to do so, or give the query a new checkpointLocation",
            )
        known = {partition: offset for partition, offset in before.offsets.items() if partition.topic not in again}
        for partition, offset in sorted(known.items()):
            if partition not in end.offsets:
                self._lost(f"{partition} was read up to offset {offset} and is no longer there")
            elif end.offsets[partition] < offset:
                self._lost(f"{partition} was read up to offset {offset} and now ends at {end.offsets[partition]}")
        if adopted := sorted((before.topics & end.topic_ids.keys()) - before.topic_ids.keys()):
            ids = ", ".join(f"{topic} ({end.topic_ids[topic]})" for topic in adopted)
            self._log_once(f"the checkpoint has no topic ids; the present ones are adopted: {ids}")
        first = self._first_offsets(end.offsets.keys() - known.keys())
        for partition, offset in first.items():
            if offset and partition.topic in again:
                self._lost(f"{partition} of the new topic begins at offset {offset}: the records before it are gone")
        return {**first, **known}

    def _first_offsets(self, partitions: set[TopicPartition]) -> Offsets:
        """Partitions that were added since the query began are read from their first record on."""
        return self._connected().offsets(dict.fromkeys(sorted(partitions), EARLIEST_OFFSET))

    def _lost(self, what: str, remedy: str = "failOnDataLoss=false continues without it") -> None:
        """Once for a batch, which is planned in two calls."""
        if what not in self._logged:
            report_loss(what, remedy, fail=self._options.fail_on_data_loss)
            self._logged.add(what)

    def _log_once(self, line: str) -> None:
        if line not in self._logged:
            print(f"rackspan-kafka: {line}", file=sys.stderr, flush=True)
            self._logged.add(line)

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _now(self) -> float:
        return time.monotonic()
