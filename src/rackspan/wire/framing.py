"""Where one request ends and the next begins: an int32 size, then that many bytes.

Made for asyncio's BufferedProtocol, which asks where to put bytes and then says how many came. A large produce is
received where it will be read, without a copy in between.
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
"""Small requests are received here together: one system call for many of them."""

_BELIEVED_BYTES: Final = 1024 * 1024
"""What a connection may have allocated ahead of the bytes it has sent; producers send no more at once by default."""

_SIZE_BYTES: Final = 4


_PIECE_BYTES: Final = 256 * 1024
"""What is handed to a socket at once: of a piece that it takes in part, asyncio copies the rest."""

Piece: TypeAlias = "bytes | bytearray | memoryview"

Request: TypeAlias = "bytes | memoryview"
"""Whole and without its size. A large one is a view of memory of its own, which a log may keep and write to."""


def framed(parts: Sequence[Piece]) -> bytes:
    """One message, its size in front, in one."""
    return b"".join((sum(map(len, parts)).to_bytes(_SIZE_BYTES, "big"), *parts))


def pieces(parts: Sequence[Piece]) -> Iterator[Piece]:
    """The same for a socket: what is small is joined, what is large is cut into views and not copied."""
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
    """Take what goes to the socket next: one large piece, or small ones joined, so that one system call sends them."""
    taken = [outgoing.popleft()]
    size = len(taken[0])
    while outgoing and size + len(outgoing[0]) <= _STAGE_BYTES:
        taken.append(outgoing.popleft())
        size += len(taken[-1])
    return taken[0] if len(taken) == 1 else b"".join(taken)


def _claimed(size: int) -> mmap.mmap:
    """Memory for a request that says it has so many bytes; of a larger claim nothing is there before its bytes come.

    Fresh memory is most of what receiving costs: here nobody fills it with zeroes twice, as a bytearray does, and what is
    believed comes at once and not page by page.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if sys.platform == "linux" and size <= _BELIEVED_BYTES:
        flags |= mmap.MAP_POPULATE
    return mmap.mmap(-1, size, flags=flags)


class FrameBuffer:
    """The bytes of one connection that are not a whole request yet."""

    __slots__ = ("_filled", "_large", "_max_bytes", "_stage")

    def __init__(self, max_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._max_bytes = max_bytes
        self._stage = bytearray()
        self._large: memoryview | None = None
        self._filled = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes received of a request that is not whole."""
        return self._filled

    def room(self) -> memoryview:
        """Where the next bytes belong. Never empty."""
        if self._large is not None:
            return self._large[self._filled :]
        if not self._stage:
            # Not before the first byte: thousands of idle connections hold nothing.
            self._stage = bytearray(_STAGE_BYTES)
        return memoryview(self._stage)[self._filled :]

    def received(self, count: int) -> Iterator[Request]:
        """Take `count` bytes that were put into the room; give every request that is now whole.

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
        """Move what is left of the stage to where the rest of it will follow."""
        left = self._filled - at
        size = int.from_bytes(view[at : at + _SIZE_BYTES], "big") if left >= _SIZE_BYTES else 0
        if size + _SIZE_BYTES > _STAGE_BYTES:
            self._filled = left - _SIZE_BYTES
            self._large = memoryview(_claimed(size))
            self._large[: self._filled] = view[at + _SIZE_BYTES : at + left]
            return
        if at:
            view[:left] = bytes(view[at : at + left])
        self._filled = left

    def _checked(self, size: int) -> int:
        if not 0 <= size <= self._max_bytes:
            raise MalformedRequest(f"a request of {size} bytes; at most {self._max_bytes} are read")
        return size
