"""A connection to a cluster on which all requests together have one deadline.

kafka-python's own admin calls retry without a bound and drop the error codes of single resources. A snapshot must never
hang, and must report what it could not read. So this module uses kafka-python's connections and request classes directly,
and is the only one that depends on them.

All bootstrap servers are contacted at once, and the first that responds serves all requests: a server that accepts
connections and never responds costs nothing while another one does. Nothing is retried.
"""

import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, TypeVar

from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from rackspan.errors import ClusterUnreachable, UsageError
from rackspan.sources.client_config.translation import kafka_python_settings, presents_certificate
from rackspan.sources.live import error_messages

T = TypeVar("T")

_LARGEST_RESPONSE_BYTES: Final = 1_000_000_000
"""A million partitions take a tenth of it; and "HTTP" read as a length, 1.2 GB, is refused at once."""

_PIPELINED: Final = 1_000
"""Requests in flight on a connection; kafka-python fails those beyond, so the limit is above any use."""

_GRACE_SECONDS: Final = 1.0
"""How long after the deadline the network thread may still be busy, as in a DNS lookup, before it is abandoned."""

_PAUSE_SECONDS: Final = 0.02

_READ_BYTES: Final = 1 << 18
_READS: Final = 32
"""In a row, before other connections have their turn."""

