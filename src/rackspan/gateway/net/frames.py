"""Memory for requests that are read whole: reserved as their bytes arrive, bounded in sum.

What a request announces reserves nothing. If the memory is full, requests wait for it in their order, and the first of them may
exceed it: so one is always completed, and at most one request is held beyond the bound. Who sends slower than
BYTES_PER_SECOND loses the connection: after HALF_REQUEST_SECONDS, and after WANTED_SECONDS while others wait.

It reads no clock: every call carries its time, in seconds.
"""

import mmap
from collections.abc import Callable
from typing import Final

HALF_REQUEST_SECONDS: Final = 30.0
"""Time limit of any request, beside the time that its size takes."""

WANTED_SECONDS: Final = 2.0
"""The same while another request waits for memory."""

BYTES_PER_SECOND: Final = 1_000_000

_STEP_BYTES: Final = 256 * 1024
"""A request reserves so much at first, then as much as it has received: never more than it has paid for twice over."""

_LEAST_BYTES: Final = 256 * 1024
_KEPT_BYTES: Final = 4 * 1024 * 1024
_MOST_KEPT: Final = 8


class Frame:
    """A request with its size in front, `filled` so far."""

    __slots__ = ("buffer", "filled", "reserved", "size", "started_at", "waited_seconds", "waiting_since")

    def __init__(self, buffer: mmap.mmap, size: int, now: float) -> None:
        self.buffer = buffer
        """Memory of `size` bytes or more, of which the system allocates a page when its first byte arrives."""
        self.size = size
        self.filled = 0
        self.reserved = 0
        self.started_at = now
        self.waited_seconds = 0.0
        """How long it has waited for memory, which is not the client's fault."""
        self.waiting_since: float | None = None

    @property
    def is_whole(self) -> bool:
        return self.filled == self.size


class FrameMemory:
    """All frames of a process, which reserve at most `most_bytes`, and one of them more."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._free: list[mmap.mmap] = []
        self._first: Frame | None = None
        """The one that may exceed the bound."""
        self._waiting: dict[Frame, Callable[[], None]] = {}
        """In the order in which they began to wait, and what to call when there is memory."""
        self.used = 0

    def begin(self, size: int, now: float) -> Frame:
        """A frame without reserved memory."""
        for index, buffer in enumerate(self._free):
            if len(buffer) >= size:
                return Frame(self._free.pop(index), size, now)
        return Frame(_lazy_memory(size if size > _KEPT_BYTES else max(size, _LEAST_BYTES)), size, now)

    def reserve(self, frame: Frame, least: int, wake: Callable[[], None], now: float) -> bool:
        """Reserve at least `least` bytes in all, and more if there are. False: `wake` is called when it is worth another try."""
        target = min(frame.size, max(least, 2 * frame.filled, _STEP_BYTES))
        more = target - frame.reserved
        if more <= 0:
            return True
        if self.used + more > self._most and self._first is not frame:
            if self._first is not None:
                self._waiting.setdefault(frame, wake)
                frame.waiting_since = now if frame.waiting_since is None else frame.waiting_since
                return False
            self._first = frame
        self._stop_waiting(frame, now)
        frame.reserved = target
        self.used += more
        return True

    def end(self, frame: Frame, now: float) -> None:
        """Its memory is free again; those that wait try once more, the first of them first."""
        self._stop_waiting(frame, now)
        self.used -= frame.reserved
        frame.reserved = 0
        if frame is self._first:
            self._first = None
        if len(frame.buffer) <= _KEPT_BYTES and len(self._free) < _MOST_KEPT:
            self._free.append(frame.buffer)
        for wake in [*self._waiting.values()]:
            wake()

    def is_overdue(self, frame: Frame, now: float) -> bool:
        """Whether its client sends too slowly: by the size of the whole request, or by what has arrived while others wait."""
        if frame.is_whole or frame.waiting_since is not None:
            return False
        seconds = now - frame.started_at - frame.waited_seconds
        if self._waiting:
            return seconds > WANTED_SECONDS + frame.filled / BYTES_PER_SECOND
        return seconds > HALF_REQUEST_SECONDS + frame.size / BYTES_PER_SECOND

    def _stop_waiting(self, frame: Frame, now: float) -> None:
        self._waiting.pop(frame, None)
        if frame.waiting_since is not None:
            frame.waited_seconds += now - frame.waiting_since
            frame.waiting_since = None


def _lazy_memory(size: int) -> mmap.mmap:
    """Memory that takes no pages before it is written to. A bytearray is filled with zeroes, so that 2,000 clients who announce 32 MB take 64 GB."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
