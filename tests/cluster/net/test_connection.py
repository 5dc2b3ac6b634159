"""Connections over real sockets, with a server that responds in any order."""

import asyncio
import resource
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rackspan.cluster.net import MAX_IN_FLIGHT, Connection
from rackspan.errors import MalformedRequest
from rackspan.testing.report import LOGGER
from rackspan.wire.framing import Request
from tests.cluster.raw import framed
from tests.waiting import WITHIN_SECONDS

Serve = Callable[[bytes], Any]


class StubServer:
    """A broker that does what the test says."""

    def __init__(self, serve: Serve) -> None:
        self.connections: set[Connection] = set()
        self.paused = False
        self.requests: list[bytes] = []
        self._serve = serve

    def serve(self, request: Request, client_host: str) -> list[bytes] | Awaitable[list[bytes] | None] | None:
        self.requests.append(bytes(request))
        response: list[bytes] | Awaitable[list[bytes] | None] | None = self._serve(bytes(request))
        return response


@asynccontextmanager
async def listening(serve: Serve) -> Any:
    stub = StubServer(serve)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(stub), "127.0.0.1", 0)
    try:
        yield stub, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in tuple(stub.connections):
            connection.abort()


async def received(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), WITHIN_SECONDS), "big")
    return await reader.readexactly(size)


