"""One non-blocking socket on the event loop, plain or TLS, and the receive buffers that all connections share.

asyncio's transports copy what the socket does not accept. Here it stays where it was received, and its connection reads no
more until it has been sent.
"""

import asyncio
import fcntl
import select
import socket
import ssl
import sys
import termios
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Final

from rackspan.wire.framing import Piece

BUFFER_BYTES: Final = 256 * 1024
"""Large, because every receive and every send costs a system call and a turn of the event loop."""

_SMALL_BYTES: Final = 16 * 1024
_MOST_LARGE: Final = 64
"""Beyond so many buffers in use, connections whose peers read slowly get small ones: 16 MB, then little for each."""

_MOST_KEPT: Final = 16

SILENT_SECONDS: Final = 2.0
"""How long a client may send nothing in the middle of a request."""

FIRST_BYTES: Final = 16 * 1024
"""Of a larger first request so much is waited for."""

_SIZE_BYTES: Final = 4

_EARLY_SECONDS: Final = 0.02

NOTHING_YET: Final = -1
_MOST_PIECES: Final = 256
"""Limit of one system call; Linux takes 1,024."""

_AGAIN: Final = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


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


class Channel:
    """A connected socket. `on_readable`, `on_drained` and `on_error` are called from the event loop."""

    __slots__ = (
        "_loop",
        "_reading",
        "_secure",
        "_unaccepted",
        "_unmoved_since",
        "_writing",
        "closed",
        "fd",
        "on_drained",
        "on_error",
        "on_readable",
        "outgoing",
        "received_at",
        "received_bytes",
        "sent_bytes",
        "sock",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop = loop
        self.sock = sock
        self.fd = sock.fileno()
        self._secure = isinstance(sock, ssl.SSLSocket)
        self._reading = False
        self._writing = False
        self.closed = False
        self.outgoing: deque[Piece] = deque()
        self.received_bytes = 0
        self.received_at = loop.time()
        """When the peer has sent something last, as far as it was received."""
        self.sent_bytes = 0
        self._unaccepted: tuple[int, int] | None = None
        self._unmoved_since = 0.0
        self.on_readable: Callable[[], None]
        self.on_drained: Callable[[], None]
        self.on_error: Callable[[OSError], None]

    def resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self.fd, self.on_readable)
            self.read_rest()

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self.fd)

    @property
    def has_ended_unseen(self) -> bool:
        """Whether the peer has closed its side while nothing is read here, so that no receive shows it."""
        return not self._reading and not self.closed and _has_ended(self.fd)

    @property
    def has_unread(self) -> bool:
        """Whether the peer has sent something that was not received here."""
        if self.closed:
            return False
        if self._secure and self.sock.pending():  # type: ignore[attr-defined]  # It is an SSLSocket if it is secure.
            return True
        return _socket_bytes(self.fd, termios.FIONREAD) > 0

    @property
    def unaccepted(self) -> tuple[int, int] | None:
        """Bytes that were sent, and of those how many the peer's system has not taken: it changes while the peer reads.

        None if nothing waits here to be sent.
        """
        if self.closed or not self.outgoing:
            return None
        return self.sent_bytes, _socket_bytes(self.fd, termios.TIOCOUTQ)

    def unmoved_seconds(self) -> float:
        """For how long the peer has taken nothing of what waits here, as far as it was called before; 0.0 if nothing waits."""
        now, unaccepted = self._loop.time(), self.unaccepted
        if unaccepted is None or unaccepted != self._unaccepted:
            self._unaccepted, self._unmoved_since = unaccepted, now
        return now - self._unmoved_since

    def read_rest(self) -> None:
        """TLS decrypts more than one receive takes; the system does not report that as readable."""
        if self._secure and self._reading and self.sock.pending():  # type: ignore[attr-defined]  # It is an SSLSocket if it is secure.
            self._loop.call_soon(self._readable_still)

    def _readable_still(self) -> None:
        if self._reading and not self.closed:
            self.on_readable()

    def receive_into(self, buffer: memoryview | bytearray) -> int:
        """How many bytes were received; 0 at the end of the stream, NOTHING_YET while there are none. Errors: OSError."""
        try:
            received = self.sock.recv_into(buffer)
        except _AGAIN:
            if self._secure:
                # A part of a TLS record may have arrived.
                self.received_at = self._loop.time()
            return NOTHING_YET
        except ssl.SSLEOFError:
            return 0
        self.received_bytes += received
        self.received_at = self._loop.time()
        return received

    def flush(self) -> bool:
        """Send as much as the socket accepts. Whether nothing is left; `on_drained` is called later if something is."""
        outgoing = self.outgoing
        if self.closed:
            outgoing.clear()
            return True
        try:
            while outgoing:
                if not self._send_some():
                    break
        except _AGAIN:
            pass
        except OSError as error:
            self.on_error(error)
            return True
        if outgoing and not self._writing:
            self._writing = True
            self._loop.add_writer(self.fd, self._writable)
        return not outgoing

    def _send_some(self) -> bool:
        """One system call. Whether the socket accepted all that it was given."""
        outgoing = self.outgoing
        if self._secure or len(outgoing) == 1:
            sent = self.sock.send(outgoing[0])
            whole = sent == len(outgoing[0])
        else:
            pieces = list(outgoing) if len(outgoing) <= _MOST_PIECES else [outgoing[n] for n in range(_MOST_PIECES)]
            sent = self.sock.sendmsg(pieces)
            whole = sent == sum(map(len, pieces))
        self.sent_bytes += sent
        # Empty pieces too: nothing is ever sent of them.
        while outgoing and sent >= len(outgoing[0]):
            sent -= len(outgoing.popleft())
        if sent:
            outgoing[0] = memoryview(outgoing[0])[sent:]
        return whole

    def _writable(self) -> None:
        if self.flush() and self._writing:
            self._writing = False
            self._loop.remove_writer(self.fd)
            self.on_drained()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._reading:
            self._loop.remove_reader(self.fd)
        if self._writing:
            self._loop.remove_writer(self.fd)
        self._reading = self._writing = False
        self.outgoing.clear()
        self.sock.close()


