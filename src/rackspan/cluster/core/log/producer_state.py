"""The state of a log's idempotent producers: the last five batches of each, and open transactions.

Entries are values, so that a snapshot is one shallow copy. Source: KIP-98, Kafka's ProducerStateManager and
ProducerAppendInfo.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rackspan.cluster.core.batch import NO_PRODUCER, NO_SEQUENCE, SEQUENCES, Marker, RecordBatch
from rackspan.cluster.core.ids import NO_OFFSET
from rackspan.kafka_bytes.error_codes import ErrorCode

WINDOW: Final = 5
"""Batches kept per producer: it has at most five in flight."""

INTERVAL_BATCHES: Final = 1_000
"""Between two snapshots of the states, from which a truncation restores them."""


class WrittenBatch(NamedTuple):
    """One of the last batches of a producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Duplicate(NamedTuple):
    """A batch that the log has already."""

    base_offset: int
    last_offset: int


class ProducerEntry(NamedTuple):
    """One producer. `transaction_start` is the first offset of its open transaction, None without one."""

    epoch: int
    window: tuple[WrittenBatch, ...] = ()
    transaction_start: int | None = None

    @property
    def last_sequence(self) -> int:
        return self.window[-1].last_sequence if self.window else NO_SEQUENCE


class AbortedTransaction(NamedTuple):
    """Offsets from the first of its batches to its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class CompletedTransaction(NamedTuple):
    """Offsets from the first of its batches to its marker."""

    first_offset: int
    last_offset: int


class ProducerStates:
    """All producers of one log."""

    __slots__ = ("aborted", "completed", "entries", "open")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.open: dict[int, int] = {}
        """First offset by producer id, of open transactions in the order of their offsets."""
        self.completed: list[CompletedTransaction] = []
        """Those whose markers may still be above the high watermark."""
        self.aborted: list[AbortedTransaction] = []

    def check(self, batch: RecordBatch) -> ErrorCode | Duplicate:
        """NONE if the batch may be appended now, the error if not, or where the log has it already.

        A producer that is new to the log may begin at any number: its earlier batches may have been deleted.
        """
        entry = self.entries.get(batch.producer_id)
        if entry is None or not batch.idempotent:
            return ErrorCode.NONE if entry is None else _epoch_error(entry, batch)
        return _duplicate(entry, batch) or _epoch_error(entry, batch) or _sequence_error(entry, batch)

    def append(self, batch: RecordBatch) -> None:
        """Update the state by a batch that was appended."""
        if batch.producer_id == NO_PRODUCER:
            return
        if batch.marker is not None:
            self._end_transaction(batch, batch.marker)
        elif batch.idempotent or batch.transactional:
            self._add(batch)

    def replay(self, batches: Iterable[RecordBatch]) -> None:
        for batch in batches:
            self.append(batch)

    def first_unstable(self, high_watermark: int) -> int | None:
        """The first offset of a transaction that is open, or whose marker the high watermark has not passed."""
        while self.completed and self.completed[0].last_offset < high_watermark:
            self.completed.pop(0)
        starts = [each.first_offset for each in self.completed if each.last_offset >= high_watermark]
        starts.extend(self.open.values())
        return min(starts) if starts else None

    def copy(self) -> "ProducerStates":
        """An independent copy."""
        twin = ProducerStates()
        twin.entries, twin.open = dict(self.entries), dict(self.open)
        twin.completed, twin.aborted = list(self.completed), list(self.aborted)
        return twin

    def drop_below(self, start_offset: int) -> None:
        """Drop transactions that ended below the log's start. The producers stay."""
        self.completed = [each for each in self.completed if each.last_offset >= start_offset]
        self.aborted = [each for each in self.aborted if each.last_offset >= start_offset]

    def _add(self, batch: RecordBatch) -> None:
        """Add a producer's batch. A coordinator's has no sequence number, but is part of the producer's transaction too."""
        entry = self.entries.get(batch.producer_id)
        same_epoch = entry is not None and entry.epoch == batch.producer_epoch
        window = entry.window if entry is not None and same_epoch else ()
        start = entry.transaction_start if entry is not None else None
        if batch.transactional and start is None:
            start = self.open[batch.producer_id] = batch.base_offset
        if batch.idempotent:
            window = (*window[1 - WINDOW :], _written(batch))
        self.entries[batch.producer_id] = ProducerEntry(batch.producer_epoch, window, start)

    def _end_transaction(self, batch: RecordBatch, marker: Marker) -> None:
        entry = self.entries.get(batch.producer_id)
        window = entry.window if entry is not None and entry.epoch == batch.producer_epoch else ()
        self.entries[batch.producer_id] = ProducerEntry(batch.producer_epoch, window)
        start = self.open.pop(batch.producer_id, None)
        if start is None:
            return
        self.completed.append(CompletedTransaction(start, batch.last_offset))
        if marker is Marker.ABORT:
            self.aborted.append(AbortedTransaction(batch.producer_id, start, batch.last_offset))


