"""A broker's server on loopback: its port, its connections, and the dispatch of their requests.

The port is the broker's from the cluster's start to its end. While the broker is stopped the port stays bound but not listening,
so that clients are refused and no other process can take it.
"""

import asyncio
import socket
from collections.abc import Awaitable
from typing import Final

from rackspan.cluster.context import BrokerContext
from rackspan.cluster.net.connection import Connection, Parts
from rackspan.cluster.net.dispatch import dispatch
from rackspan.wire.framing import Request

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 512


class BrokerServer:
    """Open or closed, at one address. Requests are dispatched to the broker that the server was opened with."""

    def __init__(self) -> None:
        self._broker: BrokerContext  # Set by open(): connections exist only after it.
        self.connections: set[Connection] = set()
        self.frozen = False
        self._socket = _bound_socket(0)
        self._server: asyncio.Server | None = None
        self.address: tuple[str, int] = self._socket.getsockname()

    async def open(self, broker: BrokerContext) -> None:
        self._broker = broker
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), sock=self._socket, backlog=_BACKLOG)

    def close(self) -> None:
        """Close every connection and refuse new ones."""
        self.frozen = False
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

    def freeze(self) -> None:
        """Accept connections, but read no request and write no response."""
        self.frozen = True
        self._balance()

    def thaw(self) -> None:
        self.frozen = False
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
