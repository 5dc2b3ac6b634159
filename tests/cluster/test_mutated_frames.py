"""Almost valid requests, fifty thousand with make test and a million with make soak: no crash, no hang, no growth."""

import asyncio
import gc
import logging
import os
from random import Random
from struct import pack
from typing import Any, Final

import pytest

from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import Assembly
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.cluster.net import Connection
from rackspan.model import RACK_AWARE_SELECTOR
from rackspan.model.ids import BrokerId, RackId
from rackspan.wire.apis import VERSIONS
from rackspan.wire.compiled import struct_writer
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.schema import FieldShape, StructShape, request_shape
from tests.cluster.raw import framed
from tests.depth import at_depth
from tests.waiting import WITHIN_SECONDS

CORPUS: Final = 4_000
TURN: Final = 100
"""Requests between two iterations of the event loop."""

MOST_GROWTH: Final = 20.0
"""Megabytes. Two hundred thousand requests have a hundred bytes each, and few topics and groups remain of them."""

NAMES: Final = ("", "orders", "payments", "group", "__consumer_offsets", "é", "x" * 300, "range", "r1")
NUMBERS: Final = (-2, -1, 0, 0, 0, 1, 1, 2, 3, 100, 30_000)


class DiscardingTransport(asyncio.Transport):
    """The transport of a client that sends its bytes, reads nothing and disconnects."""

    def __init__(self) -> None:
        super().__init__()
        self.responses = 0
        self.closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: Any) -> None:
        self.responses += 1

    def abort(self) -> None:
        self.closing = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def random_struct(shape: StructShape, rng: Random) -> WireStruct:
    fields = [*shape.fields, *(field for _, field in shape.tagged)]
    return shape.values(**{field.name: random_field(field, rng) for field in fields})


def random_field(field: FieldShape, rng: Random) -> Any:
    if field.nullable and rng.random() < 0.2:
        return None
    if field.array:
        return [random_item(field.kind, rng) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))]
    return random_item(field.kind, rng)


def random_item(kind: str | StructShape, rng: Random) -> Any:
    if isinstance(kind, StructShape):
        return random_struct(kind, rng)
    match kind:
        case "string":
            return rng.choice(NAMES)
        case "bytes":
            return rng.randbytes(rng.randrange(40))
        case "records":
            return [rng.randbytes(rng.randrange(200))]
        case "uuid":
            return None
        case "bool":
            return rng.random() < 0.5
        case "float64":
            return rng.random()
        case "int8":
            return rng.choice((-1, 0, 1, 2, 3, 4))
        case "uint16":
            return rng.randrange(2**16)
        case _:
            return rng.choice(NUMBERS)


def whole(rng: Random) -> bytes:
    key = rng.choice(list(VERSIONS))
    version = rng.choice(VERSIONS[key])
    shape = request_shape(key, version)
    parts: list[bytes] = []
    struct_writer(shape)(parts, random_struct(shape, rng))
    return pack(">hhih", key, version, rng.randrange(1000), 4) + b"fuzz" + b"\0" * shape.flexible + b"".join(parts)


def mutated(request: bytes, corpus: list[bytes], rng: Random) -> bytes:
    data = bytearray(request)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data) or 1)
        match rng.randrange(6):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at:]
            case 2:
                del data[at : at + rng.randrange(1, 9)]
            case 3:
                data[at:at] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00", b"\xff" * 10, b"\x80"))
            case 4:
                other = rng.choice(corpus)
                data[at:] = other[rng.randrange(len(other)) :]
            case _:
                data[at : at + 4] = pack(">i", rng.choice((-1, 0, 2**31 - 1, 65_536)))
    # A wrong size, now and then.
    return framed([bytes(data)]) if rng.random() < 0.97 else pack(">i", rng.randrange(-9, 2**31)) + data


def fed(host: BrokerHost, data: bytes) -> None:
    transport = DiscardingTransport()
    connection = Connection(host.server)
    connection.connection_made(transport)
    at = 0
    while at < len(data) and not transport.closing:
        target = connection.get_buffer(-1)
        count = min(len(target), len(data) - at)
        target[:count] = data[at : at + count]
        del target
        connection.buffer_updated(count)
        at += count
    # Later responses are dropped, as for a client that has disconnected.
    asyncio.get_running_loop().call_soon(connection.connection_lost, None)


async def survived(requests: int, seed: int) -> float:
    """Megabytes by which the process grew after the first fifth of the requests."""
    rng = Random(seed)
    rack_of = {BrokerId(number): RackId(f"r{number}") for number in range(1, 4)}
    cluster = Assembly(rack_of, ClusterSettings(replica_selector_class=RACK_AWARE_SELECTOR), Random(seed))
    await cluster.start(30)
    corpus = [whole(rng) for _ in range(CORPUS)]
    hosts = list(cluster.hosts.values())
    warm = requests // 5
    await bombarded(hosts, corpus, warm, rng)
    before = megabytes()
    await bombarded(hosts, corpus, requests - warm, rng)
    growth = megabytes() - before
    async with asyncio.timeout(WITHIN_SECONDS):
        while any(host.server.connections or len(host.runner.delayed_fetches) for host in hosts):
            await asyncio.sleep(0.01)
        while len(asyncio.all_tasks()) > 20:
            await asyncio.sleep(0.01)
    assert all(host.running for host in hosts)
    cluster.stop()
    return growth


async def bombarded(hosts: list[BrokerHost], corpus: list[bytes], requests: int, rng: Random) -> None:
    for number in range(requests):
        fed(rng.choice(hosts), mutated(rng.choice(corpus), corpus, rng))
        if number % TURN == 0:
            await asyncio.sleep(0)


def megabytes() -> float:
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(requests: int, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    growth = asyncio.run(survived(requests, seed))
    assert [record.getMessage() for record in caplog.records] == []
    assert growth < MOST_GROWTH


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_some_mutated_requests_leave_the_cluster_unharmed(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    run(5_000, seed, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_mutated_requests_leave_the_cluster_unharmed(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    run(at_depth(test=8_000, soak=20_000), seed, caplog)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(7, 12))
def test_a_million_mutated_requests_leave_the_cluster_unharmed(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    run(200_000, seed, caplog)
