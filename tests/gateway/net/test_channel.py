"""A channel sends all its pieces, however many bytes the socket accepts at a time."""

from collections.abc import Sequence
from typing import Any

import pytest

from rackspan.gateway.net.channel import Channel

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
