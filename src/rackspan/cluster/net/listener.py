"""A broker's port on loopback: its own from the cluster's start to its end, whether anyone listens or not.

While nobody listens the port stays bound, so that clients are refused and no other process can take it.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 512


class Listener:
    """Open or closed, at one address."""

    def __init__(self, protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        self._protocol = protocol
        self._socket = _bound(0)
        self._server: asyncio.Server | None = None
        self.address: tuple[str, int] = self._socket.getsockname()

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=self._socket, backlog=_BACKLOG)

    def close(self) -> None:
        """Refuse connections from now on; those that are open are the broker's to close."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket = _bound(self.address[1])

    def release(self) -> None:
        """Give the port back."""
        if self._server is not None:
            self._server.close()
        self._socket.close()


def _bound(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((LOOPBACK, port))
    return bound
