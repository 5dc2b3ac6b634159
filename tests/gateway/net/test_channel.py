"""A channel sends all its pieces, however many bytes the socket accepts at a time; a handshake waits for what it has to."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.gateway.net import channel as channel_module
from rackspan.gateway.net.channel import BufferPool, Channel, FirstRequest, connected, handshake, sends
from tests.gateway.pairs import pair
from tests.gateway.upstream.test_config_topic import dead_port
from tests.waiting import WITHIN_SECONDS, eventually

MOST_CALLS = 100


class Accepting:
    """A socket that accepts so many bytes of each call, and not more calls than a channel has reason for."""

    def __init__(self, at_a_time: int) -> None:
        self._at_a_time = at_a_time
        self._calls = 0
        self.accepted = b""

    def fileno(self) -> int:
        return 1

    def send(self, data: bytes) -> int:
        self._calls += 1
        assert self._calls < MOST_CALLS, "nothing more is accepted, and the channel goes on"
        self.accepted += bytes(data[: self._at_a_time])
        return min(len(data), self._at_a_time)

    def sendmsg(self, pieces: Sequence[bytes]) -> int:
        return self.send(b"".join(pieces))


class Loop:
    """An event loop on which the socket is writable again at once."""

    def __init__(self) -> None:
        self.writers: list[Any] = []
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def add_writer(self, _fd: int, writable: Any) -> None:
        self.writers.append(writable)

    def remove_writer(self, _fd: int) -> None:
        self.writers.clear()


@pytest.mark.parametrize("at_a_time", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize(
    "pieces",
    [
        [b"abc"],
        [b""],
        [b"", b""],
        [b"", b"abc"],
        [b"abc", b""],
        [b"", b"a", b"", b"bc", b""],
        [b"ab", b"", b"", b"cde"],
    ],
)
def test_every_piece_is_sent_and_an_empty_one_holds_up_nothing(at_a_time: int, pieces: list[bytes]) -> None:
    loop, sock = Loop(), Accepting(at_a_time)
    channel = Channel(loop, sock)  # type: ignore[arg-type]
    channel.on_drained = lambda: None
    channel.outgoing.extend(pieces)
    channel.flush()
    while loop.writers:
        loop.writers[0]()
    assert sock.accepted == b"".join(pieces)
    assert not channel.outgoing


class Ready(Loop):
    """A loop on which what is waited for is there at once, and reported twice; `waited` says for what, and at which file."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[tuple[str, int]] = []

    def add_reader(self, fd: int, readable: Callable[[], None]) -> None:
        self.waited.append(("read", fd))
        readable()
        readable()

    def remove_reader(self, fd: int) -> None:
        self.waited.append(("read no more", fd))

    def add_writer(self, fd: int, writable: Callable[[], None]) -> None:
        self.waited.append(("write", fd))
        writable()
        writable()

    def remove_writer(self, fd: int) -> None:
        self.waited.append(("write no more", fd))


class Peer:
    """A socket at file 7 whose handshake needs these things before it ends, and that then receives this."""

    def __init__(self, *needs: ssl.SSLError, receives: bytes | OSError = b"") -> None:
        self._needs = list(needs)
        self._receives = receives

    def fileno(self) -> int:
        return 7

    def do_handshake(self) -> None:
        if self._needs:
            raise self._needs.pop(0)

    def recv(self, _size: int, _flags: int) -> bytes:
        if isinstance(self._receives, OSError):
            raise self._receives
        return self._receives


def test_a_handshake_waits_until_the_socket_can_be_read_or_written_as_it_requires() -> None:
    loop, peer = Ready(), Peer(ssl.SSLWantWriteError(), ssl.SSLWantReadError(), ssl.SSLWantWriteError())
    asyncio.run(handshake(cast("Any", loop), cast("Any", peer)))
    written, read = [("write", 7), ("write no more", 7)], [("read", 7), ("read no more", 7)]
    assert loop.waited == [*written, *read, *written]


REQUEST = pack(">ihhih", 10, 18, 0, 7, -1)
HALF_OF_LARGE = pack(">ihhih", 90_000_000, 0, 9, 1, -1)


def connected_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.create_connection(server.getsockname(), WITHIN_SECONDS)
        near, _ = server.accept()
    near.setblocking(False)
    return near, far


