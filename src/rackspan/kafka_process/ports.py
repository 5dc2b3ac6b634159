"""Loopback ports that are reserved from before a broker starts until its cluster is closed.

A free port can be taken before the broker binds it: by another broker's outgoing connection, or by the next test run. So
ports come from below the range that the kernel uses for outgoing connections, and on Linux each is held by a socket that
is bound and never listens: with SO_REUSEADDR a broker can listen on it beside the holder, and no other process can bind
it first. The port of a stopped broker refuses connections and stays reserved.
"""

import random
import socket
import sys
from types import TracebackType
from typing import Final

from rackspan.errors import UsageError

LOOPBACK: Final = "127.0.0.1"
_RANGE: Final = range(20_000, 32_000)
"""Linux starts ephemeral ports at 32768, macOS and the BSDs at 49152."""

_HELD_WHILE_USED: Final = sys.platform == "linux"
"""Elsewhere two sockets cannot share an address this way, so a port is released when its broker starts."""

_TRIES: Final = 200


class HeldPorts:
    """Ports on loopback, held until `close`."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._sockets: dict[int, socket.socket] = {}

    def take(self) -> int:
        """Reserve one more port. Errors: UsageError when none is free."""
        for _ in range(_TRIES):
            port = self._rng.choice(_RANGE)
            if port not in self._sockets and self._hold(port):
                return port
        raise UsageError(
            f"no free port on {LOOPBACK} between {_RANGE.start} and {_RANGE.stop} in {_TRIES} tries; stop what holds them"
        )

    def release_for_use(self, port: int) -> None:
        """Release a port so that a broker can bind it. Does nothing where both can hold it."""
        if not _HELD_WHILE_USED and port in self._sockets:
            self._sockets.pop(port).close()

    def close(self) -> None:
        for held in self._sockets.values():
            held.close()
        self._sockets.clear()

    def __enter__(self) -> "HeldPorts":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _hold(self, port: int) -> bool:
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            held.bind((LOOPBACK, port))
        except OSError:
            held.close()
            return False
        # Bound exclusively first and shared afterwards, so that a port in use is never reserved, even in a race.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sockets[port] = held
        return True
