"""The two directions of a client's connection: `Pair` is their shared state, `ByteFlow` moves bytes one way.

A direction receives bytes from one socket and sends them to the other. It reads no more while the other end has not accepted everything,
so that a slow peer costs one buffer.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.record_bytes import RecordBytes, Topic
from rackspan.gateway.core.response_end import OnPartition
from rackspan.gateway.net.channel import BUFFER_BYTES, BufferPool, Channel
from rackspan.gateway.net.frames import FrameMemory
from rackspan.model.ids import RackId
from rackspan.wire.framing import Piece

log = logging.getLogger(__name__)

SIZE_BYTES: Final = 4
"""A request or response begins with its size."""


class Exchange:
    """One request and its response."""

    __slots__ = (
        "api_key",
        "correlation_id",
        "done",
        "future",
        "on_dropped",
        "on_partition",
        "on_response",
        "parts",
        "treatment",
        "version",
    )

    def __init__(self, api_key: int, version: int, correlation_id: int, treatment: Treatment) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.treatment = treatment
        self.parts: Sequence[Piece] | None = None
        """The response, unframed, once it is `done`; None if the client expects none."""
        self.done = False
        self.future: asyncio.Future[bytes] | None = None
        """The response to a request of the gateway's own on the client's connection."""
        self.on_response: Callable[[bytes], Sequence[Piece] | None] | None = None
        """Called with a whole response; returns what the client gets, or None if it is decided later."""
        self.on_partition: OnPartition | None = None
        """Called for each partition of a Fetch response."""
        self.on_dropped: Callable[[], None] | None = None
        """Called if the connection is closed before the response has left."""


Take = Callable[[Any, Exchange, memoryview], None]
"""Decides about a whole request, given its Session: by the session's `forward`, `respond`, `handle` or `wait_for`.

Errors: MalformedRequest closes the connection.
"""


@dataclass(slots=True)
class Shared:
    """State that all connections of a process share."""

    addresses: Addresses
    takes: Mapping[int, Take]
    """The API keys whose requests are read whole, and what decides about them. Others are forwarded as they come, ApiVersions when all of it is there."""
    max_request_bytes: int
    frames: FrameMemory
    record_bytes: RecordBytes
    rack_of: Callable[[str, str], RackId | None]
    """From a client's address and client id to its rack, as [readers] has it."""
    cluster_id: Callable[[], str | None] = lambda: None
    """The id of the cluster behind the gateway, None before it is known."""
    buffers: BufferPool = field(default_factory=BufferPool)
    requests: Counter[int] = field(default_factory=Counter)
    """Requests received, by API key."""


