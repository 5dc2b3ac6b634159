"""A broker's port over real sockets: opened, paused, closed and opened again."""

import asyncio
import socket
from struct import pack
from typing import Any, cast

import pytest

from rackspan.cluster.context import BrokerContext
from rackspan.cluster.net import BrokerServer, dispatch
from rackspan.errors import MalformedRequest
from rackspan.wire.apis import ApiKey
from rackspan.wire.framing import Request
from tests.cluster.raw import framed
from tests.waiting import WITHIN_SECONDS

API_VERSIONS = framed([pack(">hhih", ApiKey.API_VERSIONS, 0, 7, -1)])
"""The one request that needs nothing of the broker."""
BROKER = cast("BrokerContext", None)


async def responds(server: BrokerServer) -> None:
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(API_VERSIONS)
    assert (await asyncio.wait_for(reader.readexactly(8), WITHIN_SECONDS))[4:] == pack(">i", 7)
    writer.close()


def test_a_port_refuses_clients_while_the_broker_is_stopped_and_serves_them_again() -> None:
    async def scene() -> None:
        server = BrokerServer()
        address = server.address
        for _ in range(2):
            await server.open(BROKER)
            assert server.address == address
            await responds(server)
            reader, writer = await asyncio.open_connection(*address)
            await asyncio.sleep(0)
            server.close()
            assert await asyncio.wait_for(reader.read(), WITHIN_SECONDS) == b""
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*address)
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(address)
        # A broker that has stopped may be stopped again, and keeps the socket that holds its port.
        bound = server._socket
        server.close()
        assert server._socket is bound
        server.release()

    asyncio.run(scene())


@pytest.mark.parametrize("opened", [False, True])
def test_a_released_port_may_be_taken_by_others(opened: bool) -> None:
    async def scene() -> None:
        server = BrokerServer()
        if opened:
            await server.open(BROKER)
        server.release()
        await asyncio.sleep(0)
        with socket.socket() as other:
            other.bind(server.address)
        # Its socket's number is free, too.
        another = BrokerServer()
        await another.open(BROKER)
        await responds(another)
        another.close()
        another.release()

    asyncio.run(scene())


def test_clients_that_connect_while_the_broker_is_busy_are_not_refused() -> None:
    """More than asyncio's own 100."""

    async def scene() -> None:
        server = BrokerServer()
        await server.open(BROKER)
        # The loop is not left: nothing is accepted meanwhile.
        clients = [socket.create_connection(server.address, WITHIN_SECONDS) for _ in range(120)]
        while len(server.connections) < len(clients):
            await asyncio.sleep(0)
        for client in clients:
            client.close()
        server.close()
        server.release()

    asyncio.run(scene())


def test_a_frozen_broker_handles_a_request_once_it_thaws(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        server = BrokerServer()
        handled, serve = list[Request](), server.serve

        def noted(request: Request, client_host: str) -> Any:
            handled.append(request)
            return serve(request, client_host)

        monkeypatch.setattr(server, "serve", noted)
        await server.open(BROKER)
        reader, writer = await asyncio.open_connection(*server.address)
        while not server.connections:
            await asyncio.sleep(0)
        server.pause()
        writer.write(API_VERSIONS)
        late = asyncio.ensure_future(reader.readexactly(8))
        await asyncio.sleep(0.05)
        assert not late.done()
        assert handled == []
        server.resume()
        assert (await asyncio.wait_for(late, WITHIN_SECONDS))[4:] == pack(">i", 7)
        writer.close()
        server.close()
        server.release()

    asyncio.run(scene())


def test_a_broker_that_stops_while_it_is_frozen_is_not_frozen_when_it_starts_again() -> None:
    async def scene() -> None:
        server = BrokerServer()
        await server.open(BROKER)
        server.pause()
        server.close()
        await server.open(BROKER)
        await responds(server)
        server.close()
        server.release()

    asyncio.run(scene())


@pytest.mark.parametrize(("api_key", "version"), [(999, 0), (ApiKey.PRODUCE, 2), (ApiKey.PRODUCE, 99)])
def test_an_api_or_version_that_is_not_offered_is_malformed(api_key: int, version: int) -> None:
    with pytest.raises(MalformedRequest, match=f"API key {int(api_key)} version {version} is not offered here"):
        dispatch(BROKER, pack(">hhih", api_key, version, 7, -1), "127.0.0.1")


def test_an_unknown_version_of_api_versions_gets_version_0_with_an_error() -> None:
    parts: Any = dispatch(BROKER, pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1), "127.0.0.1")
    unsupported_version = 35
    assert b"".join(parts)[:6] == pack(">ih", 7, unsupported_version)
