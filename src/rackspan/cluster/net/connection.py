"""One client's connection: responses leave in the order of the requests.

Kafka guarantees that order per connection, and clients rely on it. Requests are handled as they arrive, so that a produce
never waits for the acknowledgement of the one before it. A response waits for those before it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from typing import Final, Protocol, TypeAlias, cast

from rackspan.errors import MalformedRequest
from rackspan.wire.framing import MAX_REQUEST_BYTES, FrameBuffer, Piece, Request, first_pieces, pieces

log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 100
"""Requests of one connection without a response. Further ones stay in the socket."""

Parts: TypeAlias = "list[bytes] | None"
"""One response without its frame; None where the client expects none."""


class ConnectionServer(Protocol):
    """What a connection uses of the server that accepted it."""

    connections: "set[Connection]"
    frozen: bool

    def serve(self, request: Request, client_host: str) -> "Parts | Awaitable[Parts]":
        """The response, now or later. Errors: MalformedRequest closes the connection."""


class _Slot:
    """One response in the order of the requests, or the place it will take."""

    __slots__ = ("done", "parts")

    def __init__(self) -> None:
        self.parts: Parts = None
        self.done = False


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one socket. `server` handles its requests."""

    def __init__(self, server: ConnectionServer, max_request_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._server = server
        self._frames = FrameBuffer(max_request_bytes)
        self._slots: deque[_Slot] = deque()
        self._outgoing: deque[Piece] = deque()
        self._pending: set[asyncio.Future[Parts]] = set()
        self._transport: asyncio.Transport | None = None
        self._can_write = True
        self._peer = ""

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Bytes that the socket does not accept stay in `_outgoing`, where they are not copied.
        self._transport.set_write_buffer_limits(high=0)
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if peer else ""
        self._server.connections.add(self)
        self.balance()

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._frames.next_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for request in self._frames.received(nbytes):
                self._take(request)
        except MalformedRequest as error:
            log.warning("closing the connection of %s: %s", self._peer, error)
            self.abort()
        except asyncio.CancelledError:
            # The broker has stopped.
            self.abort()
        except Exception:
            log.exception("closing the connection of %s: a request failed", self._peer)
            self.abort()
        else:
            self.balance()

    def pause_writing(self) -> None:
        # Called during `balance`, by the write that filled the buffer.
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self.balance()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._transport = None
        self._server.connections.discard(self)
        for pending in self._pending:
            pending.cancel()
        self._slots.clear()
        self._outgoing.clear()

    # Called by the server.

    def abort(self) -> None:
        """Close at once. Requests without a response never get one."""
        if self._transport is not None:
            self._transport.abort()

    def balance(self) -> None:
        """Write the responses that are due, and pause reading while too many requests are outstanding."""
        self._flush()
        if self._transport is None or self._transport.is_closing():
            return
        if self._can_write and len(self._slots) < MAX_IN_FLIGHT and not self._server.frozen:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _take(self, request: Request) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        slot = _Slot()
        self._slots.append(slot)
        response = self._server.serve(request, self._peer)
        if response is None or isinstance(response, list):
            slot.parts, slot.done = response, True
            return
        pending = asyncio.ensure_future(response)
        self._pending.add(pending)
        pending.add_done_callback(lambda done: self._complete(slot, done))

    def _complete(self, slot: _Slot, pending: "asyncio.Future[Parts]") -> None:
        self._pending.discard(pending)
        if pending.cancelled():
            self.abort()
        elif (error := pending.exception()) is not None:
            log.error("closing the connection of %s: a request failed", self._peer, exc_info=error)
            self.abort()
        else:
            slot.parts, slot.done = pending.result(), True
            self.balance()

    def _flush(self) -> None:
        """Write every response that is due, as far as the socket accepts it."""
        if self._server.frozen or self._transport is None:
            return
        while self._slots and self._slots[0].done:
            parts = self._slots.popleft().parts
            if parts is not None:
                self._outgoing.extend(pieces(parts))
        while self._outgoing and self._can_write and not self._transport.is_closing():
            self._transport.write(first_pieces(self._outgoing))