@pytest.mark.parametrize(
    ("parts", "ends", "sent"),
    [
        ([REQUEST], False, FirstRequest.WHOLE),
        ([REQUEST + REQUEST[:5]], False, FirstRequest.WHOLE),
        ([REQUEST[:2], REQUEST[2:9], REQUEST[9:]], False, FirstRequest.WHOLE),
        ([HALF_OF_LARGE, bytes(16_370)], False, FirstRequest.PART),
        # A size that is refused may have nothing behind it.
        ([b"\xff\xff\xff\xff"], False, FirstRequest.PART),
        ([HALF_OF_LARGE], False, FirstRequest.NONE),
        ([HALF_OF_LARGE, bytes(16_369)], False, FirstRequest.NONE),
        ([REQUEST[:3]], False, FirstRequest.NONE),
        ([REQUEST[:9]], True, FirstRequest.NONE),
        ([], True, FirstRequest.NONE),
    ],
)
@pytest.mark.parametrize("by_tcp", [True, False])
def test_a_first_request_is_waited_for_as_long_as_its_client_sends_and_not_received(
    monkeypatch: pytest.MonkeyPatch, parts: list[bytes], ends: bool, sent: FirstRequest, by_tcp: bool
) -> None:
    """A socket of the system's own kind reports as readable what does not suffice, too."""
    monkeypatch.setattr(channel_module, "SILENT_SECONDS", 0.2)
    near, far = connected_pair() if by_tcp else pair()

    async def scenario() -> FirstRequest:
        waiting = asyncio.ensure_future(sends(asyncio.get_running_loop(), near))
        for part in parts:
            far.send(part)
            await asyncio.sleep(0.02)
        if ends:
            far.close()
        return await waiting

    assert asyncio.run(scenario()) is sent
    if sent:
        near.settimeout(WITHIN_SECONDS)
        whole = b"".join(parts)
        assert near.recv(len(whole), socket.MSG_WAITALL) == whole
        far.send(b"x")
        assert near.recv(1) == b"x", "a byte is enough again"
    near.close()
    far.close()


def test_a_client_that_has_sent_nothing_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "SILENT_SECONDS", 0.01)
    near, far = pair()

    async def scenario() -> FirstRequest:
        waiting = asyncio.ensure_future(sends(asyncio.get_running_loop(), near))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        far.send(REQUEST)
        return await waiting

    assert asyncio.run(scenario())
    near.close()
    far.close()


def test_a_peer_that_resets_its_connection_before_its_first_byte_sends_nothing() -> None:
    loop = Ready()
    assert not asyncio.run(sends(cast("Any", loop), cast("Any", Peer(receives=ConnectionResetError()))))
    assert loop.waited == [("read", 7), ("read no more", 7)]


def test_who_no_longer_waits_for_a_handshake_leaves_no_reader_behind() -> None:
    removed: list[int] = []
    loop: Any = SimpleNamespace(add_reader=lambda _fd, _readable: None, remove_reader=removed.append)

    async def scenario() -> None:
        waiting = asyncio.create_task(handshake(loop, cast("Any", Peer(ssl.SSLWantReadError()))))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(scenario())
    assert removed == [7]


