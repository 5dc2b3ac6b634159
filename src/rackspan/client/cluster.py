"""A connection to a cluster on which all requests together have one deadline, for callers that block.

All bootstrap servers are contacted at once, and the first that responds serves all requests: a server that accepts
connections and never responds costs nothing while another one does. A server that fails later is replaced in the same way,
also by brokers that metadata has named. Nothing is retried: a snapshot must never hang, and reports what it could not read.

The requests are coroutines, because some run side by side; an event loop in a thread runs them, so that a caller may also
start one and work until its response is there.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Any, Final, TypeVar

from rackspan.client.brokers import Address, BrokerConnections, addresses, protocol_warnings
from rackspan.client.config.translation import protocol_of, warnings_about
from rackspan.client.connection import BrokerConnection
from rackspan.client.errors import (
    FAILURES,
    NameLookupTimedOut,
    certificate_refused,
    login_refused,
    no_server_responded,
)
from rackspan.client.login import LoginFailedHere, LoginRefused, login_from
from rackspan.daemon_threads import DaemonThreadLoop
from rackspan.ends import joined_within
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.model.ids import NO_BROKER
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData

T = TypeVar("T")

PROBE_SECONDS: Final = 2.0
"""For a request that a broker responds to from memory, to find out whether it responds at all."""

_GRACE_SECONDS: Final = 1.0
"""How long after the deadline the network thread may be late."""

_SERVERS: Final = "--bootstrap-server"

_MOST_KNOWN: Final = 10
"""Brokers that are contacted beside the bootstrap servers, when the server that served the requests has failed."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach a cluster. `properties` are a Java client's, as --command-config holds them."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 30.0
    """For all requests together."""

    def __post_init__(self) -> None:
        """Errors: UsageError for servers that are no addresses."""
        addresses(_SERVERS, self.bootstrap_servers)

    def property_warnings(self) -> list[str]:
        """Sentences about settings that are ignored."""
        return [f"--command-config: {line}" for line in warnings_about(self.properties)]

    def protocol_warnings(self) -> list[str]:
        """A sentence if the address of a server names another security protocol than the properties."""
        return protocol_warnings(_SERVERS, self.bootstrap_servers, protocol_of(self.properties))


