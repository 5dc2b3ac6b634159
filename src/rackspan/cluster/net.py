"""Sockets and bytes: a broker's port, one client's connection, and the dispatch of a request to its handler.

Responses leave in the order of the requests; malformed bytes close their own connection.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Coroutine
from typing import Final, Protocol, TypeAlias, cast

from rackspan.cluster.context import BrokerContext, Call, EncodedResponse, Response
from rackspan.cluster.handlers import HANDLERS
from rackspan.cluster.handlers.api_versions import unsupported_version
from rackspan.errors import MalformedRequest
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import RequestHeader, peek_header, read_body, read_header, response_header, write_response
from rackspan.wire.framing import MAX_REQUEST_BYTES, FrameBuffer, Piece, Request, first_pieces, pieces


def dispatch(
    broker: BrokerContext, request: Request, client_host: str
) -> list[bytes] | Awaitable[list[bytes] | None] | None:
    """The response to one request, now or later. Errors: MalformedRequest, also for an API or version without a handler.

    Kafka closes the connection there too. ApiVersions alone gets a response in every version.
    """
    api_key, version, correlation_id = peek_header(request)
    handler = HANDLERS.get(api_key)
    if handler is None or version not in VERSIONS[ApiKey(api_key)]:
        if api_key == ApiKey.API_VERSIONS:
            # The client reads version 0, whatever it sent.
            return write_response(RequestHeader(api_key, 0, correlation_id, None, 0), unsupported_version())
        raise MalformedRequest(f"API key {api_key} version {version} is not offered here")
    header = read_header(request)
    response = handler(Call(header, read_body(request, header), broker, client_host))
    if isinstance(response, (asyncio.Future, Coroutine)):
        return _write_later(header, response)
    return _write(header, response)


async def _write_later(header: RequestHeader, response: Awaitable[Response]) -> list[bytes] | None:
    return _write(header, await response)


def _write(header: RequestHeader, response: Response) -> list[bytes] | None:
    if response is None:
        return None
    if isinstance(response, EncodedResponse):
        return [response_header(header), *response.parts]
    return write_response(header, response)


log = logging.getLogger(__name__)

MAX_IN_FLIGHT: Final = 100
"""Requests of one connection without a response. Further ones stay in the socket."""

Parts: TypeAlias = "list[bytes] | None"
"""One response without its frame; None where the client expects none."""


class ConnectionServer(Protocol):
    """What a connection uses of the server that accepted it."""

    connections: "set[Connection]"
    paused: bool

    def serve(self, request: Request, client_host: str) -> "Parts | Awaitable[Parts]":
        """The response, now or later. Errors: MalformedRequest closes the connection."""


class _Slot:
    """One response in the order of the requests, or the place it will take."""

    __slots__ = ("done", "parts", "pending")

    def __init__(self) -> None:
        self.parts: Parts = None
        self.done = False
        self.pending: asyncio.Future[Parts] | None = None
        """Cancelled when the connection ends."""


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one socket. `server` handles its requests; their responses leave in the order of the requests.

    Kafka guarantees that order per connection, and clients rely on it. Requests are handled as they arrive, so that a produce
    never waits for the acknowledgement of the one before it. A response waits for those before it.
    """

    def __init__(self, server: ConnectionServer, max_request_bytes: int = MAX_REQUEST_BYTES) -> None:
        self._server = server
        self._frames = FrameBuffer(max_request_bytes)
        self._slots: deque[_Slot] = deque()
        self._outgoing: deque[Piece] = deque()
        self._transport: asyncio.Transport | None  # Set by connection_made(): nothing else is called before it.
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
        for slot in self._slots:
            if slot.pending is not None:
                slot.pending.cancel()
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
        if self._can_write and len(self._slots) < MAX_IN_FLIGHT and not self._server.paused:
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
        slot.pending = asyncio.ensure_future(response)
        slot.pending.add_done_callback(lambda done: self._complete(slot, done))

    def _complete(self, slot: _Slot, pending: "asyncio.Future[Parts]") -> None:
        if pending.cancelled():
            self.abort()
        elif isinstance(error := pending.exception(), MalformedRequest):
            log.warning("closing the connection of %s: %s", self._peer, error)
            self.abort()
        elif error is not None:
            log.error("closing the connection of %s: a request failed", self._peer, exc_info=error)
            self.abort()
        else:
            slot.parts, slot.done = pending.result(), True
            self.balance()

    def _flush(self) -> None:
        """Write every response that is due, as far as the socket accepts it."""
        if self._server.paused or self._transport is None:
            return
        while self._slots and self._slots[0].done:
            parts = self._slots.popleft().parts
            if parts is not None:
                self._outgoing.extend(pieces(parts))
        while self._outgoing and self._can_write and not self._transport.is_closing():
            self._transport.write(first_pieces(self._outgoing))


LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 512


class BrokerServer:
    """A broker's port on loopback and its connections. Requests are dispatched to the broker that the server was opened with.

    The port is the broker's from the cluster's start to its end. While the broker is stopped the port stays bound but not
    listening, so that clients are refused and no other process can take it.
    """

    def __init__(self) -> None:
        self._broker: BrokerContext  # Set by open(): connections exist only after it.
        self.connections: set[Connection] = set()
        self.paused = False
        self._socket = _bound_socket(0)
        self._server: asyncio.Server | None = None
        self.address: tuple[str, int] = self._socket.getsockname()

    async def open(self, broker: BrokerContext) -> None:
        self._broker = broker
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), sock=self._socket, backlog=_BACKLOG)

    def close(self) -> None:
        """Close every connection and refuse new ones."""
        self.paused = False
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket = _bound_socket(self.address[1])
        for connection in tuple(self.connections):
            connection.abort()

    def release(self) -> None:
        """Give the port back to the machine."""
        if self._server is not None:
            self._server.close()
        self._socket.close()

    def pause(self) -> None:
        """Accept connections, but read no request and write no response."""
        self.paused = True
        self._balance()

    def resume(self) -> None:
        self.paused = False
        self._balance()

    def _balance(self) -> None:
        for connection in tuple(self.connections):
            connection.balance()

    def serve(self, request: Request, client_host: str) -> "Parts | Awaitable[Parts]":
        """The response to one request, now or later. Errors: MalformedRequest."""
        return dispatch(self._broker, request, client_host)


def _bound_socket(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((LOOPBACK, port))
    return bound
