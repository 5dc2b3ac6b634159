"""The listeners of a gateway, one for each broker: they accept clients."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

from rackspan.errors import MalformedRequest, UsageError
from rackspan.gateway.config import GatewayConfig, ListenerConfig
from rackspan.gateway.upstream.cluster import UpstreamCluster

log = logging.getLogger(__name__)

_BACKLOG: Final = 1024

_ACCEPTED_AT_ONCE: Final = 4
"""Clients in one turn of the event loop: those that are connected are served between them."""

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_EXHAUSTED_SECONDS: Final = 0.5
"""Until a listener that lacked files or memory accepts again."""

Accept = Callable[[int, socket.socket], Coroutine[Any, Any, None] | None]
"""Work that connects a client; None if it is turned away."""


class Listener:
    """Bound from its construction to `close`. `accepted` is called with each client's socket."""

    def __init__(
        self,
        broker: int,
        config: ListenerConfig,
        accepted: Accept,
        *,
        shared: bool = False,
    ) -> None:
        """`shared`: other processes listen at the same port, and the system distributes clients. Errors: UsageError."""
        self.broker = broker
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
                f"the listener of broker {broker} cannot be at {config.host}:{config.port}: {error.strerror}; "
                f"choose another listen.first.port, or write [brokers.{broker}]"
            ) from error
        self.port: int = self._socket.getsockname()[1]
        self._fd = self._socket.fileno()
        self._listen()

    def _listen(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._fd, self._accept)

    @property
    def advertised(self) -> tuple[str, int]:
        return self.config.advertised_host, self.config.advertised_port or self.port

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                log.warning("the listener of broker %d: %s", self.broker, error)
                if error.errno in _EXHAUSTED:
                    # The socket stays readable: each turn of the event loop would try again, and log that.
                    self._loop.remove_reader(self._fd)
                    self._loop.call_later(_EXHAUSTED_SECONDS, self._listen)
                return
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            work = self._accepted(self.broker, client)
            if work is not None:
                task = self._loop.create_task(work)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Accept no more, and close connections without a session yet. Sessions continue."""
        for task in self._tasks:
            task.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._fd)
            self._socket.close()


class Listeners:
    """One listener for each broker of the cluster, opened when the broker is first known."""

    def __init__(
        self, config: GatewayConfig, cluster: UpstreamCluster, accept: Accept, *, shared: bool = False
    ) -> None:
        """`accept` is called with each client's socket. `shared`: other processes listen at the same ports."""
        self.config = config
        self.by_broker: dict[int, Listener] = {}
        self._cluster = cluster
        self._accept = accept
        self._shared = shared

    def open(self) -> None:
        """Listen for every broker. Errors: UsageError."""
        for broker in self._cluster.by_id:
            self._listener(broker)

    @property
    def bootstrap_servers(self) -> str:
        """The advertised addresses, for clients."""
        return ",".join("{}:{}".format(*self.by_broker[broker].advertised) for broker in sorted(self.by_broker))

    def advertised(self, broker: int, host: str, port: int) -> tuple[str, int]:
        """Where clients find a broker, whose own address a response names. Errors: MalformedRequest."""
        self._cluster.record_from_response(broker, host, port)
        try:
            return self._listener(broker).advertised
        except UsageError as error:
            raise MalformedRequest(f"a response names broker {broker}: {error}") from error

    def follow_brokers(self) -> None:
        """After a change of the brokers or of the config: listen for new brokers, and not for those that never registered."""
        if not self.by_broker:
            # Still starting: clients may come when everything is read.
            return
        for broker in self._cluster.by_id:
            try:
                self._listener(broker)
            except UsageError as error:
                log.error("%s", error)  # The message says everything.
        for broker in [broker for broker in self.by_broker if not self._cluster.was_registered(broker)]:
            # Some response named it; the cluster's metadata never did.
            self.by_broker.pop(broker).close()

    @property
    def missing(self) -> list[int]:
        """Registered brokers without a listener, once there are listeners: no response that names one reaches a client."""
        known = [broker for broker in self._cluster.by_id if self._cluster.was_registered(broker)]
        return sorted({*known} - self.by_broker.keys()) if self.by_broker else []

    def refuse_moved(self, config: GatewayConfig) -> None:
        """Errors: UsageError for a config that moves a listener, or advertises it elsewhere: clients are there already."""
        for broker, listener in self.by_broker.items():
            if config.listener(broker) != listener.config:
                raise UsageError(f"the listener of broker {broker} cannot change while the gateway runs; restart it")

    def _listener(self, broker: int) -> Listener:
        listener = self.by_broker.get(broker)
        if listener is None:
            listener = Listener(broker, self.config.listener(broker), self._accept, shared=self._shared)
            self.by_broker[broker] = listener
            log.info(
                "broker %d: listening at %s:%d, advertised as %s:%d",
                broker,
                listener.config.host,
                listener.port,
                *listener.advertised,
            )
        return listener

    def close(self) -> None:
        """Accept no more clients. Sessions continue."""
        for listener in self.by_broker.values():
            listener.close()
