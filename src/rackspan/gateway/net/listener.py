"""The listener of one broker: accepts clients and connects each to that broker."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable

from rackspan.errors import UsageError
from rackspan.gateway.config import ListenerConfig

log = logging.getLogger(__name__)

_BACKLOG = 1024


class Listener:
    """Bound from its construction to `close`. `accepted` is called with each client's socket."""

    def __init__(
        self,
        node_id: int,
        config: ListenerConfig,
        accepted: Callable[[int, socket.socket], Awaitable[None]],
        *,
        shared: bool = False,
    ) -> None:
        """`shared`: other processes listen at the same port, and the system distributes clients. Errors: UsageError."""
        self.node_id = node_id
        self.config = config
        self._accepted = accepted
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Future[None]] = set()
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._socket.setblocking(False)
            self._socket.bind((config.host, config.port))
            self._socket.listen(_BACKLOG)
        except OSError as error:
            self._socket.close()
            raise UsageError(
                f"the listener of broker {node_id} cannot be at {config.host}:{config.port}: {error.strerror}; "
                f"choose another listen.first.port, or write [brokers.{node_id}]"
            ) from error
        self.port: int = self._socket.getsockname()[1]
        self._loop.add_reader(self._socket.fileno(), self._accept)

    @property
    def advertised(self) -> tuple[str, int]:
        return self.config.advertised_host, self.config.advertised_port or self.port

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                log.warning("the listener of broker %d: %s", self.node_id, error)
                return
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = asyncio.ensure_future(self._accepted(self.node_id, client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Accept no more, and close connections without a session yet. Sessions live on."""
        for task in self._tasks:
            task.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()


def server_context(certificate: str, key: str, client_authorities: str | None) -> ssl.SSLContext:
    """TLS of the listeners; with client authorities every client has to show a certificate of theirs. Errors: UsageError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        if client_authorities is not None:
            context.load_verify_locations(cafile=client_authorities)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        raise UsageError(
            f"listen.tls: {certificate}, {key} or the client authorities cannot be used: {reason}"
        ) from error
    return context
