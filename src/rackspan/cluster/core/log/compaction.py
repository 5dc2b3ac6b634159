"""Log compaction: of each key the latest record stays, below the active segment and the last stable offset.

Logs have no segments here. Where Kafka would have rolled one follows from the batches, by segment.bytes and segment.ms.
Source: Kafka's LogCleanerManager (what is cleanable), Cleaner (which records stay), LogSegment.shouldRoll.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from rackspan.cluster.core.batch import NO_TIMESTAMP, BatchBytes, RecordBatch
from rackspan.cluster.core.log.producer_state import AbortedTransaction, ProducerEntry
from rackspan.errors import MalformedBytes
from rackspan.kafka_bytes.record_batch import (
    HEADER_BYTES,
    StoredRecord,
    read_stored_header,
    stored_records,
    with_records,
)

RecordBody: TypeAlias = Callable[[RecordBatch], "BatchBytes | None"]
"""The records of a batch, uncompressed; None if they cannot be decompressed here, and then the batch stays whole."""


def uncompressed_body(batch: RecordBatch) -> "BatchBytes | None":
    """The records of a batch that is not compressed."""
    if len(batch.data) < HEADER_BYTES or read_stored_header(batch.data).compression:
        return None
    return memoryview(batch.data)[HEADER_BYTES:]


COMPACTION_KEYS: Final = (
    "segment.bytes",
    "segment.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
)


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """A compacted topic's configs. Times in ms."""

    segment_bytes: int
    segment_ms: int
    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int
    delete_retention_ms: int

    @classmethod
    def of(cls, values: Mapping[str, str | None]) -> "CompactionConfig":
        """From the topic's configs in effect, by COMPACTION_KEYS."""
        segment_bytes, segment_ms, ratio, min_lag, max_lag, retention = (values[key] or "0" for key in COMPACTION_KEYS)
        return cls(int(segment_bytes), int(segment_ms), float(ratio), int(min_lag), int(max_lag), int(retention))


def cleanable_end(
    batches: Sequence[RecordBatch], first_dirty: int, stable: int, config: CompactionConfig, now: int
) -> int:
    """The offset below which a log may be compacted now, `first_dirty` if nothing is to be done.

    Nothing of the active segment, nothing from the first transaction on that has not ended (`stable`), and no segment
    with a record younger than min.compaction.lag.ms.
    """
    dirty = [batch for batch in batches if batch.base_offset >= first_dirty]
    end = first_dirty
    for segment in _rolled_segments(dirty, config):
        latest = max(batch.max_timestamp for batch in segment)
        if segment[-1].last_offset >= stable or (config.min_lag_ms and latest > now - config.min_lag_ms):
            break
        end = segment[-1].last_offset + 1
    return end if _is_due(batches, first_dirty, end, config, now) else first_dirty


def _rolled_segments(batches: Iterable[RecordBatch], config: CompactionConfig) -> Iterator[list[RecordBatch]]:
    """All segments but the last, which is the active one."""
    segment: list[RecordBatch] = []
    size = 0
    for batch in batches:
        if segment and (
            size + batch.size_bytes > config.segment_bytes
            # A segment of a compacted topic is rolled in time for max.compaction.lag.ms.
            or batch.max_timestamp - segment[0].max_timestamp > min(config.segment_ms, config.max_lag_ms)
        ):
            yield segment
            segment, size = [], 0
        segment.append(batch)
        size += batch.size_bytes


def _is_due(batches: Iterable[RecordBatch], first_dirty: int, end: int, config: CompactionConfig, now: int) -> bool:
    """Whether enough of the log is dirty, or something has been so for max.compaction.lag.ms."""
    below = [batch for batch in batches if batch.base_offset < end]
    dirty = [batch for batch in below if batch.base_offset >= first_dirty]
    if not dirty:
        return False
    if NO_TIMESTAMP < dirty[0].max_timestamp < now - config.max_lag_ms:
        return True
    dirty_bytes = sum(batch.size_bytes for batch in dirty)
    return dirty_bytes > config.min_dirty_ratio * sum(batch.size_bytes for batch in below)


