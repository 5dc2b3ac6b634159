"""The start offset of each leader epoch in a log, by which two logs find where they part (KIP-101, KIP-279, KIP-595)."""

from bisect import bisect_right
from typing import NamedTuple

from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET


class EpochEnd(NamedTuple):
    """The offset just past the last record of `epoch`; (NO_EPOCH, NO_OFFSET) if the log does not have it."""

    epoch: int
    end_offset: int


UNKNOWN = EpochEnd(NO_EPOCH, NO_OFFSET)


class EpochCache:
    """(epoch, first offset), both strictly ascending."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else NO_EPOCH

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Set the start of `epoch`. Called for every batch; only the first of an epoch counts."""
        if epoch > self.latest:
            # An epoch whose records were all deleted is kept only while the log is empty.
            self.truncate_from_end(start_offset)
            self._epochs.append(epoch)
            self._starts.append(start_offset)

    def end_offset(self, epoch: int, log_end: int) -> EpochEnd:
        """The largest epoch not above `epoch`, and its end offset.

        An epoch above the latest is unknown. One below the earliest ends where the earliest begins (LeaderEpochFileCache).
        """
        if epoch == NO_EPOCH or epoch > self.latest:
            return UNKNOWN
        above = bisect_right(self._epochs, epoch)
        end = self._starts[above] if above < len(self._starts) else log_end
        return EpochEnd(self._epochs[above - 1] if above else epoch, end)

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that begin at `end_offset` or later."""
        while self._starts and self._starts[-1] >= end_offset:
            self._starts.pop()
            self._epochs.pop()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that end at `start_offset` or earlier. The one that spans it begins there."""
        keep = max(0, bisect_right(self._starts, start_offset) - 1)
        del self._starts[:keep], self._epochs[:keep]
        if self._starts and self._starts[0] < start_offset:
            self._starts[0] = start_offset

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
