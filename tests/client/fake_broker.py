"""A broker of few lines for tests: what it responds to each API, or that it does not, is chosen by the test."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from rackspan.kafka_bytes import NO_TAGS, ByteReader
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import read_body, read_header, write_response
from rackspan.wire.messages.api_versions import ApiVersion, ApiVersionsResponseData
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import DescribeConfigsResponseData, DescribeConfigsResult
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData

INVALID_REQUEST: Final = 42

Handle = Callable[[Any], Awaitable[WireStruct | None]]
"""From a request's body; None: no response, ever."""


def api_versions(last: Mapping[ApiKey, int], node: tuple[str, int] | None = None) -> Handle:
    """Every API as wire/ has it, some of them up to an earlier version; -1 for none. `node`: the cluster and the id that it compares."""

    async def respond(request: Any) -> ApiVersionsResponseData:
        if node is not None and request.cluster_id is not None and (request.cluster_id, request.node_id) != node:
            return ApiVersionsResponseData(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        offered = {key: last.get(key, versions.stop - 1) for key, versions in VERSIONS.items()}
        return ApiVersionsResponseData(
            api_keys=[
                ApiVersion(api_key=int(key), min_version=VERSIONS[key].start, max_version=stop)
                for key, stop in offered.items()
                if stop >= 0
            ]
        )

    return respond


def configs_of(serves: Callable[[int], int]) -> Handle:
    """DescribeConfigs of brokers. `serves` gives the error code for the id that is named."""

    async def respond(request: Any) -> DescribeConfigsResponseData:
        (resource,) = request.resources
        error = serves(int(resource.resource_name))
        message = f"Unexpected broker id, received {resource.resource_name}" if error == INVALID_REQUEST else None
        return DescribeConfigsResponseData(results=[DescribeConfigsResult(error_code=error, error_message=message)])

    return respond


def only(broker: int) -> Callable[[int], int]:
    """The error codes of a broker of Kafka, which describes itself and no other."""
    return lambda named: 0 if named == broker else INVALID_REQUEST


class FakeBroker:
    """Listens from `start` until `close`. A request without an entry in `handles` gets no response, but for ApiVersions."""

    def __init__(self) -> None:
        self.handles: dict[int, Handle] = {ApiKey.API_VERSIONS: api_versions({})}
        self.raw_handles: dict[int, Callable[[ByteReader], bytes]] = {}
        """For APIs that wire/ has no class for, in a flexible version: from a request's body to the response's."""
        self.received: list[ApiKey] = []
        self.ended = 0
        """Connections that were closed, by clients or here."""
        self.port = 0
        self._server: asyncio.Server
        self._writers: list[asyncio.StreamWriter] = []
        self._loop: asyncio.AbstractEventLoop

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def send_raw(self, data: bytes) -> None:
        """Send these bytes to every client."""
        for writer in self._writers:
            writer.write(data)

    @property
    def connections(self) -> int:
        """Those that were ever accepted."""
        return len(self._writers)

    def ends(self) -> None:
        """Close every connection and accept no more, from any thread."""
        asyncio.run_coroutine_threadsafe(self.close(), self._loop).result()

    async def close(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                if (raw := self.raw_handles.get(int.from_bytes(frame[:2], "big"))) is not None:
                    request = ByteReader(frame, 8)
                    request.nullable_string()
                    request.tagged_fields()
                    body = frame[4:8] + NO_TAGS + raw(request)
                    writer.write(len(body).to_bytes(4, "big") + body)
                    continue
                header = read_header(frame)
                self.received.append(ApiKey(header.api_key))
                response = await self._response(header.api_key, read_body(frame, header))
                if response is not None:
                    body = b"".join(write_response(header, response))
                    writer.write(len(body).to_bytes(4, "big") + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended += 1

    async def _response(self, api_key: int, body: Any) -> WireStruct | None:
        handle = self.handles.get(api_key)
        # As a broker does, requests of one connection are handled one at a time.
        return await handle(body) if handle is not None else await asyncio.Event().wait()  # type: ignore[return-value]


class ProvingBroker(FakeBroker):
    """A broker of Kafka: before 4.4 it compares no ids in ApiVersions, and DescribeConfigs serves its own id alone."""

    def __init__(self, broker: int, *, cluster: str = "c", release: tuple[int, int] = (4, 4)) -> None:
        super().__init__()
        self.broker, self.cluster = broker, cluster
        compares = release >= (4, 4)
        self.handles |= {
            ApiKey.API_VERSIONS: api_versions({}, (cluster, broker))
            if compares
            else api_versions({ApiKey.API_VERSIONS: 4}),
            ApiKey.DESCRIBE_CONFIGS: configs_of(only(broker)),
            ApiKey.METADATA: self.metadata,
        }
        self.reported: list[MetadataResponseBroker] = []

    async def metadata(self, _: object) -> MetadataResponseData:
        return MetadataResponseData(cluster_id=self.cluster, brokers=self.reported)
