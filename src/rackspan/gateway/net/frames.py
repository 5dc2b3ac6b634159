"""Memory for requests that are read whole: counted as their bytes arrive, bounded in sum.

What a request announces takes nothing. If the memory is full, requests wait for it in their order, and the first of them may
exceed it: so one can always be completed, however many others are half received. Beyond the bound there are that one and what each
connection receives at once (FULL_RECEIVE_BYTES). Who sends slower than BYTES_PER_SECOND loses the connection: after
HALF_REQUEST_SECONDS, and after WANTED_SECONDS while others wait.

It reads no clock: every call carries its time, in seconds.
"""

import mmap
from collections.abc import Callable
from contextlib import suppress
from typing import Final

HALF_REQUEST_SECONDS: Final = 30.0
"""Time limit of any request, beside the time that its size takes."""

WANTED_SECONDS: Final = 2.0
"""The same while another request waits for memory."""

BYTES_PER_SECOND: Final = 1_000_000

MOST_RECEIVED: Final = 1024 * 1024
"""Bytes of one receive."""

FULL_RECEIVE_BYTES: Final = 16 * 1024
"""Bytes of the first receive of a request while the memory is full: most requests are whole by then."""

_LEAST_BYTES: Final = 256 * 1024
_KEPT_BYTES: Final = 4 * 1024 * 1024
_MOST_KEPT: Final = 8


class Frame:
    """A request with its size in front, `filled` so far."""

    __slots__ = ("buffer", "filled", "pace_at", "pace_filled", "size", "started_at", "unread_since")

    def __init__(self, buffer: mmap.mmap, size: int, now: float) -> None:
        self.buffer = buffer
        """Memory of `size` bytes or more, of which the system allocates a page when its first byte arrives."""
        self.size = size
        self.filled = 0
        self.started_at = now
        """Later by the time in which the gateway did not read on, which is not the client's fault. So is `pace_at`."""
        self.pace_at, self.pace_filled = now, 0
        """When it was last as quick as it has to be, and how much had arrived by then."""
        self.unread_since: float | None = None
        """Since when the gateway does not read on: it waits for memory, or for what is before it."""

    @property
    def is_whole(self) -> bool:
        return self.filled == self.size


class FrameMemory:
    """All frames of a process, which take at most `most_bytes`, and one of them more."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._free: list[mmap.mmap] = []
        self._first: Frame | None = None
        """The one that may exceed the bound."""
        self._waiting: dict[Frame, Callable[[], None]] = {}
        """In the order in which they began to wait, and what to call when there is memory."""
        self._woken: Frame | None = None
        """The one whose turn it is, until it has tried to receive: others are woken after it, and take nothing before."""
        self.used = 0

    @property
    def is_full(self) -> bool:
        return self.used >= self._most

    def begin(self, size: int, now: float) -> Frame:
        """A frame of which nothing has arrived."""
        for index, buffer in enumerate(self._free):
            if len(buffer) >= size:
                return Frame(self._free.pop(index), size, now)
        return Frame(_lazy_memory(size if size > _KEPT_BYTES else max(size, _LEAST_BYTES)), size, now)

    def receivable(self, frame: Frame, wake: Callable[[], None], now: float) -> int:
        """How many bytes of a frame may be received now. 0: `wake` is called when it is worth another try.

        What has arrived, or that nothing has, is reported by `fill`: until then nobody else is woken.
        """
        missing = min(frame.size - frame.filled, MOST_RECEIVED)
        if frame is self._first:
            self._read_on(frame, now)
            return missing
        free = self._most - self.used
        is_next = next(iter(self._waiting), frame) is frame
        if not is_next or (free <= 0 and self._first is not None):
            if frame is self._woken:
                self._woken = None
            self._waiting.setdefault(frame, wake)
            self.hold_back(frame, now)
            return 0
        self._read_on(frame, now)
        if free <= 0:
            self._first = frame
            return missing
        return min(missing, free)

    @property
    def is_wanted(self) -> bool:
        """Whether a request waits for memory."""
        return bool(self._waiting)

    def is_waiting(self, frame: Frame) -> bool:
        """Whether it waits for memory."""
        return frame in self._waiting

    def hold_back(self, frame: Frame, now: float) -> None:
        """The gateway does not read on: no time passes for its client before `receivable` allows it bytes again."""
        frame.unread_since = now if frame.unread_since is None else frame.unread_since

    def fill(self, frame: Frame, size: int) -> None:
        """So many bytes more have arrived in a frame, maybe none."""
        frame.filled += size
        self.used += size
        self._pass_turn(frame)

    def end(self, frame: Frame) -> None:
        """Its memory is free again, for the first of those that wait, and for the next when that one has received something."""
        self._waiting.pop(frame, None)
        self.used -= frame.filled
        if frame is self._first:
            self._first = None
        if len(frame.buffer) <= _KEPT_BYTES and len(self._free) < _MOST_KEPT:
            self._free.append(frame.buffer)
        self._pass_turn(frame)

    def _pass_turn(self, frame: Frame) -> None:
        if frame is self._woken:
            self._woken = None
        if self._woken is None and self._waiting and (not self.is_full or self._first is None):
            self._woken, wake = next(iter(self._waiting.items()))
            wake()

    def is_overdue(self, frame: Frame, now: float) -> bool:
        """Whether its client sends too slowly: by the size of the whole request, or while others wait by what has arrived lately.

        What it has sent quickly before buys it no time. Called about once a second.
        """
        if frame.is_whole or frame.unread_since is not None:
            return False
        seconds, received = now - frame.pace_at, frame.filled - frame.pace_filled
        if self._waiting and seconds > WANTED_SECONDS + received / BYTES_PER_SECOND:
            return True
        if received >= seconds * BYTES_PER_SECOND:
            frame.pace_at, frame.pace_filled = now, frame.filled
        return now - frame.started_at > HALF_REQUEST_SECONDS + frame.size / BYTES_PER_SECOND

    def _read_on(self, frame: Frame, now: float) -> None:
        self._waiting.pop(frame, None)
        if frame.unread_since is not None:
            frame.started_at += now - frame.unread_since
            frame.pace_at += now - frame.unread_since
            frame.unread_since = None


def _lazy_memory(size: int) -> mmap.mmap:
    """Memory that takes no pages before it is written to. A bytearray is filled with zeroes, so that 2,000 clients who announce 32 MB take 64 GB."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        # With transparent huge pages the first byte would take 2 MB. A kernel without them refuses the call.
        with suppress(OSError):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory
