"""Splits a stream into requests and frames responses: an int32 size, then that many bytes.

For asyncio's BufferedProtocol, which receives into a buffer of ours. A large Produce is received into the memory from which
it is read later, without a copy.
"""

import mmap
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from rackspan.errors import MalformedRequest

MAX_REQUEST_BYTES: Final = 100 * 1024 * 1024
"""Kafka's socket.request.max.bytes."""

_STAGE_BYTES: Final = 64 * 1024
"""Small requests are received together: one system call for many of them."""

_PREALLOCATED_BYTES: Final = 1024 * 1024
"""The largest request whose memory is allocated before its bytes arrive. By default producers send no larger ones."""

_SIZE_BYTES: Final = 4

_PIECE_BYTES: Final = 256 * 1024
"""The most that one write passes to asyncio, which copies what the socket does not accept."""

Piece: TypeAlias = "bytes | bytearray | memoryview"

Request: TypeAlias = "bytes | memoryview"
"""A whole request without its size. A large one is a view of its own memory, which a log may keep and write to."""


def pieces(parts: Sequence[Piece]) -> Iterator[Piece]:
    """A message with its size in front, for a socket: small parts are joined, large ones are cut into views and not copied."""
    small: list[Piece] = [sum(map(len, parts)).to_bytes(_SIZE_BYTES, "big")]
    for part in parts:
        if len(part) < _STAGE_BYTES:
            small.append(part)
            continue
        yield b"".join(small)
        small = []
        view = memoryview(part)
        yield from (view[at : at + _PIECE_BYTES] for at in range(0, len(part), _PIECE_BYTES))
    if small:
        yield b"".join(small)


def first_pieces(outgoing: deque[Piece]) -> Piece:
    """Remove and return what to write next: one large piece, or small ones joined, so that one system call sends them."""
    first = [outgoing.popleft()]
    size = len(first[0])
    while outgoing and size + len(outgoing[0]) <= _STAGE_BYTES:
        first.append(outgoing.popleft())
        size += len(first[-1])
    return first[0] if len(first) == 1 else b"".join(first)


def _request_memory(size: int) -> mmap.mmap:
    """Memory for a request of `size` bytes. Above _PREALLOCATED_BYTES the system allocates a page when its first byte arrives.

    Allocation is most of the cost of receiving: unlike bytearray, mmap does not fill its memory with zeroes a second time,
    and up to _PREALLOCATED_BYTES all pages come in one system call.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if sys.platform == "linux" and size <= _PREALLOCATED_BYTES:
        flags |= mmap.MAP_POPULATE
    return mmap.mmap(-1, size, flags=flags)


class FrameBuffer:
    """The received bytes of one connection that are not a whole request yet."""

    __slots__ = ("_filled", "_large", "_max_bytes", "_stage")

    def __init__(self, max_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._max_bytes = max_bytes
        self._stage = bytearray()
        self._large: memoryview | None = None
        self._filled = 0

    def next_buffer(self) -> memoryview:
        """Where to put the next bytes. Never empty."""
        if self._large is not None:
            return self._large[self._filled :]
        if not self._stage:
            # Allocated late: thousands of idle connections hold no memory.
            self._stage = bytearray(_STAGE_BYTES)
        return memoryview(self._stage)[self._filled :]

    def received(self, count: int) -> Iterator[Request]:
        """The requests that are whole after `count` more bytes in `next_buffer`.

        Errors: MalformedRequest for a size that is negative or above the maximum; nothing after it can be read.
        """
        self._filled += count
        if self._large is None:
            yield from self._from_stage()
        elif self._filled == len(self._large):
            whole, self._large, self._filled = self._large, None, 0
            yield whole

    def _from_stage(self) -> Iterator[Request]:
        view = memoryview(self._stage)
        at = 0
        while self._filled - at >= _SIZE_BYTES:
            size = self._checked(int.from_bytes(view[at : at + _SIZE_BYTES], "big", signed=True))
            end = at + _SIZE_BYTES + size
            if end > self._filled:
                break
            yield bytes(view[at + _SIZE_BYTES : end])
            at = end
        self._keep(view, at)

    def _keep(self, view: memoryview, at: int) -> None:
        """Move the incomplete request to where the rest of it will be received."""
        left = self._filled - at
        size = int.from_bytes(view[at : at + _SIZE_BYTES], "big") if left >= _SIZE_BYTES else 0
        if size + _SIZE_BYTES > _STAGE_BYTES:
            self._filled = left - _SIZE_BYTES
            self._large = memoryview(_request_memory(size))
            self._large[: self._filled] = view[at + _SIZE_BYTES : at + left]
            return
        if at:
            view[:left] = bytes(view[at : at + left])
        self._filled = left

    def _checked(self, size: int) -> int:
        if not 0 <= size <= self._max_bytes:
            raise MalformedRequest(f"a request of {size} bytes; at most {self._max_bytes} are read")
        return size