_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\s:,\[\]]+)(:\d{1,5})?")
"""The port may be left out; kafka-python then uses 9092."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach a cluster. `properties` are a Java client's, as --command-config holds them."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 30.0
    """For all requests together."""


class _LargeReadsManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python publishes no types
    """Connections that receive by the quarter megabyte: a large fetch takes a system call for every 4 KB in kafka-python."""

    async def _build_transport(self, *arguments: Any, **more: Any) -> Any:
        transport = await super()._build_transport(*arguments, **more)
        own = transport._sock_recv

        def receive() -> tuple[bytes, Exception | None]:
            parts: list[bytes] = []
            with suppress(OSError):
                while len(parts) < _READS and (part := transport._sock.recv(_READ_BYTES)):
                    parts.append(part)
            # kafka-python has a case for the end and for each error, and both come again.
            rest, error = own() if len(parts) < _READS else (b"", None)
            return b"".join([*parts, rest]), error

        transport._sock_recv = receive
        return transport


class ClusterConnection:
    """An open connection. Coroutines passed to `run` use `send`, `send_to_broker`, `start` and `sleep`.

    Errors when opened: ClusterUnreachable, ClusterUnauthorized, UsageError.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        _check_addresses(settings.bootstrap_servers)
        self._settings = settings
        self._deadline = time.monotonic() + settings.timeout_seconds
        client = kafka_python_settings(settings.properties)
        self._tokens = client.get("sasl_oauth_token_provider")
        self._mechanism = client.get("sasl_mechanism") if "SASL" in client.get("security_protocol", "") else None
        self._tls = "ssl_context" in client
        self._presents_certificate = presents_certificate(settings.properties)
        self._net = NetworkSelector(client_id=client.get("client_id", "rackspan"))
        self._manager = _LargeReadsManager(self._net, **(_defaults(settings) | client))
        self._first: Any = None
        """The connection of the server that responded first."""

    def __enter__(self) -> "ClusterConnection":
        if self._tokens is not None:
            # Here, where its errors can be raised: connections then use the same token.
            self._tokens.token()
        self._net.start()
        try:
            self.run(self._open)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        closed = threading.Event()
        self._net.call_soon_threadsafe(self._manager.close)
        self._net.call_soon_threadsafe(closed.set)
        # A thread that hangs in a DNS lookup cannot be stopped; it is a daemon thread, and is abandoned.
        if closed.wait(_GRACE_SECONDS):
            self._net.stop()
            self._net.close()

    @property
    def address(self) -> str:
        """HOST:PORT of the bootstrap server that responded first."""
        node = self._manager.cluster.broker_metadata(self._first.node_id)
        return f"{node.host}:{node.port}"

    def run(self, coroutine: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Run a coroutine on the network thread. Errors: its own; ClusterUnreachable once the deadline has passed."""
        return self.submit(coroutine, *arguments)()

    def submit(self, coroutine: Callable[..., Awaitable[T]], *arguments: object) -> Callable[[], T]:
        """Start a coroutine on the network thread; the returned function waits for its result. Errors of that: as `run`."""
        done = threading.Event()
        future = self._net.call_soon_with_future(coroutine, *arguments)
        future.add_both(lambda _: done.set())

        def result() -> T:
            if not done.wait(self.remaining_seconds + _GRACE_SECONDS):
                raise ClusterUnreachable(
                    error_messages.no_response(self._settings.bootstrap_servers, self._settings.timeout_seconds)
                )
            if future.exception is not None:
                raise future.exception
            value: T = future.value
            return value

        return result

    def renew_deadline(self) -> None:
        """Begin the timeout again: for callers that read for long, and for whom each step has the deadline."""
        self._deadline = time.monotonic() + self._settings.timeout_seconds

    def update_addresses(self, metadata: Any) -> None:
        """Take the brokers' addresses from a Metadata response of kafka-python."""
        self._net.call_soon_threadsafe(lambda: self._manager.cluster.update_metadata(metadata))

    # -- for coroutines on the network thread

    @property
    def remaining_seconds(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def start(self, coroutine: Callable[..., Awaitable[Any]], *arguments: object) -> Any:
        """Start a coroutine concurrently; await the returned future for its result."""
        return self._net.call_soon_with_future(coroutine, *arguments)

    async def send(self, request: Any, seconds: float | None = None) -> Any:
        """Send a request to the bootstrap server that responded first. Errors: kafka.errors.KafkaError."""
        return await self._exchange(self._first, request, self._bounded(seconds))

    async def send_to_broker(self, broker_id: int, request: Any, seconds: float | None = None) -> Any:
        """Send a request to one broker, at its advertised address. Errors: kafka.errors.KafkaError."""
        bound = self._bounded(seconds)
        connection = self._connection(broker_id, bound)
        await self._manager.wait_for(connection.init_future, bound * 1000)
        return await self._exchange(connection, request, bound)

    async def sleep(self, seconds: float) -> None:
        """Sleep without blocking other coroutines on the network thread."""
        await self._net.sleep(seconds)

    def _bounded(self, seconds: float | None) -> float:
        return self.remaining_seconds if seconds is None else min(seconds, self.remaining_seconds)

    def _connection(self, node_id: int | str, seconds: float) -> Any:
        return self._manager.get_connection(
            node_id,
            timeout_ms=seconds * 1000,
            pop_on_close=False,
            refresh_metadata_on_err=False,
            reset_backoff_on_connect=False,
        )

    async def _exchange(self, connection: Any, request: Any, seconds: float) -> Any:
        until = time.monotonic() + seconds
        while connection.paused and time.monotonic() < until:  # The cluster throttles us by a quota.
            await self._net.sleep(_PAUSE_SECONDS)
        bound = max(0.001, until - time.monotonic()) * 1000
        return await self._manager.wait_for(connection.send_request(request, request_timeout_ms=bound), bound)

    async def _open(self) -> None:
        race = _BootstrapRace(len(self._manager.cluster.bootstrap_brokers()))
        for broker in self._manager.cluster.bootstrap_brokers():
            self.start(self._connect, broker.node_id, race)
        while not race.is_decided and self.remaining_seconds > 0:
            await self._net.sleep(_PAUSE_SECONDS)
        if race.winner is None:
            raise error_messages.no_server_responded(self._errors_by_address(race), self._settings.timeout_seconds)
        self._first, brokers = race.winner
        self._manager.cluster.update_metadata(brokers)

    async def _connect(self, node_id: str, race: "_BootstrapRace") -> None:
        connection = self._connection(node_id, self.remaining_seconds)
        try:
            await self._manager.wait_for(connection.init_future, self.remaining_seconds * 1000)
            brokers = await self._exchange(connection, MetadataRequest(topics=[]), self.remaining_seconds)
            if not brokers.brokers:
                raise KafkaError("it lists no broker yet; is the cluster starting?")
        except Exception as error:
            race.failed(node_id, self._explained(error, connection.broker_version_data is not None))
        else:
            race.responded(connection, brokers)

    def _explained(self, error: Exception, versions_received: bool) -> Exception:
        """`error`, or the error of a refused login or certificate where that is the cause.

        ApiVersions needs no authentication: a broker that closes the connection after it requires SASL. Before it, over
        TLS, the broker requires a client certificate.
        """
        if versions_received:
            return error_messages.login_refused(error, self._mechanism)
        return error_messages.certificate_refused(error, self._presents_certificate) if self._tls else error

    def _errors_by_address(self, race: "_BootstrapRace") -> dict[str, Exception]:
        """The error of each bootstrap server, by its address."""
        timeout = KafkaTimeoutError()
        nodes = self._manager.cluster.bootstrap_brokers()
        errors = {f"{node.host}:{node.port}": race.errors.get(node.node_id, timeout) for node in nodes}
        # kafka-python shuffles the servers; messages list them in the order given.
        return dict(sorted(errors.items(), key=lambda item: self._settings.bootstrap_servers.find(item[0])))


class _BootstrapRace:
    """The bootstrap server that responded first, and the errors of the others."""

    def __init__(self, servers: int) -> None:
        self._servers = servers
        self.errors: dict[str, Exception] = {}
        self.winner: tuple[Any, Any] | None = None

    @property
    def is_decided(self) -> bool:
        return self.winner is not None or len(self.errors) == self._servers

    def failed(self, node_id: str, error: Exception) -> None:
        self.errors[node_id] = error

    def responded(self, connection: Any, brokers: Any) -> None:
        self.winner = self.winner or (connection, brokers)


def _check_addresses(bootstrap_servers: str) -> None:
    for address in bootstrap_servers.split(","):
        if not _ADDRESS.fullmatch(address.strip()):
            raise UsageError(f"--bootstrap-server {bootstrap_servers!r}: {address!r} is not of the form HOST:PORT")


def _defaults(settings: ConnectionSettings) -> dict[str, Any]:
    return {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": "rackspan",
        "request_timeout_ms": int(settings.timeout_seconds * 1000),
        "receive_message_max_bytes": _LARGEST_RESPONSE_BYTES,
        "max_in_flight_requests_per_connection": _PIPELINED,
    }