def test_responses_leave_in_the_order_of_the_requests() -> None:
    async def scene() -> None:
        later: dict[bytes, asyncio.Future[list[bytes]]] = {}

        def serve(request: bytes) -> Any:
            if request == b"none":
                return None
            later[request] = asyncio.get_running_loop().create_future()
            return [b"now ", request] if request == b"2" else later[request]

        async with listening(serve) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"".join(framed([one]) for one in (b"1", b"none", b"2", b"3")))
            while len(later) < 3:
                await asyncio.sleep(0)
            later[b"3"].set_result([b"third"])
            await asyncio.sleep(0.01)
            later[b"1"].set_result([b"first"])
            assert [await received(reader) for _ in range(3)] == [b"first", b"now 2", b"third"]
            writer.close()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("bad", "logged"),
    [
        (b"\xff\xff\xff\xff", "closing the connection of 127.0.0.1: "),
        (b"\x7f\xff\xff\xff", "closing the connection of 127.0.0.1: "),
        (framed([b"malformed"]), "closing the connection of 127.0.0.1: as the test wants it"),
        (framed([b"malformed later"]), "closing the connection of 127.0.0.1: as the test wants it later"),
        (framed([b"broken"]), "closing the connection of 127.0.0.1: a request failed"),
        (framed([b"broken later"]), "closing the connection of 127.0.0.1: a request failed"),
    ],
)
def test_one_bad_request_costs_its_own_connection_alone(
    bad: bytes, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def later(request: bytes) -> list[bytes]:
        await asyncio.sleep(0)
        if request == b"malformed later":
            raise MalformedRequest("as the test wants it later")
        return [str(1 // 0).encode()]

    def serve(request: bytes) -> Any:
        if request == b"malformed":
            raise MalformedRequest("as the test wants it")
        if request.endswith(b"later"):
            return later(request)
        return [str(1 // (request != b"broken")).encode(), request]

    async def scene() -> None:
        async with listening(serve) as (stub, port):
            good_reader, good = await asyncio.open_connection("127.0.0.1", port)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(bad)
            assert await asyncio.wait_for(reader.read(), WITHIN_SECONDS) == b""
            good.write(framed([b"still here"]))
            assert await received(good_reader) == b"1still here"
            assert len(stub.connections) == 1
            good.close()

    asyncio.run(scene())
    [record] = caplog.records
    assert record.getMessage().startswith(logged)
    # The report of a user's failed test has the lines below this name.
    assert record.name.startswith(f"{LOGGER}.")


def test_a_request_that_its_broker_drops_closes_the_connection() -> None:
    async def scene() -> None:
        dropped: list[asyncio.Future[list[bytes]]] = []

        def serve(_: bytes) -> asyncio.Future[list[bytes]]:
            dropped.append(asyncio.get_running_loop().create_future())
            return dropped[0]

        async with listening(serve) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed([b"request"]))
            while not dropped:
                await asyncio.sleep(0)
            dropped[0].cancel()
            assert await asyncio.wait_for(reader.read(), WITHIN_SECONDS) == b""
            writer.close()

    asyncio.run(scene())


def test_what_a_client_waited_for_is_cancelled_when_it_leaves() -> None:
    async def scene() -> None:
        waiting: list[asyncio.Future[list[bytes]]] = []

        def serve(_: bytes) -> asyncio.Future[list[bytes]]:
            waiting.append(asyncio.get_running_loop().create_future())
            return waiting[-1]

        async with listening(serve) as (stub, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed([b"request"]) * 2)
            while len(waiting) < 2:
                await asyncio.sleep(0)
            writer.close()
            await asyncio.wait(waiting, timeout=WITHIN_SECONDS)
            assert [one.cancelled() for one in waiting] == [True, True]
            assert stub.connections == set()

    asyncio.run(scene())


def test_a_response_that_is_ready_when_its_client_is_gone_is_dropped() -> None:
    failed: list[dict[str, Any]] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failed.append(context))
        response: asyncio.Future[list[bytes]] = loop.create_future()
        async with listening(lambda _: response) as (stub, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed([b"request"]))
            while not stub.requests:
                await asyncio.sleep(0)
            (connection,) = stub.connections
            transport = connection._transport
            response.set_result([b"response"])
            connection.connection_lost(None)
            await asyncio.sleep(0)
            transport.abort()
            assert await asyncio.wait_for(reader.read(), WITHIN_SECONDS) == b""
            writer.close()

    asyncio.run(scene())
    assert failed == []


def test_a_broker_that_has_stopped_closes_the_connection_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def serve(_: bytes) -> list[bytes]:
        raise asyncio.CancelledError("broker 1 is not running")

    async def scene() -> None:
        async with listening(serve) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed([b"request"]))
            assert await asyncio.wait_for(reader.read(), WITHIN_SECONDS) == b""
            writer.close()

    asyncio.run(scene())
    assert caplog.messages == []


def test_no_more_requests_are_read_than_may_be_in_flight() -> None:
    async def scene() -> None:
        release = asyncio.Event()

        async def serve(request: bytes) -> list[bytes]:
            await release.wait()
            return [request[:1]]

        request = framed([b"x" * 100_000])
        async with listening(serve) as (stub, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            sending = asyncio.ensure_future(_sent(writer, request, MAX_IN_FLIGHT * 3))
            while len(stub.requests) < MAX_IN_FLIGHT:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert len(stub.requests) == MAX_IN_FLIGHT
            release.set()
            assert [await received(reader) for _ in range(MAX_IN_FLIGHT * 3)] == [b"x"] * MAX_IN_FLIGHT * 3
            await sending
            writer.close()

    asyncio.run(scene())


async def _sent(writer: asyncio.StreamWriter, request: bytes, times: int) -> None:
    for _ in range(times):
        writer.write(request)
        await writer.drain()


def test_a_client_that_does_not_read_delays_no_other_and_its_requests_are_read_no_further() -> None:
    async def scene() -> None:
        large = bytes(1_000_000)
        async with listening(lambda request: [request, large]) as (stub, port):
            slow_reader, slow = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            slow.write(framed([b"first"]) * MAX_IN_FLIGHT)
            while len(stub.requests) < MAX_IN_FLIGHT:
                await asyncio.sleep(0.001)
            # What the socket does not accept is not copied.
            assert [one._transport.get_write_buffer_limits() for one in stub.connections] == [(0, 0)]
            slow.write(framed([b"later"]))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed([b"quick"]))
            assert await received(reader) == b"quick" + large
            assert stub.requests.count(b"later") == 0
            for _ in range(MAX_IN_FLIGHT):
                assert await received(slow_reader) == b"first" + large
            assert await received(slow_reader) == b"later" + large
            for one in (slow, writer):
                one.close()

    asyncio.run(scene())


def test_a_frozen_broker_accepts_and_sends_nothing_until_it_thaws() -> None:
    async def scene() -> None:
        waiting = asyncio.get_running_loop().create_future()

        def serve(request: bytes) -> Any:
            return waiting if request == b"before" else [request]

        async with listening(serve) as (stub, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed([b"before"]))
            while not stub.requests:
                await asyncio.sleep(0)
            stub.paused = True
            waiting.set_result([b"before"])
            writer.write(framed([b"anyone?"]))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
            assert stub.requests == [b"before"]
            stub.paused = False
            for connection in stub.connections:
                connection.balance()
            assert [await received(reader) for _ in range(2)] == [b"before", b"anyone?"]
            writer.close()

    asyncio.run(scene())


def allow_files(wanted: int) -> None:
    """Both ends of every connection are ours."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_half_open_and_idle_connections_are_held_beside_one_that_works(count: int) -> None:
    allow_files(2 * count + 200)

    async def scene() -> None:
        async with listening(lambda request: [request]) as (stub, port):
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
            for _, writer in idle[::2]:
                writer.write(b"\x00\x00\x01")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(framed([b"hello"]))
            assert await received(reader) == b"hello"
            assert len(stub.connections) == count + 1
            for _, one in [*idle, (reader, writer)]:
                one.close()

    asyncio.run(scene())
