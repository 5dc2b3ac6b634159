"""Reads one range inside a Spark task, and yields Arrow batches. While Spark takes those of one response, the next is fetched.

A task that fails is run again by Spark from the
beginning of its range, so nothing is kept between attempts.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from rackspan.client.errors import CONNECTION_FAILURES
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.kafka_source.cluster import FetchedRecords, SourceCluster, SourceMetadata
from rackspan.kafka_source.executor_rack import executor_rack
from rackspan.kafka_source.options import EARLIEST_OFFSET, LATEST_OFFSET, ClientOptions, KafkaSourceOptions
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.progress import Next, RangeProgress, ReadStep
from rackspan.kafka_source.reading.report import Batch, TaskReport, publish
from rackspan.kafka_source.records.columns import RecordColumns
from rackspan.kafka_source.records.rows import record_batches

IDLE_SECONDS: Final = 60.0
"""A connection that has been idle for longer is not used again: brokers and networks close those, networks without a word."""


class _Kept(threading.local):
    """Each thread's own: Spark reads in the workers' main threads, tests in several of one process."""

    cluster: tuple[ClientOptions, SourceCluster, float] | None = None


_kept: Final = _Kept()


@contextmanager
def reused_cluster(client: ClientOptions) -> Iterator[SourceCluster]:
    """The cluster that the last task of this thread used, if its options were equal; kept for the next one.

    A micro-batch is a task a partition every few seconds, and Spark keeps its workers: connecting and logging in would cost each
    task more than it reads.

    After an error, or if the reader stopped early, it is closed: a response may be outstanding.
    """
    cluster = _kept_for(client) or SourceCluster(client)
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    _close_kept()
    _kept.cluster = (client, cluster, time.monotonic())


def _kept_for(client: ClientOptions) -> SourceCluster | None:
    kept, _kept.cluster = _kept.cluster, None
    if kept is None:
        return None
    options, cluster, since = kept
    if options == client and time.monotonic() - since < IDLE_SECONDS:
        return cluster
    cluster.close()
    return None


def _close_kept() -> None:
    """The cluster of a task that began before this one and ended within it."""
    if _kept.cluster is not None:
        _kept.cluster[1].close()
        _kept.cluster = None


_PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What a task needs of the options."""

    source: KafkaSourceOptions
    columns: tuple[str, ...]

    @property
    def client(self) -> ClientOptions:
        return self.source.client


def read_range(wanted: OffsetRange, options: TaskOptions, batch: Batch) -> Iterator[pa.RecordBatch]:
    """The records of a range as Arrow batches in offset order.

    Errors: ClusterRequestFailed for records that are gone; ClusterUnreachable after `progress_timeout_seconds` without any.
    """
    report = TaskReport(wanted, executor_rack(options.source.rack))
    with reused_cluster(options.client) as cluster:
        for records in _RangeReader(cluster, options, report).records():
            report.rows += len(records)
            yield from record_batches(records, wanted.partition.topic, wanted.partition.partition, options.columns)
    publish(report, options.source.metrics_path, batch)


