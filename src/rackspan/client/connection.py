"""A connection to one broker: TLS, SASL, the versions both sides have, requests in a pipeline, responses in their order."""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar, cast

from rackspan.client.login import SASL_AUTHENTICATE, Login, LoginRefused, log_in
from rackspan.errors import ClusterRequestFailed, MalformedRequest
from rackspan.kafka_bytes import NO_TAGS, ByteReader, int16, int32, string
from rackspan.model import INT32_MAX
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import read_response, write_request
from rackspan.wire.framing import FrameBuffer
from rackspan.wire.framing import Request as Frame
from rackspan.wire.messages.api_versions import ApiVersionsRequestData, ApiVersionsResponseData
from rackspan.wire.messages.base import WireStruct

CONNECT_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 5.0
MAX_RESPONSE_BYTES: Final = 1_000_000_000
"""A million partitions take a tenth of it; and "HTTP" read as a length, 1.2 GB, is refused at once."""

USED_OF_LIFETIME: Final = 0.85
"""The part of a login's lifetime after which no request is sent any more. Kafka's own clients log in again after as much (KIP-368)."""

_CORRELATION_BYTES: Final = 4

T = TypeVar("T")


class UnsupportedVersion(ClusterRequestFailed):
    """The broker has no version of an API that the request can be sent in."""

    def __init__(self, api_key: ApiKey, message: str) -> None:
        super().__init__(message)
        self.api_key = api_key


class OtherProtocol(ConnectionResetError):
    """The other side sent bytes that no Kafka broker sends."""


