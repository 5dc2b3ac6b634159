"""The gateway's own connections: a response counts only for the request that it is the response to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from struct import pack, unpack_from
from typing import Any
from unittest.mock import patch

import pytest

from rackspan.client.connection import BrokerConnection, UnsupportedVersion, first
from rackspan.client.login import SASL_AUTHENTICATE, SASL_HANDSHAKE, Login, LoginRefused
from rackspan.errors import ClusterRequestFailed, MalformedRequest
from rackspan.kafka_bytes import ByteReader
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData
from tests.client.fake_broker import FakeBroker
from tests.waiting import WITHIN_SECONDS


@asynccontextmanager
async def connection() -> AsyncIterator[tuple[FakeBroker, BrokerConnection]]:
    broker = FakeBroker()
    await broker.start()
    link = await BrokerConnection.open("127.0.0.1", broker.port, Login())
    try:
        yield broker, link
    finally:
        link.close()
        await broker.close()


def framed(correlation_id: int, body: bytes) -> bytes:
    return pack(">ii", 4 + len(body), correlation_id) + body


async def first_response(data: bytes) -> Any:
    """What a request for metadata leads to where the broker sends these bytes to it."""
    async with connection() as (broker, link):

        async def respond(_request: Any) -> MetadataResponseData | None:
            broker.send_raw(data)
            return None

        broker.handles[ApiKey.METADATA] = respond
        # A request without a response would wait for longer than the test.
        async with asyncio.timeout(WITHIN_SECONDS):
            return await link.call(ApiKey.METADATA, MetadataRequestData(topics=()), seconds=2 * WITHIN_SECONDS)


def test_a_response_that_cannot_be_read_is_an_error_at_once() -> None:
    with pytest.raises(MalformedRequest):
        asyncio.run(first_response(framed(2, b"\xff" * 20)))


@pytest.mark.parametrize("size", [-1, 0, 3, 2**31 - 1])
def test_a_size_that_no_response_has_closes_the_connection(size: int) -> None:
    with pytest.raises(ConnectionError):
        asyncio.run(first_response(pack(">ii", size, 2) + bytes(100)))


def test_a_response_to_another_request_closes_the_connection() -> None:
    """One too many would be taken for the response to the next request, and so on: each sample would be an older one."""
    with pytest.raises(ConnectionError):
        asyncio.run(first_response(framed(1, bytes(30))))


def test_correlation_ids_begin_again_before_they_are_too_large() -> None:
    async def scenario() -> MetadataResponseData:
        async with connection() as (broker, link):

            async def respond(_request: Any) -> MetadataResponseData:
                return MetadataResponseData(cluster_id="c")

            broker.handles[ApiKey.METADATA] = respond
            link._correlation = 2**31 - 1
            response: MetadataResponseData = await link.call(ApiKey.METADATA, MetadataRequestData(topics=()))
            return response

    assert asyncio.run(scenario()).cluster_id == "c"


class SaslBroker:
    """Responds to ApiVersions and SaslHandshake, and to SaslAuthenticate or, without `accepts`, closes the connection.

    It has SaslAuthenticate in versions up to `newest`, and logins that last for so many milliseconds.
    """

    def __init__(self, *, accepts: bool, newest: int = 2, lifetime_ms: int = 0) -> None:
        self._accepts, self._newest, self._lifetime_ms = accepts, newest, lifetime_ms
        self.requests: list[tuple[int, int, bytes]] = []
        """API key, version, and what follows the correlation id."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                key, version, correlation_id = unpack_from(">hhi", frame)
                self.requests.append((key, version, frame[8:]))
                if key == SASL_AUTHENTICATE and not self._accepts:
                    break
                body = {
                    ApiKey.API_VERSIONS: pack(
                        ">hihhhhhh", 0, 2, ApiKey.METADATA, 0, 9, SASL_AUTHENTICATE, 0, self._newest
                    ),
                    SASL_HANDSHAKE: pack(">hi", 0, 0),
                    SASL_AUTHENTICATE: pack(">hhi", 0, -1, 0) + (pack(">q", self._lifetime_ms) if version else b""),
                }[key]
                writer.write(framed(correlation_id, body))
        writer.close()


PLAIN = Login(sasl={"sasl_mechanism": "PLAIN", "sasl_plain_username": "u", "sasl_plain_password": "p"}, client_id="me")


async def opened(broker: SaslBroker, login: Login) -> BrokerConnection:
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    async with server:
        return await BrokerConnection.open("127.0.0.1", server.sockets[0].getsockname()[1], login)


def test_a_login_follows_the_versions_and_has_no_tagged_fields() -> None:
    broker = SaslBroker(accepts=True)

    async def scenario() -> tuple[int, int] | None:
        link = await opened(broker, PLAIN)
        try:
            return link.offered(ApiKey.METADATA)
        finally:
            link.close()

    assert asyncio.run(scenario()) == (0, 9)
    client_id = pack(">h", 2) + b"me"
    assert broker.requests == [
        (ApiKey.API_VERSIONS, 0, client_id),
        (SASL_HANDSHAKE, 1, client_id + pack(">h", 5) + b"PLAIN"),
        (SASL_AUTHENTICATE, 1, client_id + pack(">i", 5) + b"u\0u\0p"),
    ]


