"""From the client to the broker: requests are forwarded as they come, or read whole and decided."""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import TREATMENTS, Treatment
from rackspan.gateway.net.byte_flow import SIZE_BYTES, ByteFlow, Exchange, Pair
from rackspan.gateway.net.channel import BUFFER_BYTES
from rackspan.gateway.net.frames import FULL_RECEIVE_BYTES, Frame
from rackspan.wire.apis import ApiKey
from rackspan.wire.framing import Piece

MAX_IN_FLIGHT: Final = 100
"""Requests of one connection without a response. Further ones stay in the socket."""

MAX_UNSENT: Final = 256
"""Pieces of responses that the client has not accepted. Further requests stay in the socket: one that is refused here gets its
response at once, and a client that reads none would let them pile up."""

MAX_API_VERSIONS_BYTES: Final = 64 * 1024
"""Size limit of ApiVersions requests, which are kept until they are whole, before a login too. A client id has at most half of it."""

_HEADER: Final = Struct(">ihhi")
_SIZE: Final = Struct(">i")
_LEAST_BYTES: Final = 8


class RequestFlow(ByteFlow):
    """From the client to the broker."""

    __slots__ = ("_current", "_exchange", "blocked", "frame", "has_taken_one")

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair, pair.client, pair.upstream)
        self.blocked = False
        """Whether a request is being handled for which those behind it wait."""
        self.frame: Frame | None = None
        """A request that is read whole and is not in one buffer, until all of it is forwarded."""
        self.has_taken_one = False
        """Whether a whole request has been decided about."""
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
        waits = self.frame is not None and self._pair.shared.frames.is_waiting(self.frame)
        may_pass = not waits and not self._sink.outgoing and self._may_pass()
        return may_pass and not (self._pair.draining and self.at_boundary)

    def _may_pass(self) -> bool:
        pair = self._pair
        if self.blocked or self._is_stalled:
            return False
        return len(pair.exchanges) < MAX_IN_FLIGHT and len(pair.client.outgoing) < MAX_UNSENT

    @property
    def _is_stalled(self) -> bool:
        """Whether the next request is left in the socket. One that has begun goes on: its memory, and its broker, would wait for as long."""
        return self._pair.stalled > 0 and self._left == 0 and self.frame is None

    def _may_release(self) -> bool:
        return not self.blocked

    def _receive(self) -> None:
        if self._is_stalled:
            self._source.pause_reading()
            if self._source.has_ended_unseen:
                self._ended()
            return
        frame = self.frame
        if frame is None or frame.is_whole or self.blocked:
            super()._receive()
            return
        memory = self._pair.shared.frames
        size = memory.receivable(frame, self._memory_freed, self._pair.time())
        if not size:
            self._source.pause_reading()
            return
        received = self._source.receive_into(memoryview(frame.buffer)[frame.filled : frame.filled + size])
        memory.fill(frame, max(received, 0))
        if received == 0:
            self._ended()
        if received <= 0:
            return
        if frame.is_whole:
            self._take(memoryview(frame.buffer)[: frame.size])
            self._resume()
        else:
            self._source.read_rest()

    def _pass_on(self, data: memoryview) -> int:
        if self.frame is not None and self.frame.is_whole:
            self._free_frame()
        at, size = 0, len(data)
        outgoing = self._sink.outgoing
        forwarded_from = 0
        """The beginning of what is forwarded unread, which is one piece for many small requests."""
        while at < size and self._may_pass():
            if self._left:
                passed = min(self._left, size - at)
                at += passed
                self._left -= passed
                continue
            if self._pair.draining:
                break
            header = self._header
            header_bytes = max(0, _HEADER.size - len(header))
            begun = None if size - at < header_bytes else self._begin(header + bytes(data[at : at + header_bytes]))
            if begun is None or self._is_kept(*begun, size - at):
                if at > forwarded_from:
                    outgoing.append(data[forwarded_from:at])
                self._keep_header(data[at:])
                return size
            exchange, frame_bytes = begun
            if exchange.api_key == ApiKey.API_VERSIONS:
                whole = header + bytes(data[at : at + frame_bytes - len(header)])
                self._pair.identify(exchange, memoryview(whole)[SIZE_BYTES:])
            if exchange.api_key not in self._pair.shared.takes:
                self._forward_unread(exchange, frame_bytes)
                continue
            if at > forwarded_from:
                outgoing.append(data[forwarded_from:at])
            there = data[at : at + frame_bytes - len(header)]
            if not self._read_whole(exchange, there, frame_bytes):
                return at
            at += len(there)
            forwarded_from = at
            if self._pair.closed or self.frame is not None:
                return at
        if at > forwarded_from:
            outgoing.append(data[forwarded_from:at])
        return at

    def _is_kept(self, exchange: Exchange, frame_bytes: int, received: int) -> bool:
        """Whether a request is kept until all of it is there: an ApiVersions request decides about its response."""
        return exchange.api_key == ApiKey.API_VERSIONS and len(self._header) + received < frame_bytes

    def _keep_header(self, beginning: memoryview) -> None:
        self._header += bytes(beginning)
        if len(self._header) >= SIZE_BYTES:
            # A size that is refused may have nothing behind it: the connection is closed without waiting for more.
            self._check_size(*_SIZE.unpack_from(self._header))

    def _forward_unread(self, exchange: Exchange, frame_bytes: int) -> None:
        """Forward a request as it comes."""
        self._pair.exchanges.append(exchange)
        self._pair.awaited.append(exchange)
        self._pair.shared.requests[exchange.api_key] += 1
        self._left = frame_bytes - len(self._header)
        if self._header:
            self._sink.outgoing.append(self._header)
            self._header = b""

    def _read_whole(self, exchange: Exchange, there: memoryview, frame_bytes: int) -> bool:
        """Read a request whole, of which `there` has been received behind its header's beginning. False: its header is read again later."""
        if not self._pair.is_proven:
            # Nothing is read or decided for a client without a login, until the broker has responded.
            self.blocked = True
            self._pair.prove()
            return False
        self._exchange = exchange
        header = self._header
        if not header and len(there) == frame_bytes:
            self._take(there)
        else:
            self._gather(header, there, frame_bytes)
        self._pair.shared.requests[exchange.api_key] += 1
        self._header = b""
        return True

    def _begin(self, header: bytes) -> tuple[Exchange, int]:
        size, api_key, version, correlation_id = _HEADER.unpack_from(header)
        self._check_size(size)
        if api_key == ApiKey.API_VERSIONS and size > MAX_API_VERSIONS_BYTES:
            raise MalformedRequest(f"an ApiVersions request of {size} bytes; at most {MAX_API_VERSIONS_BYTES} are read")
        # Brokers respond to every version of ApiVersions.
        treatment = TREATMENTS.get((api_key, version), Treatment.WHOLE if api_key == ApiKey.API_VERSIONS else None)
        if treatment is None:
            raise MalformedRequest(f"API key {api_key} version {version} is not offered here")
        exchange = Exchange(api_key, version, correlation_id, treatment)
        if api_key == ApiKey.FETCH:
            exchange.on_partition = self._pair.count_fetched
        return exchange, size + SIZE_BYTES

    def _check_size(self, size: int) -> None:
        most_bytes = self._pair.shared.max_request_bytes
        if not _LEAST_BYTES <= size <= most_bytes:
            raise MalformedRequest(f"a request of {size} bytes; at most {most_bytes} are read")

    def _gather(self, header: bytes, data: memoryview, frame_bytes: int) -> None:
        """Begin a frame with what is there of it. That takes memory already, so that it need not wait for any."""
        memory = self._pair.shared.frames
        frame = self.frame = memory.begin(frame_bytes, self._pair.time())
        filled = len(header) + len(data)
        frame.buffer[: len(header)] = header
        frame.buffer[len(header) : filled] = data
        memory.fill(frame, filled)
        if frame.is_whole:
            self._take(memoryview(frame.buffer)[:frame_bytes])

    def _memory_freed(self) -> None:
        # Later: this is called while another connection gives its memory back. At once, too: nothing may be in the socket.
        self._source.resume_reading()
        self._pair.run_soon(self._receive)

    @property
    def _most_received(self) -> int:
        return FULL_RECEIVE_BYTES if self._pair.shared.frames.is_full else BUFFER_BYTES

    @property
    def is_mid_request(self) -> bool:
        """Whether the client has sent the beginning of a request and not all of it, as far as it was received."""
        frame, rest = self.frame, self._rest if self._rest is not None else memoryview(b"")
        if frame is not None:
            return not frame.is_whole
        if self._left:
            return self._left > len(rest)
        begun = self._header + bytes(rest[:SIZE_BYTES])
        if len(begun) < SIZE_BYTES:
            return bool(begun)
        (size,) = _SIZE.unpack_from(begun)
        return len(self._header) + len(rest) < int(size) + SIZE_BYTES

    def proven(self) -> None:
        """The broker has responded: read requests again."""
        self.blocked = False
        self.resume()

    def _take(self, frame: memoryview) -> None:
        self._current = frame
        self.has_taken_one = True
        self._pair.shared.takes[self._exchange.api_key](self._pair, self._exchange, frame[SIZE_BYTES:])
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

    def _resume(self) -> None:
        if not self.blocked:
            self._current = memoryview(b"")
        if self.frame is not None and self.frame.is_whole and not self.blocked and not self._sink.outgoing:
            self._free_frame()
        super()._resume()
        if self.frame is not None and not self.frame.is_whole and not self._may_read():
            self._pair.shared.frames.hold_back(self.frame, self._pair.time())

    def _sent(self) -> None:
        if self.frame is not None and self.frame.is_whole and not self.blocked:
            self._free_frame()

    def _free_frame(self) -> None:
        if self.frame is not None:
            frame, self.frame = self.frame, None
            self._pair.shared.frames.end(frame)

    def release(self) -> None:
        super().release()
        self._current = memoryview(b"")
        self._free_frame()

    def _ended(self) -> None:
        # A client that closes expects no further response.
        self._pair.close()
