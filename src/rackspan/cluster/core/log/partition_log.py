"""One replica's log: batches in the order of their offsets, and the state that is derived from them.

There are gaps between the offsets of batches where compaction removed some, and where a follower copied them so. `high_watermark` is kept here, as Kafka
keeps it in a checkpoint file: it outlives the broker's process. The leader or follower of the partition sets it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

from rackspan.cluster.core.batch import NO_TIMESTAMP, RecordBatch
from rackspan.cluster.core.ids import NO_EPOCH, TopicId
from rackspan.cluster.core.log.compaction import CompactionConfig, RecordBody, cleanable_end, compacted
from rackspan.cluster.core.log.epoch_cache import EpochCache, EpochEnd
from rackspan.cluster.core.log.producer_state import AbortedTransaction, Duplicate, ProducerEntry, RebuildableStates
from rackspan.kafka_bytes.error_codes import ErrorCode

_TRIM_TO: Final = 0.9
"""Part of the allowed size that is left after a trim, so that it is not done again at every append."""


class PartitionLog:
    """A log belongs to a disk and outlives broker processes. `topic_id` distinguishes it from a deleted topic's log."""

    __slots__ = (
        "_bases",
        "_batches",
        "_states",
        "compacted_to",
        "end_offset",
        "epochs",
        "high_watermark",
        "size_bytes",
        "start_offset",
        "topic_id",
    )

    def __init__(self, topic_id: TopicId) -> None:
        self.topic_id = topic_id
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.compacted_to = 0
        """The end of what compaction has gone through; Kafka's cleaner checkpoint."""
        self.size_bytes = 0
        self.epochs = EpochCache()
        self._batches: list[RecordBatch] = []
        self._bases: list[int] = []
        self._states = RebuildableStates()

    @property
    def batches(self) -> tuple[RecordBatch, ...]:
        return tuple(self._batches)

    @property
    def last_epoch(self) -> int:
        return self.epochs.latest

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended, with its marker below the high watermark (KIP-98)."""
        unstable = self._states.now.first_unstable(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def producers(self) -> Mapping[int, ProducerEntry]:
        """The producers that have written here, by producer id."""
        return self._states.now.entries

    def in_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of this producer has written here and has not ended."""
        known = self.producers.get(producer_id)
        return known is not None and known.epoch == producer_epoch and known.transaction_start is not None

    def check(self, batch: RecordBatch) -> ErrorCode | Duplicate:
        """Check a batch that is about to be appended by its producer epoch and sequence numbers."""
        return self._states.now.check(batch)

    def append_as_leader(self, batch: RecordBatch, leader_epoch: int) -> RecordBatch:
        """Append a producer's batch, stamped with its offset and epoch. The stamped batch."""
        stamped = batch.stamped(self.end_offset, leader_epoch)
        self.append(stamped)
        return stamped

    def append(self, batch: RecordBatch) -> None:
        """Append a batch that is stamped already: a leader's own, or a copy of it on a follower."""
        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self._batches.append(batch)
        self._bases.append(batch.base_offset)
        self._states.append(batch)
        self.end_offset = batch.last_offset + 1
        self.size_bytes += batch.size_bytes

    def read(self, offset: int, upper: int, max_bytes: int) -> tuple[RecordBatch, ...]:
        """Whole batches from the one that holds `offset`, ending before `upper`; the first one however large it is."""
        index = max(0, bisect_right(self._bases, offset) - 1)
        if index < len(self._batches) and self._batches[index].last_offset < offset:
            index += 1
        return self._fitting(index, upper, max_bytes)

    def _fitting(self, index: int, upper: int, max_bytes: int) -> tuple[RecordBatch, ...]:
        fitting: list[RecordBatch] = []
        left = max_bytes
        while index < len(self._batches) and self._batches[index].last_offset < upper:
            batch = self._batches[index]
            if fitting and batch.size_bytes > left:
                break
            fitting.append(batch)
            left -= batch.size_bytes
            index += 1
        return tuple(fitting)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        return self.epochs.end_offset(epoch, self.end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record just below `offset`, NO_EPOCH if there is none."""
        index = bisect_left(self._bases, offset) - 1
        return self._batches[index].leader_epoch if index >= 0 else NO_EPOCH

    def batch_at_timestamp(self, timestamp: int, upper: int) -> RecordBatch | None:
        """The first batch below `upper` with a record at `timestamp` (ms) or later."""
        return next(
            (batch for batch in self._batches if batch.max_timestamp >= timestamp and batch.last_offset < upper), None
        )

    def batch_of_greatest_timestamp(self, upper: int) -> RecordBatch | None:
        """The first of the batches below `upper` with the greatest timestamp (KIP-734)."""
        readable = [batch for batch in self._batches if batch.last_offset < upper]
        return max(readable, key=lambda batch: batch.max_timestamp, default=None)

    def aborted_transactions(self, offset: int, upper: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions with a record in [`offset`, `upper`)."""
        aborted = self._states.now.aborted
        first = bisect_left(aborted, offset, key=lambda transaction: transaction.last_offset)
        return tuple(transaction for transaction in aborted[first:] if transaction.first_offset < upper)

    def truncate_to(self, offset: int) -> bool:
        """Remove everything from `offset` on, and a batch that spans it. Whether anything was removed.

        Epochs and the state of producers are restored to that end.
        """
        if offset >= self.end_offset:
            # An epoch without a record is no epoch of this log: followers would request its end for ever.
            self.epochs.truncate_from_end(offset)
            return False
        if offset < self.start_offset:
            self.restart_at(offset)
        else:
            self._cut(self._first_reaching(offset), offset)
        return True

    def _first_reaching(self, offset: int) -> int:
        """Index of the first batch that holds `offset` or begins after it."""
        index = bisect_left(self._bases, offset)
        return index - 1 if index and self._batches[index - 1].last_offset >= offset else index

    def _cut(self, index: int, offset: int) -> None:
        end = min(offset, self._bases[index]) if index < len(self._bases) else offset
        self.size_bytes -= _size_bytes(self._batches[index:])
        del self._batches[index:], self._bases[index:]
        self.end_offset = max(end, self.start_offset)
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.compacted_to = min(self.compacted_to, self.end_offset)
        self.epochs.truncate_from_end(self.end_offset)
        self._states.truncated(self.end_offset, self._batches, self._bases)

    def delete_below(self, offset: int) -> None:
        """Move the start to `offset`, for retention, for DeleteRecords, or as the leader did. A spanning batch stays whole.

        The state of producers stays: a retry of a deleted batch is a duplicate. An offset past the end empties the log.
        """
        if offset > self.end_offset:
            self.restart_at(offset)
        elif offset > self.start_offset:
            self._drop(self._first_reaching(offset), offset)

    def _drop(self, kept_from: int, offset: int) -> None:
        deleted = self._batches[:kept_from]
        del self._batches[:kept_from], self._bases[:kept_from]
        self.start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.compacted_to = max(self.compacted_to, offset)
        self.size_bytes -= _size_bytes(deleted)
        self.epochs.truncate_from_start(offset)
        self._states.deleted(deleted, offset)

    def restart_at(self, offset: int) -> None:
        """Empty the log, without producers. The next record gets `offset`."""
        self._batches, self._bases = [], []
        self.start_offset = self.end_offset = self.high_watermark = self.compacted_to = offset
        self.size_bytes = 0
        self.epochs.clear()
        self._states = RebuildableStates()

    def compact(self, config: CompactionConfig, now: int, body: RecordBody) -> bool:
        """Remove records that a later one of their key replaces, if enough has been written since the last time. Whether it was due.

        Offsets stay, and so does the state of producers. `now` in ms.
        """
        end = cleanable_end(self._batches, self.compacted_to, self.last_stable_offset, config, now)
        if end <= self.compacted_to:
            return False
        states = self._states.at(end, self._batches, self._bases)
        index = bisect_left(self._bases, end)
        aborted = self._states.now.aborted
        kept = compacted(self._batches[:index], self.compacted_to, states.entries, aborted, config, now, body)
        self._batches[:index] = kept
        self._bases = [batch.base_offset for batch in self._batches]
        self.size_bytes = _size_bytes(self._batches)
        self.compacted_to = end
        return True

    def expire(self, oldest_ms: int) -> bool:
        """Delete the first batches below the high watermark whose records are all older. Whether any was deleted.

        As in Kafka the greatest timestamp of a unit decides; the unit is a batch here and a segment there. A batch without
        a timestamp is kept.
        """
        start = before = self.start_offset
        for batch in self._batches:
            if not NO_TIMESTAMP < batch.max_timestamp < oldest_ms or batch.last_offset >= self.high_watermark:
                break
            start = batch.last_offset + 1
        self.delete_below(start)
        return self.start_offset > before

    def trim(self, max_bytes: int) -> bool:
        """If the log is larger, delete its oldest batches below the high watermark. Whether any was deleted."""
        if self.size_bytes <= max_bytes:
            return False
        size, start = self.size_bytes, self.start_offset
        for batch in self._batches:
            if size <= max_bytes * _TRIM_TO or batch.last_offset >= self.high_watermark:
                break
            size -= batch.size_bytes
            start = batch.last_offset + 1
        before = self.start_offset
        self.delete_below(start)
        return self.start_offset > before


def _size_bytes(batches: Sequence[RecordBatch]) -> int:
    return sum(batch.size_bytes for batch in batches)
