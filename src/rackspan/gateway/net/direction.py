"""One direction of a client's connection: bytes are received from one socket, and passed on to the other.

It reads no more while the other end has not accepted everything, so that a slow peer costs one buffer.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.net.buffers import BufferPool
from rackspan.gateway.net.channel import Channel
from rackspan.gateway.net.exchange import Exchange
from rackspan.gateway.net.frames import FrameMemory
from rackspan.wire.framing import Piece

SIZE_BYTES: Final = 4
"""A request or response begins with its size."""


class PairOwner(Protocol):
    """What the directions use of the gateway."""

    buffers: BufferPool
    frames: FrameMemory
    max_request_bytes: int

    @property
    def addresses(self) -> Addresses: ...

    def reads_whole(self, api_key: int, version: int, /) -> bool:
        """Whether requests of this API are read whole and decided one by one."""
        ...

    def count_frame(self, api_key: int) -> None: ...


class Pair(Protocol):
    """What the directions use of the connection they are part of."""

    client: Channel
    upstream: Channel
    exchanges: deque[Exchange]
    awaited: deque[Exchange]
    closed: bool
    draining: bool
    is_proven: bool

    @property
    def owner(self) -> PairOwner: ...

    def time(self) -> float: ...

    def prove(self) -> None: ...

    def take(self, exchange: Exchange, request: memoryview) -> None: ...

    def complete(self, exchange: Exchange, parts: list[Piece]) -> None: ...

    def send_ready(self) -> None: ...

    def run_guarded(self, step: Callable[[], None]) -> None: ...

    def upstream_ended(self) -> None: ...

    def close(self) -> None: ...


class Direction:
    """One direction: where bytes come from, where they go, and what was received and could not be passed on yet."""

    __slots__ = ("_buffer", "_going", "_header", "_left", "_rest", "_session", "_sink", "_source")

    def __init__(self, session: Pair, source: Channel, sink: Channel) -> None:
        self._session = session
        self._source = source
        self._sink = sink
        self._buffer: bytearray | None = None
        """The buffer that `_rest` or the sink's queue still points into."""
        self._rest: memoryview | None = None
        """Received, and not looked at yet."""
        self._header = b""
        """The beginning of a frame, too short to be read."""
        self._left = 0
        """Bytes of the frame at hand that have not been received."""
        self._going = False

    def readable(self) -> None:
        self._session.run_guarded(self._receive)

    def _receive(self) -> None:
        if self._buffer is not None or not self._may_read():
            self._source.pause_reading()
            return
        buffer = self._session.owner.buffers.take()
        try:
            received = self._source.receive_into(buffer)
        except BaseException:
            self._session.owner.buffers.put(buffer)
            raise
        if received <= 0:
            self._session.owner.buffers.put(buffer)
            if received == 0:
                self._ended()
            return
        self._buffer = buffer
        self._rest = memoryview(buffer)[:received]
        self._go_on()

    def go_on(self) -> None:
        """Continue where something had held this direction up."""
        if not self._going and not self._session.closed:
            self._session.run_guarded(self._go_on)

    def _go_on(self) -> None:
        self._going = True
        try:
            while self._rest is not None and not self._sink.outgoing and self._may_go_on():
                rest, self._rest = self._rest, None
                used = self._pass_on(rest)
                if self._session.closed:
                    return
                if used < len(rest):
                    self._rest = rest[used:]
                self._sink.flush()
                if used == 0:
                    break
            if self._session.closed:
                return
            if self._rest is None and not self._sink.outgoing and self._may_go_on():
                self._sent()
                if self._buffer is not None:
                    self._session.owner.buffers.put(self._buffer)
                    self._buffer = None
        finally:
            self._going = False
        if self._buffer is None and self._may_read():
            self._source.resume_reading()
            self._source.read_rest()
        else:
            self._source.pause_reading()

    def release(self) -> None:
        if self._buffer is not None:
            self._rest = None
            self._session.owner.buffers.put(self._buffer)
            self._buffer = None

    # Of each direction.

    def _may_read(self) -> bool:
        raise NotImplementedError

    def _may_go_on(self) -> bool:
        raise NotImplementedError

    def _pass_on(self, data: memoryview) -> int:
        raise NotImplementedError

    def _sent(self) -> None:
        """Everything received has been accepted by the sink."""

    def _ended(self) -> None:
        raise NotImplementedError
