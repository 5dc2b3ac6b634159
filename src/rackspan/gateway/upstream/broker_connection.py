"""A connection of the gateway's own to one broker: requests are pipelined, responses matched in order."""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar, cast

from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, UsageError
from rackspan.kafka_bytes import NO_TAGS, ByteReader, byte_string, int16, int32, string
from rackspan.model import INT32_MAX
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import read_response, write_request
from rackspan.wire.messages.api_versions import ApiVersionsRequestData, ApiVersionsResponseData
from rackspan.wire.messages.base import WireStruct

CLIENT_ID: Final = "rackspan-gateway"
CONNECT_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 5.0
MAX_RESPONSE_BYTES: Final = 100 * 1024 * 1024

_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_REQUEST_HEADER_BYTES: Final = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Login:
    """How the gateway identifies itself. `sasl` are kafka-python's settings of the mechanism, None without SASL."""

    tls: ssl.SSLContext | None = None
    sasl: Mapping[str, Any] | None = field(default=None, repr=False)


class BrokerConnection:
    """Open until `close` or until the broker ends it; then requests raise ConnectionError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: deque[tuple[int, Callable[[bytes], Any], asyncio.Future[Any]]] = deque()
        """Correlation id of each request without a response, and what reads its response."""
        self._correlation = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._task: asyncio.Task[None] | None = None
        self.closed = False

    @classmethod
    async def open(cls, host: str, port: int, login: Login) -> "BrokerConnection":
        """Errors: OSError, TimeoutError, ClusterUnauthorized."""
        server_name = host if login.tls is not None else None
        async with asyncio.timeout(CONNECT_SECONDS):
            streams = await asyncio.open_connection(host, port, ssl=login.tls, server_hostname=server_name)
            connection = cls(*streams)
            try:
                await connection._log_in(host, login)
                connection._task = asyncio.get_running_loop().create_task(connection._read())
                await connection._learn_versions()
            except BaseException:
                connection.close()
                raise
        return connection

    def version(self, api_key: ApiKey, most: int | None = None) -> int:
        """The highest version of an API that both sides have. Errors: ClusterRequestFailed where there is none."""
        least, offered = self._versions.get(api_key, (0, -1))
        ours = VERSIONS[api_key]
        highest = min(offered, ours.stop - 1 if most is None else most)
        if highest < max(least, ours.start):
            raise ClusterRequestFailed(
                f"the broker offers {api_key.name} in versions {least} to {offered}, the gateway needs {ours.start} to {ours.stop - 1}"
            )
        return highest

    def offered(self, api_key: int) -> tuple[int, int] | None:
        """The broker's own lowest and highest version of an API."""
        return self._versions.get(api_key)

    def send(self, api_key: ApiKey, request: WireStruct, version: int | None = None) -> "asyncio.Future[Any]":
        """The response, later. Errors of the future: ConnectionError, MalformedRequest."""
        if self.closed:
            raise ConnectionResetError("the connection to the broker is closed")
        used = self.version(api_key) if version is None else version
        self._correlation = self._correlation + 1 & INT32_MAX
        parts = write_request(api_key, used, self._correlation, CLIENT_ID, request)
        return self._sent(b"".join(parts), partial(read_response, api_key, used))

    def _sent(self, body: bytes, read: Callable[[bytes], Any]) -> "asyncio.Future[Any]":
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._correlation, read, response))
        self._writer.write(len(body).to_bytes(4, "big") + body)
        return response

    async def call_raw(self, api_key: int, version: int, body: bytes, seconds: float = REQUEST_SECONDS) -> ByteReader:
        """The body of the response to a request that wire/ has no class for, in a flexible version. Errors: as of `call`."""
        if self.closed:
            raise ConnectionResetError("the connection to the broker is closed")
        self._correlation = self._correlation + 1 & INT32_MAX
        header = int16(api_key) + int16(version) + int32(self._correlation) + string(CLIENT_ID) + NO_TAGS
        try:
            async with asyncio.timeout(seconds):
                return cast("ByteReader", await self._sent(header + body, _read_raw))
        except TimeoutError:
            self.close()
            raise TimeoutError(f"no response to API key {api_key} in {seconds:g} s") from None

    async def call(
        self, api_key: ApiKey, request: WireStruct, version: int | None = None, seconds: float = REQUEST_SECONDS
    ) -> Any:
        """The response. A connection without a response in so long is closed. Errors: TimeoutError, ConnectionError, MalformedRequest."""
        try:
            async with asyncio.timeout(seconds):
                return await self.send(api_key, request, version)
        except TimeoutError:
            self.close()
            raise TimeoutError(f"no response to {api_key.name} in {seconds:g} s") from None

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._writer.transport.abort()
        if self._task is not None:
            self._task.cancel()
        for _, _, response in self._waiting:
            if not response.done():
                response.set_exception(ConnectionResetError("the broker closed the connection"))
                # Read here, so that a response that nobody waits for any more is no warning.
                response.exception()
        self._waiting.clear()

    async def _read(self) -> None:
        try:
            while True:
                frame = await self._frame()
                if not self._waiting or int.from_bytes(frame[:4], "big") != self._waiting[0][0]:
                    # Taken for the response to a later request, it would show the past as the present.
                    raise ConnectionResetError("a response to a request that was not sent")
                self._respond(frame)
        except asyncio.CancelledError:
            raise
        except Exception:
            self.close()

    def _respond(self, frame: bytes) -> None:
        _, read, response = self._waiting.popleft()
        if response.done():
            return
        try:
            response.set_result(read(frame))
        except Exception as error:
            response.set_exception(error)
            raise

    async def _frame(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(4), "big", signed=True)
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise ConnectionResetError(f"a response of {size} bytes")
        return await self._reader.readexactly(size)

    async def _learn_versions(self) -> None:
        versions: ApiVersionsResponseData = await self.send(ApiKey.API_VERSIONS, ApiVersionsRequestData(), 0)
        self._versions = {one.api_key: (one.min_version, one.max_version) for one in versions.api_keys}

    # SASL, before anything else. Its two requests are not among the messages of wire/.

    async def _log_in(self, host: str, login: Login) -> None:
        if login.sasl is None:
            return
        # Imported here: kafka-python takes a quarter of a second, and few gateways log in.
        from kafka.net.sasl import get_sasl_mechanism

        name = login.sasl["sasl_mechanism"]
        mechanism = get_sasl_mechanism(name)(host=host, **login.sasl)
        handshake = ByteReader(await self._sasl(_SASL_HANDSHAKE, string(name)))
        if (error := handshake.int16()) != 0:
            raise ClusterUnauthorized(
                f"{host}: SASL mechanism {name} was refused with error {error}; see command.config"
            )
        while not mechanism.is_done():
            reader = ByteReader(await self._sasl(_SASL_AUTHENTICATE, byte_string(mechanism.auth_bytes())))
            error, message = reader.int16(), reader.nullable_string()
            if error != 0:
                raise ClusterUnauthorized(f"{host}: the login of command.config was refused: {message or error}")
            mechanism.receive(reader.byte_string())
        if not mechanism.is_authenticated():
            raise ClusterUnauthorized(f"{host}: the broker's proof of {name} is wrong; see command.config")

    async def _sasl(self, api_key: int, body: bytes) -> bytes:
        """Version 1 of SaslHandshake, 0 of SaslAuthenticate: neither has tagged fields."""
        version = 1 if api_key == _SASL_HANDSHAKE else 0
        header = api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + string(CLIENT_ID)
        request = header + body
        self._writer.write(len(request).to_bytes(4, "big") + request)
        return (await self._frame())[_REQUEST_HEADER_BYTES:]


def first(found: Sequence[T], what: str) -> T:
    """The first of what a response has to hold. Errors: ClusterRequestFailed where it holds none."""
    if not found:
        raise ClusterRequestFailed(f"the response holds no {what}")
    return found[0]


def _read_raw(response: bytes) -> ByteReader:
    """Behind the correlation id and the header's tagged fields."""
    reader = ByteReader(response, 4)
    reader.tagged_fields()
    return reader


def login_of(settings: Mapping[str, Any]) -> Login:
    """From the settings that `kafka_python_settings` makes of command.config. Errors: UsageError."""
    sasl = {key: value for key, value in settings.items() if key.startswith("sasl_")}
    if "SASL" in settings.get("security_protocol", "") and "sasl_mechanism" not in sasl:
        raise UsageError("command.config: sasl.mechanism is missing; add it")
    return Login(settings.get("ssl_context"), sasl or None)
