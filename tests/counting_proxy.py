"""A proxy before the brokers of a cluster that counts the error codes of partitions in Produce responses, on the wire.

Clients reach every broker through it: of what brokers send, only their addresses are changed.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader, peek_header, read_response, write_response
from tests.waiting import WITHIN_SECONDS

HOST = "127.0.0.1"
CLOSED = (ConnectionError, asyncio.IncompleteReadError)


@dataclass
class CountingProxy:
    """`codes` counts responses by error code; `partitions_of` has the partitions that each code was sent for."""

    bootstrap_servers: str = ""
    codes: Counter[int] = field(default_factory=Counter)
    partitions_of: dict[int, set[int]] = field(default_factory=dict)
    _ports: dict[int, int] = field(default_factory=dict)
    """The port of the proxy for each port of a broker."""

    async def listen(self, bootstrap_servers: str) -> None:
        for address in bootstrap_servers.split(","):
            port = int(address.rpartition(":")[2])
            server = await asyncio.start_server(partial(self._serve, port), HOST, 0)
            self._ports[port] = server.sockets[0].getsockname()[1]
        self.bootstrap_servers = ",".join(f"{HOST}:{port}" for port in self._ports.values())

    async def _serve(self, port: int, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with suppress(*CLOSED):
            broker, to_broker = await asyncio.open_connection(HOST, port)
            headers: dict[int, RequestHeader] = {}
            ways = [self._requests(client, to_broker, headers), self._responses(broker, to_client, headers)]
            tasks = [asyncio.create_task(way) for way in ways]
            # Whichever side closes, the other one is closed too.
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            to_broker.close()
        to_client.close()

    async def _requests(
        self, client: asyncio.StreamReader, to_broker: asyncio.StreamWriter, headers: dict[int, RequestHeader]
    ) -> None:
        with suppress(*CLOSED):
            while True:
                request = await frame(client)
                key, version, correlation = peek_header(request)
                headers[correlation] = RequestHeader(key, version, correlation, None, 0)
                await send(to_broker, request)

    async def _responses(
        self, broker: asyncio.StreamReader, to_client: asyncio.StreamWriter, headers: dict[int, RequestHeader]
    ) -> None:
        with suppress(*CLOSED):
            while True:
                response = await frame(broker)
                header = headers.pop(int.from_bytes(response[:4], "big"))
                if header.api_key in (ApiKey.METADATA, ApiKey.PRODUCE):
                    response = self._changed(header, response)
                await send(to_client, response)

    def _changed(self, header: RequestHeader, response: bytes) -> bytes:
        read = read_response(ApiKey(header.api_key), header.api_version, response)
        if header.api_key == ApiKey.PRODUCE:
            for partition in (partition for topic in read.responses for partition in topic.partition_responses):
                self.codes[partition.error_code] += 1
                self.partitions_of.setdefault(partition.error_code, set()).add(partition.index)
        for broker in read.brokers if header.api_key == ApiKey.METADATA else read.node_endpoints:
            broker.port = self._ports[broker.port]
        return b"".join(write_response(header, read))


async def frame(stream: asyncio.StreamReader) -> bytes:
    return await stream.readexactly(int.from_bytes(await stream.readexactly(4), "big"))


async def send(stream: asyncio.StreamWriter, message: bytes) -> None:
    stream.write(len(message).to_bytes(4, "big") + message)
    await stream.drain()


@contextmanager
def counting_proxy(bootstrap_servers: str) -> Iterator[CountingProxy]:
    """Runs in a thread of its own."""
    proxy, listening, loops = CountingProxy(), threading.Event(), list[asyncio.AbstractEventLoop]()
    ended = asyncio.Event()

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        await proxy.listen(bootstrap_servers)
        listening.set()
        await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert listening.wait(WITHIN_SECONDS)
    try:
        yield proxy
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()