@pytest.mark.parametrize(
    ("newest", "lifetime_ms", "is_over"),
    [(2, 60_000, True), (1, 60_000, True), (1, 0, False), (1, -1, False), (0, 60_000, False)],
)
def test_a_login_that_the_broker_bounds_is_over_before_its_end(newest: int, lifetime_ms: int, is_over: bool) -> None:
    """A broker that has version 0 alone says nothing of it."""

    async def scenario() -> None:
        link = await opened(SaslBroker(accepts=True, newest=newest, lifetime_ms=lifetime_ms), PLAIN)
        now = link._loop.time()
        for seconds, expected in ((50.0, False), (51.0, is_over), (60.0, is_over)):
            with patch.object(link._loop, "time", lambda: now + seconds):  # noqa: B023 - called inside the loop
                assert link.is_over is expected
                assert link.is_usable is not expected
        link.close()

    asyncio.run(scenario())


def test_a_connection_that_ends_during_the_login_is_a_login_that_was_refused() -> None:
    with pytest.raises(LoginRefused, match=r"127\.0\.0\.1: the connection ended during the login: the broker closed"):
        asyncio.run(opened(SaslBroker(accepts=False), PLAIN))


@pytest.mark.parametrize(
    ("error", "words"),
    [(None, "the broker closed the connection"), (OSError("gone"), "the broker closed the connection: gone")],
)
def test_what_waits_for_a_response_ends_when_the_connection_is_lost(error: Exception | None, words: str) -> None:
    async def lost() -> None:
        async with connection() as (broker, link):
            received = asyncio.Event()

            async def no_response(_request: Any) -> None:
                received.set()

            broker.handles[ApiKey.METADATA] = no_response
            waiting = asyncio.create_task(link.call(ApiKey.METADATA, MetadataRequestData(topics=())))
            await received.wait()
            link.connection_lost(error)
            with pytest.raises(ConnectionResetError, match=f"^{words}$"):
                await waiting

    asyncio.run(lost())


def test_a_connection_that_is_closed_takes_no_request() -> None:
    async def scenario() -> None:
        async with connection() as (_, link):
            assert link.is_usable
            link.close()
            assert not link.is_usable
            with pytest.raises(ConnectionResetError, match="the connection to the broker is closed"):
                await link.call(ApiKey.METADATA, MetadataRequestData(topics=()))

    asyncio.run(scenario())


def test_a_request_without_a_response_ends_the_connection() -> None:
    async def scenario() -> None:
        async with connection() as (_, link):
            with pytest.raises(TimeoutError, match=r"no response to METADATA in 0\.1 s"):
                await link.call(ApiKey.METADATA, MetadataRequestData(topics=()), seconds=0.1)
            assert link.closed

    asyncio.run(scenario())


def test_a_request_that_wire_has_no_class_for_has_tagged_fields() -> None:
    async def scenario() -> None:
        async with connection() as (broker, link):
            requests: list[bytes] = []

            def respond(request: ByteReader) -> bytes:
                requests.append(bytes(request.data[request.at :]))
                return b"response"

            broker.raw_handles[59] = respond
            reader = await link.call_raw(59, 0, b"request")
            assert (requests, bytes(reader.data[reader.at :])) == ([b"request"], b"response")
            with pytest.raises(TimeoutError, match=r"no response to API key 16 in 0\.1 s"):
                await link.call_raw(16, 3, b"\0", 0.1)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("offered", "most", "least", "used"),
    [
        ((0, 99), None, 0, VERSIONS[ApiKey.METADATA].stop - 1),
        ((0, 5), None, 0, 5),
        ((0, 5), 3, 2, 3),
        ((0, 5), None, 6, None),
        ((4, 5), 3, 0, None),
        ((99, 99), None, 0, None),
        (None, None, 0, None),
    ],
)
def test_a_version_is_the_highest_that_both_sides_have(
    offered: tuple[int, int] | None, most: int | None, least: int, used: int | None
) -> None:
    async def scenario() -> int:
        async with connection() as (_, link):
            link._versions = {} if offered is None else {ApiKey.METADATA: offered}
            assert link.offered(ApiKey.METADATA) == offered
            return link.version(ApiKey.METADATA, most, least)

    if used is not None:
        assert asyncio.run(scenario()) == used
        return
    with pytest.raises(
        UnsupportedVersion, match=r"the broker offers METADATA in versions .*, rackspan needs "
    ) as refused:
        asyncio.run(scenario())
    assert refused.value.api_key is ApiKey.METADATA


def test_a_connection_that_was_not_used_for_long_is_not_usable() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start()
        link = await BrokerConnection.open("127.0.0.1", broker.port, Login(idle_seconds=30.0))
        assert link.is_usable
        link._used_at -= 31.0
        assert not link.is_usable
        waiting = link.send(ApiKey.METADATA, MetadataRequestData(topics=()))
        link._used_at -= 31.0
        assert link.is_usable, "a response is expected"
        waiting.cancel()
        assert not link.is_usable, "nobody waits for it any more, and what is behind it would wait"
        link.close()
        await broker.close()

    asyncio.run(scenario())


def test_a_connection_is_left_once_nobody_waits_and_nothing_was_sent_for_so_long() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start()
        link = await BrokerConnection.open("127.0.0.1", broker.port, Login())
        assert not link.was_left_for(30.0)
        link._used_at -= 31.0
        assert link.was_left_for(30.0)
        waiting = link.send(ApiKey.METADATA, MetadataRequestData(topics=()))
        link._used_at -= 31.0
        assert not link.was_left_for(30.0), "a response is expected"
        waiting.cancel()
        assert link.was_left_for(30.0)
        link.close()
        await broker.close()

    asyncio.run(scenario())


def test_a_response_that_lacks_what_it_has_to_hold_is_an_error() -> None:
    assert first([3, 4], "topic") == 3
    with pytest.raises(ClusterRequestFailed, match="the response holds no topic"):
        first([], "topic")