def _written(batch: RecordBatch) -> WrittenBatch:
    return WrittenBatch(
        batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp
    )


def _duplicate(entry: ProducerEntry, batch: RecordBatch) -> Duplicate | None:
    if entry.epoch != batch.producer_epoch:
        return None
    first, last = batch.base_sequence, batch.last_sequence
    for written in entry.window:
        if written.first_sequence == first and written.last_sequence == last:
            return Duplicate(written.base_offset, written.last_offset)
    return None


def _epoch_error(entry: ProducerEntry, batch: RecordBatch) -> ErrorCode:
    """A marker with a bumped epoch does not end a transaction of that epoch: it is a late copy, of the one before (KIP-1228)."""
    late_marker = batch.epoch_bumped and batch.producer_epoch == entry.epoch and entry.transaction_start is not None
    fenced = late_marker or batch.producer_epoch < entry.epoch
    return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else ErrorCode.NONE


def _sequence_error(entry: ProducerEntry, batch: RecordBatch) -> ErrorCode:
    """A newer epoch begins at 0; within one, numbers follow each other."""
    expected = (entry.last_sequence + 1) % SEQUENCES if batch.producer_epoch == entry.epoch else 0
    return ErrorCode.NONE if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class RebuildableStates:
    """The producers of a log, now and at earlier ends of it: a truncation restores what follows from the remaining log alone.

    Constraints: after any appends, truncations and deletions the states are those of replaying the deleted part at the start
    of the log, then the rest.
    Method: a baseline at the log's start, moved over each batch that is deleted, and a snapshot every INTERVAL_BATCHES batches;
    truncation restores the last snapshot not beyond it and replays the rest.
    Bound: INTERVAL_BATCHES batches a truncation; memory producers x batches / INTERVAL_BATCHES.
    Test: tests/cluster/core/log/test_partition_log.py, against a naive log.
    Source: Kafka's producer snapshots (ProducerStateManager). State kept over a truncation would respond to a retry
    with an offset that does not exist any more.
    """

    __slots__ = ("_baseline", "_since", "_snapshots", "now")

    def __init__(self) -> None:
        self.now = ProducerStates()
        self._baseline = ProducerStates()
        self._snapshots: list[tuple[int, ProducerStates]] = []
        """(end offset, the states there), ascending."""
        self._since = 0

    def append(self, batch: RecordBatch) -> None:
        self.now.append(batch)
        self._since += 1
        if self._since >= INTERVAL_BATCHES:
            self._snapshots.append((batch.last_offset + 1, self.now.copy()))
            self._since = 0

    def truncated(self, end_offset: int, batches: Sequence[RecordBatch], bases: Sequence[int]) -> None:
        """Restore the states after a truncation to `end_offset`; `batches` are left, whose base offsets are `bases`."""
        while self._snapshots and self._snapshots[-1][0] > end_offset:
            self._snapshots.pop()
        covered, states = self._snapshots[-1] if self._snapshots else (NO_OFFSET, self._baseline)
        self.now = states.copy()
        rest = batches[bisect_left(bases, covered) :]
        self.now.replay(rest)
        self._since = len(rest)

    def at(self, end_offset: int, batches: Sequence[RecordBatch], bases: Sequence[int]) -> ProducerStates:
        """The states at `end_offset`, kept from now on: some of the batches below it are about to be removed."""
        at = bisect_right(self._snapshots, end_offset, key=lambda snapshot: snapshot[0])
        covered, states = self._snapshots[at - 1] if at else (NO_OFFSET, self._baseline)
        there = states.copy()
        there.replay(batches[bisect_left(bases, covered) : bisect_left(bases, end_offset)])
        if covered < end_offset:
            self._snapshots.insert(at, (end_offset, there))
        return there

    def deleted(self, batches: Sequence[RecordBatch], start_offset: int) -> None:
        """Update the states after the log's first batches were deleted; it now begins at `start_offset`."""
        at = bisect_right(self._snapshots, start_offset, key=lambda snapshot: snapshot[0])
        if at:
            # Exact also where compaction removed batches below it.
            covered, self._baseline = self._snapshots[at - 1]
            batches = [batch for batch in batches if batch.base_offset >= covered]
        self._baseline.replay(batches)
        self._snapshots = self._snapshots[at:]
        for states in (self.now, self._baseline):
            states.drop_below(start_offset)
