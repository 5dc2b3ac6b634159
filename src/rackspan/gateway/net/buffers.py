"""Receive buffers shared by all connections: an idle connection holds none."""

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
