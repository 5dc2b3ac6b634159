"""Receive buffers shared by all connections: an idle connection holds none."""

from collections.abc import Callable
from typing import Final

BUFFER_BYTES: Final = 256 * 1024
"""Large, because every receive and every send costs a system call and a turn of the event loop."""

_SMALL_BYTES: Final = 16 * 1024
_MOST_LARGE: Final = 64
"""Beyond so many buffers in use, connections whose peers read slowly get small ones: 16 MB, then little for each."""

_MOST_KEPT: Final = 16


class BufferPool:
    """Buffers that are taken for one receive and put back when their bytes have been sent."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []
        self.in_use = 0

    def take(self) -> bytearray:
        self.in_use += 1
        if self._free:
            return self._free.pop()
        return bytearray(BUFFER_BYTES if self.in_use <= _MOST_LARGE else _SMALL_BYTES)

    def put(self, buffer: bytearray) -> None:
        self.in_use -= 1
        if len(buffer) == BUFFER_BYTES and len(self._free) < _MOST_KEPT:
            self._free.append(buffer)


class FrameMemory:
    """Memory for requests that are read whole: bounded in sum, and reused, since new memory costs more than its filling."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._free: list[bytearray] = []
        self.used = 0
        self.waiting: list[Callable[[], None]] = []
        """Called when memory has been put back."""

    def take(self, size: int) -> bytearray | None:
        """At least so many bytes; None while too much is in use, unless nothing is."""
        if self.used and self.used + size > self._most:
            return None
        self.used += size
        for index, buffer in enumerate(self._free):
            if len(buffer) >= size:
                return self._free.pop(index)
        return bytearray(size if size > _KEPT_BYTES else max(size, _LEAST_BYTES))

    def put(self, buffer: bytearray, size: int) -> None:
        self.used -= size
        if len(buffer) <= _KEPT_BYTES and len(self._free) < _MOST_FRAMES_KEPT:
            self._free.append(buffer)
        waiting, self.waiting = self.waiting, []
        for wake in waiting:
            wake()


_LEAST_BYTES: Final = 256 * 1024
_KEPT_BYTES: Final = 4 * 1024 * 1024
_MOST_FRAMES_KEPT: Final = 8
