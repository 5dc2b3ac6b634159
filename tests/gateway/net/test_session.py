"""Connections with bytes that no client sends: each costs itself, and no more."""

import socket
from contextlib import closing, suppress
from random import Random
from struct import pack

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.gateway.net.requests import MAX_UNSENT
from tests.gateway.running import RunningGateway
from tests.kafka_fixtures import eventually

API_VERSIONS = pack(">hhih", 18, 0, 7, -1)


def framed(request: bytes) -> bytes:
    return pack(">i", len(request)) + request


def connection(gateway: RunningGateway) -> socket.socket:
    return socket.create_connection(gateway.address(1), timeout=10)


def is_closed(link: socket.socket) -> bool:
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True


def received(link: socket.socket) -> bytes:
    size = int.from_bytes(_exactly(link, 4), "big")
    return _exactly(link, size)


def _exactly(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = link.recv(size - len(data))
        assert more, "the gateway closed the connection"
        data += more
    return data


def serves(gateway: RunningGateway) -> bool:
    with closing(connection(gateway)) as link:
        link.sendall(framed(API_VERSIONS))
        return received(link)[:4] == pack(">i", 7)


def test_a_request_may_arrive_byte_by_byte_and_many_at_once(gateway: RunningGateway) -> None:
    with closing(connection(gateway)) as link:
        for byte in framed(API_VERSIONS):
            link.sendall(bytes([byte]))
        assert received(link)[:4] == pack(">i", 7)
        link.sendall(framed(API_VERSIONS) * 250)
        assert {received(link)[:4] for _ in range(250)} == {pack(">i", 7)}


def test_a_size_that_is_negative_or_huge_closes_the_connection(gateway: RunningGateway) -> None:
    for size in (-1, 0, 7, 2**31 - 1):
        with closing(connection(gateway)) as link:
            link.sendall(pack(">i", size) + API_VERSIONS)
            assert is_closed(link)
    assert serves(gateway)


def test_a_size_that_is_refused_closes_the_connection_before_more_is_received(gateway: RunningGateway) -> None:
    for size, behind in ((-5, b""), (0, b""), (3, b"\x00\x03\x00"), (2**31 - 1, b"\x00")):
        with closing(connection(gateway)) as link:
            link.sendall(pack(">i", size) + behind)
            assert is_closed(link)
    assert serves(gateway)


def test_an_api_that_is_not_offered_closes_the_connection(gateway: RunningGateway) -> None:
    for api_key, version in ((4, 0), (27, 1), (0, 99), (1000, 0), (-1, 0)):
        with closing(connection(gateway)) as link:
            link.sendall(framed(pack(">hhih", api_key, version, 1, -1)))
            assert is_closed(link)
    assert serves(gateway)


def test_half_requests_take_no_more_memory_than_is_allowed(gateway: RunningGateway) -> None:
    """Each announces a Produce of 90 MB and sends a little of it."""
    links = [connection(gateway) for _ in range(20)]
    try:
        for link in links:
            link.sendall(pack(">ihhih", 90_000_000, 0, 9, 1, -1) + bytes(1000))
        eventually(lambda: gateway.gateway.frames.used > 0, "one is being read", 10)
        assert gateway.gateway.frames.used <= gateway.gateway.config.request_memory_bytes
        assert serves(gateway)
    finally:
        for link in links:
            link.close()
    eventually(lambda: gateway.gateway.frames.used == 0, "their memory is free again", 10)


def test_a_client_that_reads_no_response_piles_up_none(gateway: RunningGateway) -> None:
    """Each request is refused here, at once: nobody but a gateway writes the config topic."""
    topic = b"__rackspan_configs"
    body = pack(">hhiih", -1, 1, 1000, 1, len(topic)) + topic + pack(">iii", 1, 0, -1)
    request = framed(pack(">hhih", 0, 3, 9, -1) + body)
    with socket.socket() as link:
        # The system's own buffers are to be full soon.
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(gateway.address(1))
        link.settimeout(0.3)
        sent = 0
        with suppress(TimeoutError):
            while sent < 4_000_000:
                link.sendall(request * 1000)
                sent += 1000
        (session,) = (one for one in gateway.gateway.sessions if one.peer.endswith(f":{link.getsockname()[1]}"))
        assert len(session.client.outgoing) < 2 * MAX_UNSENT
        link.settimeout(10)
        assert sent > MAX_UNSENT
        assert {received(link)[:4] for _ in range(MAX_UNSENT)} == {pack(">i", 9)}


def test_mutated_requests_cost_their_own_connection(gateway: RunningGateway, cluster: EmbeddedCluster) -> None:
    rng = Random(11)
    requests = [
        framed(API_VERSIONS),
        framed(pack(">hhih", 3, 1, 1, -1) + pack(">i", -1)),
        framed(
            pack(">hhihh", 0, 3, 1, -1, -1) + pack(">hii", -1, 1000, 1) + pack(">h", 1) + b"t" + pack(">iii", 1, 0, -1)
        ),
        framed(pack(">hhih", 19, 2, 1, -1) + pack(">iib", 0, 1000, 0)),
    ]
    for _ in range(150):
        mutated = bytearray(rng.choice(requests))
        for _ in range(rng.randint(1, 4)):
            mutated[rng.randrange(4, len(mutated))] = rng.randrange(256)
        with closing(connection(gateway)) as link:
            link.sendall(bytes(mutated))
    assert serves(gateway)
    eventually(lambda: gateway.gateway.frames.used == 0, "no memory is held", 10)


@pytest.mark.slow
def test_two_thousand_connections_leave_nothing_behind(gateway: RunningGateway) -> None:
    for _ in range(20):
        links = [connection(gateway) for _ in range(100)]
        for link in links:
            link.close()
    eventually(lambda: len(gateway.gateway.sessions) == 0, "every session has ended", 20)
    assert gateway.gateway.buffers.in_use == 0
    assert serves(gateway)
