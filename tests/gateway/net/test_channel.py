"""A channel sends all its pieces, however many bytes the socket accepts at a time; a handshake waits for what it has to."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from rackspan.gateway.net.channel import Channel, handshake, sends

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
    """A loop on which what is waited for is there at once; `waited` says for what, and at which file."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[tuple[str, int]] = []

    def add_reader(self, fd: int, readable: Callable[[], None]) -> None:
        self.waited.append(("read", fd))
        readable()

    def remove_reader(self, fd: int) -> None:
        self.waited.append(("read no more", fd))

    def add_writer(self, fd: int, writable: Callable[[], None]) -> None:
        self.waited.append(("write", fd))
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


@pytest.mark.parametrize(("receives", "sent"), [(b"x", True), (b"", False), (ConnectionResetError(), False)])
def test_a_peer_that_closes_or_resets_its_connection_before_its_first_byte_sends_nothing(
    receives: bytes | OSError, sent: bool
) -> None:
    loop = Ready()
    assert asyncio.run(sends(cast("Any", loop), cast("Any", Peer(receives=receives)))) is sent
    assert loop.waited == [("read", 7), ("read no more", 7)]
