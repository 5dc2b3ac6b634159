"""The gateway's own connections: a response counts only for the request that it is the response to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from struct import pack
from typing import Any

import pytest

from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.errors import MalformedRequest
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData
from tests.client.fake_broker import FakeBroker

AT_ONCE_SECONDS = 2.0
"""Less than a request without a response waits."""


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
        async with asyncio.timeout(AT_ONCE_SECONDS):
            return await link.call(ApiKey.METADATA, MetadataRequestData(topics=()))


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
