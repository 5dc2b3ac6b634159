"""Loopback ports that stay ours from before a broker starts until its cluster is closed.

A port that is merely found free can be taken before the broker binds it: by another broker's outgoing connection, or by
the next test run. So ports come from below the range that the kernel gives to outgoing connections, and on Linux each is
held by a socket that is bound and never listens: the kernel lets a broker that asks to reuse the address listen beside
it, and keeps everybody else away. A stopped broker's port refuses connections and is still its own.
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
"""Elsewhere two sockets cannot share an address this way, so a port is let go when its broker starts."""

_TRIES: Final = 200


class HeldPorts:
    """Ports on loopback, held until `close`."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._sockets: dict[int, socket.socket] = {}

    def take(self) -> int:
        """One more free port. Errors: UsageError when the machine has none left to give."""
        for _ in range(_TRIES):
            port = self._rng.choice(_RANGE)
            if port not in self._sockets and self._hold(port):
                return port
        raise UsageError(
            f"no free port on {LOOPBACK} between {_RANGE.start} and {_RANGE.stop} in {_TRIES} tries; stop what holds them"
        )

    def release_for_use(self, port: int) -> None:
        """Let a broker bind it. Nothing to do where both can hold it."""
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
        # Bound alone first, shared afterwards: whoever else holds it, this very race included, keeps us out.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sockets[port] = held
        return True