class Pair:
    """A client's connection and its broker's, as both directions see them. ClientSession has the rest."""

    def __init__(
        self, shared: Shared, loop: asyncio.AbstractEventLoop, client: Channel, upstream: Channel, peer: str
    ) -> None:
        self.shared = shared
        self._loop = loop
        self.client = client
        self.upstream = upstream
        self.peer = peer
        self.exchanges: deque[Exchange] = deque()
        """In the order of the requests; a response is sent when it is the first."""
        self.awaited: deque[Exchange] = deque()
        """Those that the broker has yet to respond to, in the order in which it will."""
        self.closed = False
        self.draining = False
        self.stalled = 0
        """Responses that wait for a rack. Further requests stay in the socket meanwhile, as at a broker, which handles one of a connection at a time."""
        self.is_proven = False
        """Whether the broker has responded to a request for which it requires a login, if its listener requires one."""

    def time(self) -> float:
        return self._loop.time()

    def run_soon(self, step: Callable[[], None]) -> None:
        """Run a step in the event loop's next turn, unless the connection is closed by then."""
        self._loop.call_soon(lambda: None if self.closed else self.run_guarded(step))

    def run_guarded(self, step: Callable[[], None]) -> None:
        """Run a step; malformed bytes and bugs cost this connection."""
        try:
            step()
        except MalformedRequest as error:
            log.warning("closing the connection of %s: %s", self.peer, error)
            self.close()
        except OSError as error:
            log.debug("connection of %s: %s", self.peer, error)
            self.close()
        except Exception:
            log.exception("closing the connection of %s", self.peer)
            self.close()

    def complete(self, exchange: Exchange, parts: Sequence[Piece]) -> None:
        """The response to a request is ready; it is sent after those before it."""
        exchange.parts, exchange.done = parts, True
        self.send_ready()

    def identify(self, exchange: Exchange, request: memoryview) -> None:
        """Read a whole ApiVersions request: how the client names itself. Malformed requests are left to the broker."""
        raise NotImplementedError

    def count_fetched(self, topic: Topic, partition: int, _preferred: int, size_bytes: int) -> None:
        """The records of one partition of a Fetch response pass."""
        raise NotImplementedError

    def prove(self) -> None:
        """Find out whether the broker serves this client."""
        raise NotImplementedError

    def send_ready(self) -> None:
        """Send the responses that are ready, in order."""
        raise NotImplementedError

    def upstream_ended(self) -> None:
        """The broker closed its connection."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class ByteFlow:
    """One direction: its source, its sink, and bytes that were received and could not be sent yet."""

    __slots__ = ("_buffer", "_header", "_left", "_pair", "_rest", "_running", "_sink", "_source")

    def __init__(self, pair: Pair, source: Channel, sink: Channel) -> None:
        self._pair = pair
        self._source = source
        self._sink = sink
        self._buffer: bytearray | None = None
        """The buffer that `_rest` or the sink's queue still points into."""
        self._rest: memoryview | None = None
        """Received, and not parsed yet."""
        self._header = b""
        """The beginning of a frame that cannot be read yet."""
        self._left = 0
        """Bytes of the frame at hand that have not been received."""
        self._running = False

    def readable(self) -> None:
        self._pair.run_guarded(self._receive)

    def _receive(self) -> None:
        if self._buffer is not None or not self._may_read():
            self._source.pause_reading()
            return
        buffer = self._pair.shared.buffers.take()
        try:
            received = self._source.receive_into(memoryview(buffer)[: self._most_received])
        except BaseException:
            self._pair.shared.buffers.put(buffer)
            raise
        if received <= 0:
            self._pair.shared.buffers.put(buffer)
            if received == 0:
                self._ended()
            return
        self._buffer = buffer
        self._rest = memoryview(buffer)[:received]
        self._resume()

    def resume(self) -> None:
        """Continue with what was received, after something had stopped this direction."""
        if not self._running:
            self._pair.run_guarded(self._resume)

    def _resume(self) -> None:
        self._running = True
        try:
            while self._rest is not None and not self._sink.outgoing and self._may_pass():
                rest, self._rest = self._rest, None
                used = self._pass_on(rest)
                if self._pair.closed:
                    return
                if used < len(rest):
                    self._rest = rest[used:]
                self._sink.flush()
                if used == 0:
                    break
            if self._pair.closed:
                return
            if self._rest is None and not self._sink.outgoing and self._may_release():
                self._sent()
                if self._buffer is not None:
                    self._pair.shared.buffers.put(self._buffer)
                    self._buffer = None
        finally:
            self._running = False
        if self._buffer is None and self._may_read():
            self._source.resume_reading()
            self._source.read_rest()
        else:
            self._source.pause_reading()

    def release(self) -> None:
        if self._buffer is not None:
            self._rest = None
            self._pair.shared.buffers.put(self._buffer)
            self._buffer = None

    # Each direction has its own.

    @property
    def _most_received(self) -> int:
        """Bytes of one receive."""
        return BUFFER_BYTES

    def _may_read(self) -> bool:
        raise NotImplementedError

    def _may_pass(self) -> bool:
        raise NotImplementedError

    def _may_release(self) -> bool:
        """Whether nothing points into the buffer that everything was sent from."""
        return self._may_pass()

    def _pass_on(self, data: memoryview) -> int:
        raise NotImplementedError

    def _sent(self) -> None:
        """Everything received has been accepted by the sink."""

    def _ended(self) -> None:
        raise NotImplementedError