class ClusterConnection:
    """An open connection. Coroutines passed to `run` use `call` and `call_controller`.

    Errors when opened: ClusterUnreachable, ClusterUnauthorized, UsageError.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._bootstrap = addresses(_SERVERS, settings.bootstrap_servers)
        self._settings = settings
        self._login = login_from(settings.properties)
        self._brokers = BrokerConnections(self._login, settings.timeout_seconds)
        self._deadline = time.monotonic() + settings.timeout_seconds
        self._loop = DaemonThreadLoop()
        self._thread = threading.Thread(target=self._run_loop, name="rackspan-client", daemon=True)
        self._is_begun = False
        """Whether the thread runs, or is about to: Ctrl-C may come while `start` waits for it."""
        self._first: BrokerConnection | None = None
        """The connection of the server that responded first."""
        self._first_address: Address = ("", 0)
        self._choosing = asyncio.Lock()

    def __enter__(self) -> "ClusterConnection":
        try:
            # Here, where its errors can be raised: connections then use the same token.
            self._login.fetch_token()
            self._is_begun = True
            self._thread.start()
            self.run(self._first_connection)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._is_begun:
            self._is_begun = False
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            joined_within("the connection to the cluster", self._thread, _GRACE_SECONDS)
        elif self._thread.ident is None and not self._loop.is_closed():
            self._loop.close()

    def _run_loop(self) -> None:
        """Closed by its own thread: to others it may look ended while it starts."""
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _end(self) -> None:
        self._brokers.close()
        if self._first is not None:
            self._first.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._loop.stop()

    @property
    def address(self) -> str:
        """HOST:PORT of the server that responded first."""
        return named(self._first_address)

    def run(self, coroutine: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Run a coroutine on the network thread. Errors: its own; ClusterUnreachable once the deadline has passed."""
        return self.submit(coroutine, *arguments)()

    def submit(self, coroutine: Callable[..., Awaitable[T]], *arguments: object) -> Callable[[], T]:
        """Start a coroutine on the network thread; the returned function waits for its result. Errors of that: as `run`."""

        async def started() -> T:
            return await coroutine(*arguments)

        future = asyncio.run_coroutine_threadsafe(started(), self._loop)

        def result() -> T:
            try:
                return future.result(self.remaining_seconds + _GRACE_SECONDS)
            except TimeoutError:
                if future.done():
                    raise
                raise ClusterUnreachable(
                    f"no broker responded: {self._settings.bootstrap_servers}: nothing within {self._settings.timeout_seconds:g} s"
                ) from None

        return result

    def renew_deadline(self) -> None:
        """Begin the timeout again: for callers that read for long, and for whom each step has the deadline."""
        self._deadline = time.monotonic() + self._settings.timeout_seconds

    @property
    def remaining_seconds(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    # -- for coroutines on the network thread

    async def call(
        self,
        api_key: ApiKey,
        request: WireStruct,
        seconds: float | None = None,
        *,
        broker: int | None = None,
        least: int = 0,
        most: int | None = None,
    ) -> Any:
        """The response of one broker, at its advertised address, or of the server that responded first.

        `least` and `most` are versions of the API. Errors: those of errors.FAILURES.
        """
        try:
            async with asyncio.timeout(self._bounded(seconds)):
                connection = await (self._first_connection() if broker is None else self._brokers.connection(broker))
                response = await connection.send(api_key, request, connection.version(api_key, most, least))
        except TimeoutError as error:
            raise TimeoutError(f"no response to {api_key.name} in time") from error
        if api_key is ApiKey.METADATA:
            self._update_addresses(response)
        return response

    async def call_controller(self, api_key: ApiKey, request: WireStruct) -> Any:
        """Send as Kafka's own clients do: with ZooKeeper only the controller creates; with KRaft any broker forwards the request."""
        known: MetadataResponseData = await self.call(ApiKey.METADATA, MetadataRequestData(topics=()))
        controller = None if known.controller_id == NO_BROKER else known.controller_id
        return await self.call(api_key, request, broker=controller)

    async def replace_silent_server(self) -> None:
        """Replace the server that serves the requests, if it does not respond to a small one."""
        with suppress(*FAILURES):
            await self.call(ApiKey.METADATA, MetadataRequestData(topics=()), PROBE_SECONDS)

    def _bounded(self, seconds: float | None) -> float:
        bounds = (self.remaining_seconds, seconds, self._login.request_seconds)
        return min(bound for bound in bounds if bound is not None)

    def _update_addresses(self, metadata: MetadataResponseData) -> None:
        self._brokers.addresses = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
        self._brokers.close_moved()

    async def _first_connection(self) -> BrokerConnection:
        async with self._choosing:
            if self._first is None or not self._first.is_usable:
                if self._first is not None:
                    self._brokers.leave(self._first)
                self._first = await self._first_to_respond()
            return self._first

    async def _first_to_respond(self) -> BrokerConnection:
        known = islice(self._brokers.addresses.values(), _MOST_KNOWN)
        candidates = dict.fromkeys((*self._bootstrap, *known))
        tasks = {self._loop.create_task(self._responding(address)): address for address in candidates}
        pending = set(tasks)
        first: asyncio.Task[BrokerConnection] | None = None
        try:
            while pending and first is None and self.remaining_seconds > 0:
                done, pending = await asyncio.wait(
                    pending, timeout=self.remaining_seconds, return_when="FIRST_COMPLETED"
                )
                first = next((task for task in done if task.exception() is None), None)
        finally:
            for task in tasks:
                if task is not first:
                    self._give_up(task)
        if first is None:
            errors = {named(address): self._error_of(task, address) for task, address in tasks.items()}
            raise no_server_responded(errors, self._settings.timeout_seconds)
        self._first_address = tasks[first]
        return first.result()

    def _give_up(self, task: "asyncio.Task[BrokerConnection]") -> None:
        if not task.done():
            task.cancel()
        elif task.exception() is None:
            task.result().close()

    def _error_of(self, task: "asyncio.Task[BrokerConnection]", address: Address) -> Exception:
        error = task.exception() if task.done() and not task.cancelled() else None
        if isinstance(error, Exception) and not isinstance(error, TimeoutError):
            return error
        return NameLookupTimedOut() if address[0] in self._loop.unresolved else TimeoutError()

    async def _responding(self, address: Address) -> BrokerConnection:
        """A connection to a server that lists brokers. Errors: those of a refused login or certificate, if that is the cause.

        ApiVersions needs no authentication: a broker that closes the connection after it requires SASL. Before it, over
        TLS, the broker requires a client certificate.
        """
        try:
            connection = await BrokerConnection.open(*address, self._login, self.remaining_seconds)
        except LoginFailedHere:
            raise
        except LoginRefused as error:
            raise login_refused(self._login.mechanism) from error
        except OSError as error:
            if self._login.tls is None:
                raise
            raise certificate_refused(error, self._login) from None
        try:
            metadata = await connection.send(ApiKey.METADATA, MetadataRequestData(topics=()))
            if not metadata.brokers:
                raise ClusterRequestFailed("it lists no broker yet; is the cluster starting?")
        except ConnectionError as error:
            # The connection has ended.
            raise login_refused(self._login.mechanism) from error
        except BaseException:
            connection.close()
            raise
        self._update_addresses(metadata)
        return connection


def named(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
