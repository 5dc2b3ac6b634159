"""Producer states that a truncation restores: they follow from the remaining log alone, never from what was removed.

Constraints: after any appends, truncations and deletions the states are those of replaying the deleted part at the start
of the log, then the rest.
Method: a baseline at the log's start, moved over each batch that is deleted, and a snapshot every INTERVAL_BATCHES batches;
truncation restores the last snapshot not beyond it and replays the rest.
Bound: INTERVAL_BATCHES batches a truncation; memory producers x batches / INTERVAL_BATCHES.
Test: tests/cluster/core/log/test_partition_log.py, against a naive log.
Source: Kafka's producer snapshots (ProducerStateManager). State kept over a truncation would respond to a retry
with an offset that does not exist any more.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.ids import NO_OFFSET
from rackspan.cluster.core.log.producer_state import ProducerStates

INTERVAL_BATCHES: Final = 1_000


class RebuildableStates:
    """The producers of a log, now and at earlier ends of it."""

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