class BrokerConnection(asyncio.BufferedProtocol):
    """Open until `close` or until the broker ends it; then requests raise ConnectionError."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._frames = FrameBuffer(MAX_RESPONSE_BYTES)
        self._transport: asyncio.Transport
        self._waiting: deque[tuple[int, Callable[[Frame], Any], asyncio.Future[Any]]] = deque()
        """Correlation id of each request without a response, and what reads its response."""
        self._correlation = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._loop = asyncio.get_running_loop()
        self._used_at = self._loop.time()
        self._expires_at: float | None = None
        self.closed = False

    @classmethod
    async def open(cls, host: str, port: int, login: Login, seconds: float = CONNECT_SECONDS) -> "BrokerConnection":
        """Connect, request ApiVersions, which needs no login, then log in. Errors: OSError, LoginRefused."""
        async with asyncio.timeout(seconds):
            connection = await cls._connect(host, port, login)
            try:
                await connection._request_versions()
                await connection._log_in(host)
            except (ConnectionError, MalformedRequest) as error:
                connection.close()
                if connection._versions and login.sasl is not None:
                    # A broker may close the connection in place of a response that refuses the login.
                    raise LoginRefused(f"{host}: the connection ended during the login: {error}") from error
                raise
            except BaseException:
                connection.close()
                raise
        return connection

    @classmethod
    async def _connect(cls, host: str, port: int, login: Login) -> "BrokerConnection":
        server_name = host if login.tls is not None else None
        try:
            async with asyncio.timeout(login.connect_seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    partial(cls, login), host, port, ssl=login.tls, server_hostname=server_name
                )
        except ConnectionResetError:
            if login.tls is None:
                raise
            # asyncio's word for a peer that closes the connection during the TLS handshake.
            raise ssl.SSLEOFError("EOF occurred in violation of protocol") from None
        return connection

    async def _log_in(self, host: str) -> None:
        _, newest = self.offered(SASL_AUTHENTICATE) or (0, 0)
        began_at = self._loop.time()
        lifetime_seconds = await log_in(host, self._login, partial(self._exchange, flexible=False), min(newest, 1))
        if lifetime_seconds is not None:
            self._expires_at = began_at + lifetime_seconds * USED_OF_LIFETIME

    def version(self, api_key: ApiKey, most: int | None = None, least: int = 0) -> int:
        """The highest version of an API that both sides have. Errors: UnsupportedVersion."""
        lowest, offered = self._versions.get(api_key, (0, -1))
        ours = VERSIONS[api_key]
        highest = min(offered, ours.stop - 1 if most is None else most)
        needed = max(least, ours.start)
        if highest < max(lowest, needed):
            raise UnsupportedVersion(
                api_key,
                f"the broker offers {api_key.name} in versions {lowest} to {offered}, rackspan needs {needed} to {ours.stop - 1}",
            )
        return highest

    def offered(self, api_key: int) -> tuple[int, int] | None:
        """The broker's own lowest and highest version of an API."""
        return self._versions.get(api_key)

    @property
    def is_usable(self) -> bool:
        """Whether the next request can expect a response: nothing before it is overdue, its login holds, and it is not idle for too long."""
        if self.is_over or (self._waiting and self._waiting[0][2].done()):
            return False
        idle_seconds = self._login.idle_seconds
        return idle_seconds is None or bool(self._waiting) or self._loop.time() - self._used_at < idle_seconds

    @property
    def is_over(self) -> bool:
        """Whether it is closed, or the broker closes it at the next request, since its login has expired or is about to."""
        return self.closed or (self._expires_at is not None and self._loop.time() >= self._expires_at)

    def was_left_for(self, seconds: float) -> bool:
        """Whether nobody waits for a response, and nothing has been sent or received for so long."""
        waits = any(not response.done() for _, _, response in self._waiting)
        return not waits and self._loop.time() - self._used_at > seconds

    def send(self, api_key: ApiKey, request: WireStruct, version: int | None = None) -> "asyncio.Future[Any]":
        """The response, later. Errors of the future: ConnectionError, MalformedRequest."""
        used = self.version(api_key) if version is None else version
        correlation = self._next_correlation()
        parts = write_request(api_key, used, correlation, self._login.client_id, request)
        return self._sent(correlation, b"".join(parts), partial(read_response, api_key, used))

    async def call(
        self, api_key: ApiKey, request: WireStruct, version: int | None = None, seconds: float = REQUEST_SECONDS
    ) -> Any:
        """The response. A connection without a response in so long is closed. Errors: TimeoutError, ConnectionError, MalformedRequest."""
        return await self._within(seconds, api_key.name, self.send(api_key, request, version))

    async def call_raw(self, api_key: int, version: int, body: bytes, seconds: float = REQUEST_SECONDS) -> ByteReader:
        """The body of the response to a request that wire/ has no class for, in a flexible version. Errors: as of `call`."""
        return cast(
            "ByteReader", await self._within(seconds, f"API key {api_key}", self._exchange(api_key, version, body))
        )

    async def _within(self, seconds: float, name: str, response: Any) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await response
        except TimeoutError:
            self.close()
            raise TimeoutError(f"no response to {name} in {seconds:g} s") from None

    def _exchange(
        self, api_key: int, version: int, body: bytes, *, flexible: bool = True
    ) -> "asyncio.Future[ByteReader]":
        correlation = self._next_correlation()
        tags = NO_TAGS if flexible else b""
        header = int16(api_key) + int16(version) + int32(correlation) + string(self._login.client_id) + tags
        return self._sent(correlation, header + body, _after_tags if flexible else _after_correlation)

    def _next_correlation(self) -> int:
        self._correlation = self._correlation + 1 & INT32_MAX
        return self._correlation

    def _sent(self, correlation: int, body: bytes, read: Callable[[Frame], Any]) -> "asyncio.Future[Any]":
        if self.closed:
            raise ConnectionResetError("the connection to the broker is closed")
        response: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((correlation, read, response))
        self._used_at = self._loop.time()
        self._transport.write(len(body).to_bytes(4, "big") + body)
        return response

    async def _request_versions(self) -> None:
        response: ApiVersionsResponseData = await self.send(ApiKey.API_VERSIONS, ApiVersionsRequestData(), 0)
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    def close(self) -> None:
        self._end(ConnectionResetError("the broker closed the connection"))

    def _end(self, reason: Exception) -> None:
        if self.closed:
            return
        self.closed = True
        self._transport.abort()
        for _, _, response in self._waiting:
            if not response.done():
                response.set_exception(reason)
                # Read here, so that a response that nobody waits for any more is no warning.
                response.exception()
        self._waiting.clear()

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._frames.next_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.received(nbytes):
                self._received(frame)
        except MalformedRequest as error:
            self._end(OtherProtocol(str(error)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ConnectionResetError(f"the broker closed the connection{'' if exc is None else f': {exc}'}"))

    def _received(self, frame: Frame) -> None:
        correlation = int.from_bytes(frame[:_CORRELATION_BYTES], "big")
        if len(frame) < _CORRELATION_BYTES or not self._waiting or correlation != self._waiting[0][0]:
            # Taken for the response to a later request, it would show the past as the present.
            self._end(OtherProtocol("a response to a request that was not sent"))
            return
        _, read, response = self._waiting.popleft()
        self._used_at = self._loop.time()
        if response.done():
            return
        try:
            response.set_result(read(frame))
        except Exception as error:
            response.set_exception(error)
            self.close()


def first(found: Sequence[T], what: str) -> T:
    """The first of what a response has to hold. Errors: ClusterRequestFailed where it holds none."""
    if not found:
        raise ClusterRequestFailed(f"the response holds no {what}")
    return found[0]


def _after_correlation(response: Frame) -> ByteReader:
    return ByteReader(response, _CORRELATION_BYTES)


def _after_tags(response: Frame) -> ByteReader:
    reader = ByteReader(response, _CORRELATION_BYTES)
    reader.tagged_fields()
    return reader