def _socket_bytes(fd: int, request: int) -> int:
    """Bytes in one of a socket's queues."""
    return int.from_bytes(fcntl.ioctl(fd, request, bytes(4)), sys.byteorder)


def _has_ended(fd: int) -> bool:
    """Whether the peer has closed its side of a connection."""
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    return bool(poll.poll(0))


async def handshake(loop: asyncio.AbstractEventLoop, sock: ssl.SSLSocket) -> None:
    """The TLS handshake of a non-blocking socket. Errors: OSError, which ssl.SSLError is."""
    while True:
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(loop.add_reader, loop.remove_reader, sock.fileno())
        except ssl.SSLWantWriteError:
            await _ready(loop.add_writer, loop.remove_writer, sock.fileno())
        else:
            return


class FirstRequest(IntEnum):
    """How much of a client's first request has arrived."""

    NONE = 0
    PART = 1
    """As much as is waited for, or over TLS an unknown part."""
    WHOLE = 2


async def sends(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> FirstRequest:
    """Wait for the peer's first request, or FIRST_BYTES of it, without receiving them. Errors: OSError.

    NONE: it closed before, or has sent nothing more for SILENT_SECONDS. So the beginning of a request alone costs no
    connection to a broker. Over TLS the first bytes suffice: how large the request is cannot be read from the socket.
    """
    if isinstance(sock, ssl.SSLSocket):
        if not sock.pending():
            await _ready(loop.add_reader, loop.remove_reader, sock.fileno())
        return FirstRequest.PART
    await _ready(loop.add_reader, loop.remove_reader, sock.fileno())
    arrived, arrived_at = 0, loop.time()
    while True:
        try:
            begun = sock.recv(FIRST_BYTES, socket.MSG_PEEK)
        except ConnectionError:
            return FirstRequest.NONE
        if len(begun) > arrived:
            arrived, arrived_at = len(begun), loop.time()
        elif _has_ended(sock.fileno()) or loop.time() - arrived_at >= SILENT_SECONDS:
            return FirstRequest.NONE
        else:
            # Reported as readable before as much has arrived as was required.
            await asyncio.sleep(_EARLY_SECONDS)
        size = int.from_bytes(begun[:_SIZE_BYTES], "big", signed=True)
        # A size that cannot be is refused by the session.
        least = _SIZE_BYTES if arrived < _SIZE_BYTES else min(_SIZE_BYTES + max(size, 0), FIRST_BYTES)
        if arrived >= least:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            return FirstRequest.WHOLE if 0 < size <= arrived - _SIZE_BYTES else FirstRequest.PART
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(arrived_at + SILENT_SECONDS):
                await _ready(loop.add_reader, loop.remove_reader, sock.fileno())


async def _ready(add: Callable[..., None], remove: Callable[[int], object], fd: int) -> None:
    ready = asyncio.get_running_loop().create_future()

    def is_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    add(fd, is_ready)
    try:
        await ready
    finally:
        remove(fd)


async def connected(address: tuple[str, int], tls: ssl.SSLContext | None, server_name: str | None) -> socket.socket:
    """A connection to a broker, with TLS if a context is given. Errors: OSError."""
    loop = asyncio.get_running_loop()
    try:
        # An address in digits needs no thread, of which thousands of clients would wait for a few.
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await loop.getaddrinfo(*address, type=socket.SOCK_STREAM)
    failed: OSError = OSError(f"{address[0]}: no address found")
    for family, kind, protocol, _, target in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, target)
            if tls is None:
                return sock
            secured = tls.wrap_socket(sock, do_handshake_on_connect=False, server_hostname=server_name)
            sock = secured
            await handshake(loop, secured)
        except OSError as error:
            sock.close()
            failed = error
        except BaseException:
            sock.close()
            raise
        else:
            return secured
    raise failed
