"""From the client to the broker: requests are forwarded as they come, or read whole and decided."""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import is_offered, treatment
from rackspan.gateway.net.direction import SIZE_BYTES, Direction, Pair
from rackspan.gateway.net.exchange import Exchange
from rackspan.gateway.net.frames import Frame
from rackspan.wire.framing import Piece

MAX_IN_FLIGHT: Final = 100
"""Requests of one connection without a response. Further ones stay in the socket."""

MAX_UNSENT: Final = 256
"""Pieces of responses that the client has not accepted. Further requests stay in the socket: one that is refused here gets its
response at once, and a client that reads none would let them pile up."""

_HEADER: Final = Struct(">ihhi")
_SIZE: Final = Struct(">i")
_LEAST_BYTES: Final = 8


class Requests(Direction):
    """From the client to the broker."""

    __slots__ = ("_current", "_exchange", "blocked", "frame")

    def __init__(self, session: Pair) -> None:
        super().__init__(session, session.client, session.upstream)
        self.blocked = False
        """A request is being handled that those behind it wait for."""
        self.frame: Frame | None = None
        """A request that is read whole and is not in one buffer: until all of it is sent on."""
        self._exchange: Exchange
        self._current = memoryview(b"")
        """The whole request at hand, with its size in front."""

    @property
    def at_boundary(self) -> bool:
        return self._left == 0 and self.frame is None and not self._current and not self.blocked

    @property
    def is_half_received(self) -> bool:
        """Whether the client has yet to send the rest of a request."""
        return self.is_half_forwarded or (self.frame is not None and not self.frame.is_whole)

    @property
    def is_half_forwarded(self) -> bool:
        """The same, and the broker has the beginning: its exchange is the last one."""
        return self._left > 0

    def _may_read(self) -> bool:
        return not self._sink.outgoing and self._may_go_on() and not (self._session.draining and self.at_boundary)

    def _may_go_on(self) -> bool:
        session = self._session
        return not self.blocked and len(session.exchanges) < MAX_IN_FLIGHT and len(session.client.outgoing) < MAX_UNSENT

    def _receive(self) -> None:
        frame = self.frame
        if frame is None or frame.is_whole or self.blocked:
            super()._receive()
            return
        if not self._reserved(frame, frame.filled + 1):
            self._source.pause_reading()
            return
        received = self._source.receive_into(memoryview(frame.buffer)[frame.filled : frame.reserved])
        if received == 0:
            self._ended()
        if received <= 0:
            return
        frame.filled += received
        if frame.is_whole:
            self._take(memoryview(frame.buffer)[: frame.size])
            self._sink.flush()
            self._go_on()
        else:
            self._source.read_rest()

    def _reserved(self, frame: Frame, least: int) -> bool:
        return self._session.owner.frames.reserve(frame, least, self._memory_freed, self._session.time())

    def _pass_on(self, data: memoryview) -> int:
        if self.frame is not None and self.frame.is_whole:
            self._free_frame()
        at, size = 0, len(data)
        outgoing = self._sink.outgoing
        forwarded_from = 0
        """What is forwarded unread is kept together, so that many small requests are one piece."""
        while at < size and self._may_go_on():
            if self._left:
                passed = min(self._left, size - at)
                at += passed
                self._left -= passed
                continue
            if self._session.draining:
                break
            header_bytes = _HEADER.size - len(self._header)
            if size - at < header_bytes:
                if at > forwarded_from:
                    outgoing.append(data[forwarded_from:at])
                self._header += bytes(data[at:])
                if len(self._header) >= SIZE_BYTES:
                    # A size that is refused may have nothing behind it: the connection is closed without waiting for more.
                    self._check_size(*_SIZE.unpack_from(self._header))
                return size
            header = self._header
            exchange, frame_bytes = self._begin(header + bytes(data[at : at + header_bytes]))
            if not self._session.owner.reads_whole(exchange.api_key, exchange.version):
                self._session.exchanges.append(exchange)
                self._session.awaited.append(exchange)
                self._session.owner.count_frame(exchange.api_key)
                if header:
                    outgoing.append(header)
                    self._header = b""
                self._left = frame_bytes - len(header)
                continue
            if at > forwarded_from:
                outgoing.append(data[forwarded_from:at])
            if not self._session.is_proven:
                # Nothing is read or decided for a stranger. The header is read again when the broker has responded.
                self.blocked = True
                self._session.prove()
                return at
            self._exchange = exchange
            there = min(frame_bytes - len(header), size - at)
            if not header and there == frame_bytes:
                self._take(data[at : at + there])
            elif not self._gather(header, data[at : at + there], frame_bytes):
                # No memory for it now: its header is read again later.
                return at
            self._session.owner.count_frame(exchange.api_key)
            at += there
            self._header = b""
            forwarded_from = at
            if self._session.closed or self.frame is not None:
                return at
        if at > forwarded_from:
            outgoing.append(data[forwarded_from:at])
        return at

    def _begin(self, header: bytes) -> tuple[Exchange, int]:
        size, api_key, version, correlation_id = _HEADER.unpack(header)
        self._check_size(size)
        if not is_offered(api_key, version):
            raise MalformedRequest(f"API key {api_key} version {version} is not offered here")
        return Exchange(api_key, version, correlation_id, treatment(api_key, version)), size + SIZE_BYTES

    def _check_size(self, size: int) -> None:
        most_bytes = self._session.owner.max_request_bytes
        if not _LEAST_BYTES <= size <= most_bytes:
            raise MalformedRequest(f"a request of {size} bytes; at most {most_bytes} are read")

    def _gather(self, header: bytes, data: memoryview, frame_bytes: int) -> bool:
        """Begin a frame with what is there of it; False if there is no memory for that."""
        frame = self.frame or self._session.owner.frames.begin(frame_bytes, self._session.time())
        filled = len(header) + len(data)
        self.frame = frame
        if not self._reserved(frame, filled):
            self.blocked = True
            return False
        frame.buffer[: len(header)] = header
        frame.buffer[len(header) : filled] = data
        frame.filled = filled
        if frame.is_whole:
            self._take(memoryview(frame.buffer)[:frame_bytes])
        return True

    def _memory_freed(self) -> None:
        frame = self.frame
        if frame is not None and frame.filled:
            self._source.resume_reading()
            return
        self.blocked = False
        self.go_on()

    def proven(self) -> None:
        """The broker has responded: requests are read on."""
        self.blocked = False
        self.go_on()

    def _take(self, frame: memoryview) -> None:
        self._current = frame
        self._session.take(self._exchange, frame[SIZE_BYTES:])
        if not self.blocked:
            self._current = memoryview(b"")

    def forward(self, parts: "Sequence[Piece] | None") -> None:
        outgoing = self._sink.outgoing
        if parts is None:
            outgoing.append(self._current)
        else:
            outgoing.append(_SIZE.pack(sum(map(len, parts))))
            outgoing.extend(parts)
        self._sink.flush()

    def _go_on(self) -> None:
        if not self.blocked:
            self._current = memoryview(b"")
        if self.frame is not None and self.frame.is_whole and not self.blocked and not self._sink.outgoing:
            self._free_frame()
        super()._go_on()

    def _sent(self) -> None:
        if self.frame is not None and self.frame.is_whole and not self.blocked:
            self._free_frame()

    def _free_frame(self) -> None:
        if self.frame is not None:
            frame, self.frame = self.frame, None
            self._session.owner.frames.end(frame, self._session.time())

    def release(self) -> None:
        super().release()
        self._current = memoryview(b"")
        self._free_frame()

    def _ended(self) -> None:
        # A client that closes expects no further response.
        self._session.close()