class _RangeReader:
    """Drives a RangeProgress with a cluster."""

    def __init__(
        self,
        cluster: SourceCluster,
        options: TaskOptions,
        report: TaskReport,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._report = report
        self._sleep = sleep
        self._timeout = options.client.progress_timeout_seconds
        self._most_bytes = options.client.partition_fetch_bytes
        self._progress = RangeProgress(
            report.wanted,
            report.rack.rack,
            fail_on_data_loss=options.source.fail_on_data_loss,
            check_crcs=options.client.check_crcs,
            costs=options.source.rack_costs.get(report.rack.rack or ""),
        )
        self._metadata: SourceMetadata | None = None
        self._unproven = cluster.is_open
        """A connection that an earlier task used, and that has not responded to this one."""
        self._deadline = time.monotonic() + self._timeout

    def records(self) -> Iterator[RecordColumns]:
        progress = self._progress
        pending: Callable[[], FetchedRecords] | None = None
        by_name = False
        while not progress.is_done:
            if pending is None:
                pending = self._start_fetch()
            response, broker = self._finish(pending), progress.broker
            pending = None
            if response is None:
                continue
            step = progress.received(response)
            if step.next is Next.OUT_OF_RANGE:
                step = self._beyond_log()
            self._note_loss(step)
            if step.next is Next.REFRESH:
                self._again("no broker has records at the position")
            if step.next is Next.FETCH:
                pending = self._start_fetch()
            if step.fetched is not None:
                self._deadline = time.monotonic() + self._timeout
                self._note_bytes(broker, len(response.records))
                by_name = by_name or response.by_name
                if len(step.fetched.records):
                    yield step.fetched.records
        if by_name:
            self._check_topic_id()

    def _start_fetch(self) -> Callable[[], FetchedRecords] | None:
        """The records of one fetch; None if there is no broker to fetch from yet, or it cannot be reached."""
        progress, wanted = self._progress, self._report.wanted.partition
        if self._metadata is None:
            metadata = self._cluster.metadata([wanted.topic])
            if wanted.topic in metadata.refused:
                raise ClusterRequestFailed(
                    f"topic {wanted.topic}: {metadata.errors[wanted.topic]}; check the right to read it"
                )
            if not progress.choose_replica(metadata):
                if progress.created_again is not None:
                    self._note_loss(progress.created_again)
                    return None
                self._again(metadata.errors.get(wanted.topic, "it has no leader, or the leader is down"))
                return None
            self._metadata = metadata
            self._report.chose(progress.choice)
        try:
            topic_id = self._metadata.topics[wanted.topic].topic_id
            size = progress.fetch_bytes(self._most_bytes)
            return self._cluster.fetch(progress.broker, topic_id, wanted, progress.position, size)
        except CONNECTION_FAILURES as error:
            self._unanswered(error)
            return None

    def _finish(self, pending: Callable[[], FetchedRecords] | None) -> FetchedRecords | None:
        if pending is None:
            return None
        try:
            response = pending()
        except CONNECTION_FAILURES as error:
            self._unanswered(error)
            return None
        self._unproven = False
        return response

    def _check_topic_id(self) -> None:
        """After records of brokers that compare no ids. Errors: ClusterRequestFailed, since some may be of another topic."""
        topic, old = self._report.wanted.partition.topic, self._progress.topic_id
        found = self._cluster.metadata([topic]).topics.get(topic)
        if old and (found is None or found.topic_id not in (None, old)):
            now = f"{found.topic_id} now" if found else "unknown now"
            raise ClusterRequestFailed(
                f"topic {topic} was deleted and created again while it was read: its id was {old}, and is {now}; "
                "start the query again"
            )

    def _unanswered(self, error: Exception) -> None:
        if not self._unproven:
            self._progress.failed()
        # The broker may have closed the connection while no task used it, which says nothing about the broker.
        self._unproven = False
        self._again(f"broker {self._progress.broker}: {error}")

    def _again(self, why: str) -> None:
        """Pause before the metadata is read again. Errors: ClusterUnreachable without progress for too long."""
        if time.monotonic() > self._deadline:
            wanted, position = self._report.wanted, self._progress.position
            raise ClusterUnreachable(
                f"{wanted.partition}: nothing was read for {self._timeout:.0f} s at offset {position} of "
                f"{wanted.start} to {wanted.end}: {why}"
            )
        self._metadata = None
        self._sleep(_PAUSE_SECONDS)

    def _beyond_log(self) -> ReadStep:
        partition = self._report.wanted.partition
        start = self._cluster.offsets({partition: EARLIEST_OFFSET})[partition]
        return self._progress.beyond_log(start, self._cluster.offsets({partition: LATEST_OFFSET})[partition])

    def _note_loss(self, step: ReadStep) -> None:
        if step.lost is None:
            return
        begin, end, why = step.lost
        self._report.skipped_offsets += end - begin
        partition = self._report.wanted.partition
        print(f"rackspan-kafka: {partition}: offsets {begin} to {end} are skipped; {why}", file=sys.stderr, flush=True)

    def _note_bytes(self, broker: int, size: int) -> None:
        racks = self._metadata.racks if self._metadata else {}
        self._report.bytes_by_broker[(broker, racks.get(broker))] += size