def compacted(
    batches: Sequence[RecordBatch],
    first_dirty: int,
    producers: Mapping[int, ProducerEntry],
    aborted: Iterable[AbortedTransaction],
    config: CompactionConfig,
    now: int,
    body: RecordBody,
) -> list[RecordBatch]:
    """What stays of the batches of a log, from its start to the end of what is compacted.

    Constraints: offsets stay, and so does the order. Of each key the last record stays; a tombstone until its delete horizon, which the
    first compaction that keeps it sets to `now` + delete.retention.ms; of aborted transactions nothing; a transaction's marker
    until a compaction finds no record of that transaction, and then for delete.retention.ms. The last batch of each producer
    stays, empty if need be, so that a replica that copies the log has its sequence number. `producers` are those at the end of
    the batches; Kafka looks at the end of the log, where the last batch of a producer may yet be truncated. `aborted` are
    the log's: a marker may stand beyond these batches.
    """
    compaction = _Compaction(batches, first_dirty, producers, aborted, now + config.delete_retention_ms, now, body)
    return list(compaction.kept())


class _Compaction:
    def __init__(
        self,
        batches: Sequence[RecordBatch],
        first_dirty: int,
        producers: Mapping[int, ProducerEntry],
        aborted: Iterable[AbortedTransaction],
        horizon_ms: int,
        now: int,
        body: RecordBody,
    ) -> None:
        self._batches, self._producers = batches, producers
        self._horizon_ms, self._now, self._body = horizon_ms, now, body
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for transaction in aborted:
            self._aborted.setdefault(transaction.producer_id, []).append(transaction)
        self._latest = dict(self._keys(first_dirty))
        self._in_transaction: set[int] = set()
        """Producers with a record of the transaction whose marker comes next."""

    def _keys(self, first_dirty: int) -> Iterator[tuple[bytes, int]]:
        for batch in self._batches:
            if batch.base_offset < first_dirty or batch.control or self._is_aborted(batch):
                continue
            for record in self._records(batch) or ():
                if record.key is not None:
                    yield record.key, batch.base_offset + record.offset_delta

    def _is_aborted(self, batch: RecordBatch) -> bool:
        transactions = self._aborted.get(batch.producer_id, ()) if batch.transactional else ()
        return any(
            transaction.first_offset <= batch.base_offset <= transaction.last_offset for transaction in transactions
        )

    def _records(self, batch: RecordBatch) -> list[StoredRecord] | None:
        body = self._body(batch)
        try:
            return None if body is None else list(stored_records(body))
        except MalformedBytes:
            return None

    def kept(self) -> Iterator[RecordBatch]:
        for batch in self._batches:
            kept = self._marker(batch) if batch.control else self._data(batch)
            if kept is None and self._is_last_of_producer(batch):
                kept = _with(batch, ())
            if kept is not None:
                yield kept

    def _marker(self, batch: RecordBatch) -> RecordBatch | None:
        if batch.producer_id in self._in_transaction:
            self._in_transaction.discard(batch.producer_id)
            return batch
        if batch.delete_horizon_ms is None:
            return replace(batch, delete_horizon_ms=self._horizon_ms)
        return batch if self._now < batch.delete_horizon_ms else None

    def _data(self, batch: RecordBatch) -> RecordBatch | None:
        if batch.transactional:
            self._in_transaction.add(batch.producer_id)
        if self._is_aborted(batch):
            return None
        records = self._records(batch)
        if records is None:
            return batch
        kept = [record for record in records if self._stays(batch, record)]
        if not kept:
            return None
        if len(kept) < len(records):
            batch = _with(batch, kept)
        if batch.delete_horizon_ms is None and any(record.tombstone for record in kept):
            return replace(batch, delete_horizon_ms=self._horizon_ms)
        return batch

    def _stays(self, batch: RecordBatch, record: StoredRecord) -> bool:
        """A record without a key came before the topic was compacted: it goes, as in Kafka."""
        if record.key is None or batch.base_offset + record.offset_delta < self._latest.get(record.key, -1):
            return False
        return not record.tombstone or batch.delete_horizon_ms is None or self._now < batch.delete_horizon_ms

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        entry = self._producers.get(batch.producer_id)
        if entry is None:
            return False
        if entry.window:
            return entry.window[-1].last_offset == batch.last_offset
        return batch.control and batch.producer_epoch == entry.epoch


def _with(batch: RecordBatch, records: Sequence[StoredRecord]) -> RecordBatch:
    data = with_records(batch.data, records)
    return replace(batch, data=data, max_timestamp=read_stored_header(data).max_timestamp)