class Events:
    """A loop with at most one reader and one writer of each file."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.writers: dict[int, Callable[[], None]] = {}
        self.soon: list[Callable[[], None]] = []
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def add_reader(self, fd: int, readable: Callable[[], None]) -> None:
        assert fd not in self.readers
        self.readers[fd] = readable

    def remove_reader(self, fd: int) -> None:
        del self.readers[fd]

    def add_writer(self, fd: int, writable: Callable[[], None]) -> None:
        assert fd not in self.writers
        self.writers[fd] = writable

    def remove_writer(self, fd: int) -> None:
        del self.writers[fd]

    def call_soon(self, work: Callable[[], None]) -> None:
        self.soon.append(work)


class Scripted:
    """A socket at file 7 that does these things in turn: it accepts so many bytes of a send, or fails. What it received is in `sent`."""

    def __init__(self, *outcomes: int | OSError, undelivered: int = 0) -> None:
        self._outcomes = list(outcomes)
        self._undelivered = undelivered
        self.sent: list[tuple[bytes, ...]] = []
        self.closed = 0

    def fileno(self) -> int:
        return 7

    def pending(self) -> int:
        return self._undelivered

    def send(self, piece: bytes) -> int:
        return self.sendmsg([piece])

    def sendmsg(self, pieces: Sequence[bytes]) -> int:
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        self.sent.append(tuple(map(bytes, pieces)))
        return outcome

    def recv_into(self, _buffer: bytearray) -> int:
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def close(self) -> None:
        self.closed += 1


def channel_of(sock: object, *, secure: bool = False) -> tuple[Channel, Events, list[object]]:
    """A channel, its loop, and what it has reported: "readable", "drained", or an error."""
    loop, reported = Events(), list[object]()
    channel = Channel(cast("Any", loop), cast("Any", sock))
    channel._secure = secure
    channel.on_readable = lambda: reported.append("readable")
    channel.on_drained = lambda: reported.append("drained")
    channel.on_error = reported.append
    return channel, loop, reported


def test_buffers_beyond_sixty_four_are_small_and_sixteen_large_ones_are_kept() -> None:
    pool = BufferPool()
    first = [pool.take() for _ in range(66)]
    assert [len(one) for one in first[62:]] == [262_144, 262_144, 16_384, 16_384]
    for one in reversed(first):
        pool.put(one)
    assert pool.in_use == 0
    again = [pool.take() for _ in range(18)]
    assert [any(one is known for known in first) for one in again] == [True] * 16 + [False] * 2
    assert {len(one) for one in again} == {262_144}


def test_a_channel_reads_between_resume_and_pause_and_not_once_it_is_closed() -> None:
    channel, loop, reported = channel_of(Scripted())
    channel.pause_reading()
    for _ in range(2):
        channel.resume_reading()
        assert list(loop.readers) == [7]
    loop.readers[7]()
    assert reported == ["readable"]
    for _ in range(2):
        channel.pause_reading()
        assert list(loop.readers) == []
    channel.resume_reading()
    channel.close()
    channel.resume_reading()
    assert list(loop.readers) == []


def test_what_tls_has_decrypted_and_the_system_does_not_report_is_read_in_the_next_turn() -> None:
    channel, loop, reported = channel_of(Scripted(undelivered=1), secure=True)
    channel.read_rest()
    assert loop.soon == [], "it does not read"
    channel.resume_reading()
    (still,) = loop.soon
    still()
    assert reported == ["readable"]
    channel.pause_reading()
    still()
    channel.resume_reading()
    channel.close()
    still()
    assert reported == ["readable"]
    for sock, secure in ((Scripted(), True), (Scripted(undelivered=1), False)):
        channel, loop, _ = channel_of(sock, secure=secure)
        channel.resume_reading()
        assert loop.soon == []


def test_a_peer_that_closes_while_nothing_is_read_is_noticed() -> None:
    near, far = pair()
    channel, _, _ = channel_of(near)
    assert not channel.has_ended_unseen
    far.send(b"x")
    assert not channel.has_ended_unseen
    far.close()
    assert channel.has_ended_unseen
    channel.resume_reading()
    assert not channel.has_ended_unseen, "the next receive shows it"
    channel.pause_reading()
    assert channel.has_ended_unseen
    channel.close()
    assert not channel.has_ended_unseen


def test_what_was_sent_and_not_received_here_is_unread_and_the_end_of_the_stream_is_not() -> None:
    near, far = pair()
    channel, _, _ = channel_of(near)
    assert not channel.has_unread
    far.send(b"xy")
    assert channel.has_unread
    assert channel.receive_into(bytearray(9)) == 2
    assert not channel.has_unread
    far.close()
    assert not channel.has_unread
    channel.close()
    assert not channel.has_unread


def test_what_tls_has_decrypted_is_unread() -> None:
    assert channel_of(Scripted(undelivered=1), secure=True)[0].has_unread


def test_what_a_peer_has_not_taken_changes_while_it_reads_and_not_while_it_does_not() -> None:
    near, far = pair()
    channel, _, _ = channel_of(near)
    assert channel.unaccepted is None, "nothing is to be sent"
    channel.outgoing.append(bytes(50_000_000))
    assert not channel.flush()
    stuck = eventually_equal(lambda: channel.unaccepted)
    assert channel.unaccepted == stuck
    assert stuck is not None
    far.settimeout(WITHIN_SECONDS)
    assert far.recv(100_000)
    assert eventually_equal(lambda: channel.unaccepted) != stuck
    channel.close()
    assert channel.unaccepted is None
    far.close()


def eventually_equal(read: Callable[[], object]) -> object:
    """The value once it is the same twice: the system still moves bytes from one socket to the other."""
    last: list[object] = [read()]

    def is_same() -> bool:
        last.append(read())
        return last[-1] == last[-2]

    eventually(is_same, "the system has moved what it can")
    return last[-1]


@pytest.mark.parametrize("secure", [False, True])
def test_a_receive_is_kept_with_its_time_and_over_tls_a_part_of_a_record_too(secure: bool) -> None:
    channel, loop, _ = channel_of(Scripted(3, ssl.SSLWantReadError(), 2), secure=secure)
    times = []
    for now in (5.0, 7.0, 9.0):
        loop.now = now
        channel.receive_into(bytearray(9))
        times.append(channel.received_at)
    assert times == [5.0, 7.0 if secure else 5.0, 9.0]


def test_received_bytes_are_counted_and_nothing_yet_differs_from_the_end() -> None:
    outcomes = 3, BlockingIOError(), InterruptedError(), ssl.SSLWantReadError(), ssl.SSLWantWriteError(), 2, 0
    channel, _, _ = channel_of(Scripted(*outcomes, ssl.SSLEOFError(), ConnectionResetError()))
    assert [channel.receive_into(bytearray(9)) for _ in range(8)] == [3, -1, -1, -1, -1, 2, 0, 0]
    assert channel.received_bytes == 5
    with pytest.raises(ConnectionResetError):
        channel.receive_into(bytearray(9))


def test_what_a_socket_does_not_accept_is_sent_when_it_is_writable_and_then_reported() -> None:
    sock = Scripted(2, BlockingIOError(), 4)
    channel, loop, reported = channel_of(sock)
    channel.outgoing.extend([b"abc", b"def"])
    assert [channel.flush(), channel.flush()] == [False, False]
    assert (sock.sent, list(loop.writers), reported) == ([(b"abc", b"def")], [7], [])
    loop.writers[7]()
    assert (sock.sent[1:], list(loop.writers), reported) == ([(b"c", b"def")], [], ["drained"])
    assert channel.sent_bytes == 6
    assert channel.flush()
    assert reported == ["drained"], "nothing was left to wait for"


def test_a_send_that_was_accepted_in_part_is_not_tried_again_in_the_same_turn() -> None:
    sock = Scripted(1)
    channel, loop, _ = channel_of(sock)
    channel.outgoing.append(b"abc")
    assert not channel.flush()
    assert (sock.sent, list(channel.outgoing), list(loop.writers)) == ([(b"abc",)], [b"bc"], [7])


def test_a_call_sends_256_pieces_at_most_and_over_tls_one() -> None:
    pieces = [b"x"] * 300
    sock = Scripted(256, 44)
    channel, _, _ = channel_of(sock)
    channel.outgoing.extend(pieces)
    assert channel.flush()
    assert list(map(len, sock.sent)) == [256, 44]
    sock = Scripted(1, 1)
    channel, _, _ = channel_of(sock, secure=True)
    channel.outgoing.extend(pieces[:2])
    assert channel.flush()
    assert sock.sent == [(b"x",), (b"x",)]


def test_an_error_of_a_send_is_reported_and_nothing_more_is_waited_for() -> None:
    error = BrokenPipeError()
    channel, loop, reported = channel_of(Scripted(error))
    channel.outgoing.append(b"abc")
    assert channel.flush()
    assert (reported, list(loop.writers)) == ([error], [])


def test_a_closed_channel_sends_nothing_and_is_closed_once() -> None:
    sock = Scripted(BlockingIOError())
    channel, loop, reported = channel_of(sock)
    channel.resume_reading()
    channel.outgoing.append(b"abc")
    channel.flush()
    for _ in range(2):
        channel.close()
        assert (loop.readers, loop.writers, list(channel.outgoing), sock.closed) == ({}, {}, [], 1)
    channel.outgoing.append(b"abc")
    assert channel.flush()
    assert (list(channel.outgoing), sock.sent, reported) == ([], [], [])


def test_a_broker_is_connected_to_at_the_first_of_its_addresses_that_responds() -> None:
    async def scenario() -> None:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        port, gone = server.sockets[0].getsockname()[1], dead_port()
        loop: Any = asyncio.get_running_loop()
        found: list[int] = []

        async def addresses(host: str, at: int, **kind: object) -> list[Any]:
            assert (host, at, kind) == ("broker", 9092, {"type": socket.SOCK_STREAM})
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", one)) for one in found]

        loop.getaddrinfo = addresses
        with pytest.raises(OSError, match=r"^broker: no address found$"):
            await connected(("broker", 9092), None, None)
        found[:] = [gone]
        with pytest.raises(ConnectionRefusedError):
            await connected(("broker", 9092), None, None)
        found[:] = [gone, port, gone]
        link = await connected(("broker", 9092), None, None)
        assert link.getpeername() == ("127.0.0.1", port)
        assert not link.getblocking()
        assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        link.close()
        server.close()

    asyncio.run(scenario())
