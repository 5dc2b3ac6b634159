"""Prometheus metrics and health pages over HTTP.

`MetricsEndpoint` runs on the caller's event loop, `MetricsServer` in a thread of its own. A request is limited in size and time, connections
in number and metrics in their share of the time, so that no client holds up others. The metrics are those of a function that the caller passes.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from rackspan.daemon_threads import run
from rackspan.ends import joined_within
from rackspan.errors import UsageError

log = logging.getLogger(__name__)

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_REQUEST_BYTES: Final = 4096
_REQUEST_SECONDS: Final = 5.0
_MOST_CONNECTIONS: Final = 24
_ACCEPTED_AT_ONCE: Final = 16
"""Connections of which the oldest is closed for a new one, and those that are accepted before that: open files are the whole process's."""

_METRICS_SHARE: Final = 0.2
"""Of the time: thousands of metrics take tens of milliseconds, and a request for them 20 bytes."""

_REASONS: Final = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}
_TEXT: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"

Collect: TypeAlias = Callable[[], Iterable[Family]]
"""Called at each scrape."""

Page: TypeAlias = Callable[[], tuple[int, str]]
"""Status and text of one path, called at each request."""


class MetricsEndpoint:
    """Listens from `open` until `close` on the running event loop: /metrics, and one path for each of `pages`."""

    def __init__(
        self, setting: str, address: tuple[str, int], collect: Collect, pages: Mapping[str, Page] = MappingProxyType({})
    ) -> None:
        """`setting` is the name of the address in error messages."""
        self._setting = setting
        self._host, self._port = address
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collecting(collect))
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], None] = {}
        """The work of each connection, the oldest first."""
        self._next_metrics: asyncio.Task[bytes] | None = None
        """Metrics that are not collected yet, for all requests before that."""
        self._collected_until = 0.0
        """Before which none are collected again."""
        self.address = f"{self._host}:{self._port}"

    async def open(self) -> None:
        """Errors: UsageError."""
        try:
            self._server = await asyncio.start_server(
                self._accept, self._host, self._port, limit=_REQUEST_BYTES, backlog=_ACCEPTED_AT_ONCE
            )
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            raise UsageError(
                f"{self._setting} {self.address}: {reason}; choose another port, 0 for a free one"
            ) from error
        self.address = f"{self._host}:{self._server.sockets[0].getsockname()[1]}"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for work in (*self._serving, *filter(None, (self._next_metrics,))):
            work.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= _MOST_CONNECTIONS:
            next(iter(self._serving)).cancel()
        serving = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving[serving] = None
        serving.add_done_callback(self._serving.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                line = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                writer.write(await self._response(line.decode("latin-1").split(" ")[1:2]))
                writer.close()
                await writer.wait_closed()
        except (OSError, ValueError):
            pass
        except asyncio.CancelledError:
            # The server ends, or a new client takes its place.
            pass
        finally:
            # Not closed: what a client does not read would stay.
            writer.transport.abort()

    async def _response(self, path: list[str]) -> bytes:
        if path == ["/metrics"]:
            return _http(200, await self._metrics(), _METRICS)
        page = self._pages.get(path[0]) if path else None
        if page is None:
            return _http(404, f"{', '.join([*self._pages, '/metrics'])}\n".encode())
        status, text = page()
        return _http(status, text.encode())

    async def _metrics(self) -> bytes:
        """The metrics as of now or later. Requests that wait for them share them."""
        if self._next_metrics is None:
            self._next_metrics = asyncio.get_running_loop().create_task(self._collect())
        return await asyncio.shield(self._next_metrics)

    async def _collect(self) -> bytes:
        time = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, self._collected_until - time()))
        self._next_metrics, begun_at = None, time()
        try:
            return generate_latest(self._registry)
        finally:
            self._collected_until = time() + (time() - begun_at) * (1 / _METRICS_SHARE - 1)


class MetricsServer:
    """Serves /metrics in a thread from its construction until `close`. `listen` is HOST:PORT, port 0 for any free one.

    Off loopback a warning is logged: topics and racks are shown without a login.
    """

    def __init__(self, listen: str, collect: Collect) -> None:
        """Errors: UsageError."""
        host, port = listen_address(listen)
        endpoint = MetricsEndpoint("metrics listener", (host, port), collect)
        opened: Future[Callable[[], object]] = Future()
        self._thread = threading.Thread(
            target=lambda: run(_serve_until_closed(endpoint, opened)), name="rackspan-metrics", daemon=True
        )
        self._thread.start()
        self._end = opened.result()
        self.address = endpoint.address
        if host not in _LOOPBACK:
            log.warning(
                "metrics at %s: served without a login to every machine that reaches this address; let only the "
                "operators' network reach it",
                self.address,
            )

    def __enter__(self) -> "MetricsServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._thread.is_alive():
            self._end()
            joined_within(f"the metrics listener {self.address}", self._thread)


async def _serve_until_closed(endpoint: MetricsEndpoint, opened: "Future[Callable[[], object]]") -> None:
    """`opened` gets the function that ends it, or the error of `open`."""
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    try:
        await endpoint.open()
    except BaseException as error:
        opened.set_exception(error)
        return
    opened.set_result(lambda: loop.call_soon_threadsafe(closed.set))
    await closed.wait()
    endpoint.close()


def listen_address(listen: str) -> tuple[str, int]:
    """Host and port. Errors: UsageError for text that is no address."""
    host, _, port = listen.rpartition(":")
    if not host:
        raise UsageError(
            f"metrics listener {listen!r}: names no address; give 127.0.0.1:PORT, or 0.0.0.0:PORT for every address"
        )
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"metrics listener {listen!r}: {port!r} is not a port; give 127.0.0.1:PORT, 0 for a free one")
    return host.removeprefix("[").removesuffix("]"), int(port)


class _Collecting(Collector):
    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Family]:
        return self._collect()


def _http(status: int, body: bytes, kind: str = _TEXT) -> bytes:
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
