"""Connections with bytes that no client sends: each costs itself, and no more."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from random import Random
from struct import pack
from threading import Thread
from time import sleep
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MalformedRequest
from rackspan.gateway.clients import connections
from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.net import channel, frames
from rackspan.gateway.net import session as session_module
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.channel import BUFFER_BYTES
from rackspan.gateway.net.frames import Frame
from rackspan.gateway.net.requests import MAX_UNSENT
from rackspan.gateway.net.session import ClientSession, address_of
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData
from tests.gateway.pairs import pair
from tests.gateway.running import RunningGateway, running
from tests.waiting import WITHIN_SECONDS, eventually

METADATA_RESPONSE = pack(">iihii", 0, 0, -1, -1, 0)
"""Version 4, without its correlation id: no throttling, brokers, cluster id, controller or topics."""

API_VERSIONS_RESPONSE = pack(">ihi", 7, 0, 0)
API_VERSIONS = pack(">hhih", 18, 0, 7, -1)


def framed(request: bytes) -> bytes:
    return pack(">i", len(request)) + request


def connection(gateway: RunningGateway) -> socket.socket:
    return socket.create_connection(gateway.address(1), timeout=WITHIN_SECONDS)


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
            link.sendall(framed(API_VERSIONS) + pack(">ihhih", 90_000_000, 0, 9, 1, -1) + bytes(1000))
        eventually(lambda: gateway.gateway.clients.shared.frames.used > 0, "one is being read")
        assert gateway.gateway.clients.shared.frames.used <= gateway.gateway.config.request_memory_bytes
        assert serves(gateway)
    finally:
        for link in links:
            link.close()
    eventually(lambda: gateway.gateway.clients.shared.frames.used == 0, "their memory is free again")


def test_requests_that_are_announced_and_hardly_sent_keep_no_one_from_producing(gateway: RunningGateway) -> None:
    """Two announce 99 MB, a third nearly all that is left, and each sends 18 bytes and then one now and then."""
    most = gateway.gateway.config.request_memory_bytes
    links = [connection(gateway) for _ in range(3)]
    try:
        for link, size in zip(links, (99_000_000, 99_000_000, most - 198_100_000), strict=True):
            link.sendall(framed(API_VERSIONS) + pack(">ihhih", size, 0, 9, 1, -1) + bytes(4))
        eventually(lambda: gateway.gateway.clients.shared.frames.used >= 3 * 18, "each is being read")
        for record_bytes in (50_000, 300_000):
            for link in links:
                # It may have been closed: it was silent for as long as a record before took.
                with suppress(ConnectionError):
                    link.sendall(b"\0")
            produce(gateway.bootstrap_servers, "flow", bytes(record_bytes))
    finally:
        for link in links:
            link.close()


def produce(servers: str, topic: str, value: bytes) -> None:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "delivery.timeout.ms": 8000})
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WITHIN_SECONDS) == 0
    assert errors == [None]


def test_half_a_request_that_arrives_too_slowly_loses_its_connection(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One byte now and then is no excuse."""
    monkeypatch.setattr(connections, "OVERDUE_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(frames, "HALF_REQUEST_SECONDS", 0.3)
    with running(cluster.bootstrap_servers) as gateway, closing(connection(gateway)) as link:
        link.sendall(framed(API_VERSIONS) + pack(">ihhih", 100_000, 0, 9, 1, -1) + bytes(1000))
        received(link)
        eventually(lambda: gateway.gateway.clients.shared.frames.used > 0, "it is being read")
        with suppress(ConnectionError):
            for _ in range(200):
                link.sendall(b"\0")
                sleep(0.02)
        assert is_closed(link)
        eventually(lambda: gateway.gateway.clients.shared.frames.used == 0, "its memory is free again")
        assert caplog.text.count("its request arrives too slowly") == 1


PRODUCE = pack(">hhih", 0, 9, 5, -1) + b"\0" + bytes(100)
CREATE_TOPICS = pack(">hhih", 19, 5, 5, -1) + b"\0" + bytes(100)
DESCRIBE_CONFIGS = pack(">hhih", 32, 1, 5, -1) + pack(">i", 0) + b"\0"


@pytest.mark.parametrize("request_", [PRODUCE, CREATE_TOPICS, DESCRIBE_CONFIGS])
def test_a_client_that_the_broker_turns_away_gets_no_response(gateway: RunningGateway, request_: bytes) -> None:
    """A broker closes the connection of a client that has not logged in at its first other request."""
    with scripted(gateway) as (client, broker, _):
        client.sendall(framed(API_VERSIONS))
        received(broker)
        broker.sendall(framed(API_VERSIONS_RESPONSE))
        assert received(client)[:4] == pack(">i", 7)
        client.sendall(framed(request_))
        assert received(broker)[:4] == pack(">hh", 3, 4)
        assert gateway.gateway.clients.shared.frames.used == 0
        broker.close()
        assert is_closed(client)


def test_a_client_whose_login_cannot_be_proved_gets_no_response(
    gateway: RunningGateway, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker's response to the gateway's own request is none."""
    caplog.set_level(logging.INFO)
    with scripted(gateway) as (client, broker, _):
        client.sendall(framed(DESCRIBE_CONFIGS))
        proof = received(broker)
        broker.sendall(framed(proof[4:8] + b"\0"))
        assert is_closed(client)
    assert any("no login, or the broker is gone" in line for line in caplog.messages)


def test_a_client_that_is_gone_before_it_is_accepted_has_no_address() -> None:
    with socket.socket() as unconnected:
        assert address_of(unconnected) == ""


def produce_request(correlation_id: int, record_bytes: int) -> bytes:
    """acks=1 to topic "t", version 3."""
    topics = pack(">ih", 1, 1) + b"t" + pack(">iii", 1, 0, record_bytes) + bytes(record_bytes)
    return pack(">hhihhhi", 0, 3, correlation_id, -1, -1, 1, 1000) + topics


def test_a_request_that_is_read_whole_begins_behind_the_end_of_another(gateway: RunningGateway) -> None:
    """The first one's header arrives in two parts, and its end with half of the second."""
    one, other = produce_request(1, 100), produce_request(2, 300)
    with scripted(gateway) as (client, broker, session):
        session.is_proven = True
        client.sendall(framed(one)[:10])
        eventually(lambda: len(session._requests._header) == 10, "half a header is there")
        client.sendall(framed(one)[10:] + framed(other)[:150])
        assert received(broker) == one
        client.sendall(framed(other)[150:])
        assert received(broker) == other


def test_a_client_that_the_broker_serves_is_served(gateway: RunningGateway) -> None:
    with scripted(gateway) as (client, broker, session):
        client.sendall(framed(DESCRIBE_CONFIGS))
        proof = received(broker)
        broker.sendall(framed(proof[4:8] + METADATA_RESPONSE))
        assert received(broker)[:4] == DESCRIBE_CONFIGS[:4]
        assert session.is_proven


@pytest.mark.slow
def test_a_client_that_reads_no_response_piles_up_none(gateway: RunningGateway) -> None:
    """Each request is refused here, at once: nobody but a gateway writes the config topic."""
    topic = b"__rackspan_configs"
    body = pack(">hhiih", -1, 1, 1000, 1, len(topic)) + topic + pack(">iii", 1, 0, -1)
    request = framed(pack(">hhih", 0, 3, 9, -1) + body)
    with socket.socket() as link:
        # The system's own buffers are to be full soon.
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(gateway.address(1))
        link.settimeout(0.3)  # short: the client stops once nobody reads
        sent = 0
        with suppress(TimeoutError):
            while sent < 4_000_000:
                link.sendall(request * 1000)
                sent += 1000
        (session,) = (one for one in gateway.gateway.clients.sessions if one.peer.endswith(f":{link.getsockname()[1]}"))
        assert len(session.client.outgoing) < 2 * MAX_UNSENT
        link.settimeout(WITHIN_SECONDS)
        assert sent > MAX_UNSENT
        assert {received(link)[:4] for _ in range(MAX_UNSENT)} == {pack(">i", 9)}


@pytest.mark.slow
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
    eventually(lambda: gateway.gateway.clients.shared.frames.used == 0, "no memory is held")


def test_a_client_without_a_request_has_no_connection_to_the_broker(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []

    async def counted(*arguments: Any) -> socket.socket:
        opened.append(arguments)
        return await channel.connected(*arguments)

    monkeypatch.setattr(connections, "connected", counted)
    links = [connection(gateway) for _ in range(20)]
    for link in links[:10]:
        link.close()
    eventually(lambda: gateway.gateway.clients._opening == 10, "those that are closed are forgotten")
    assert opened == []
    for link in links[10:]:
        link.sendall(framed(API_VERSIONS))
    for link in links[10:]:
        assert received(link)[:4] == pack(">i", 7)
        link.close()
    assert len(opened) == 10


def test_an_idle_client_does_not_hold_up_the_end(cluster: EmbeddedCluster) -> None:
    with running(cluster.bootstrap_servers) as gateway, closing(connection(gateway)) as link:
        eventually(lambda: gateway.gateway.clients._opening == 1, "it is accepted")
        assert gateway.run(gateway.gateway.drain(10)) == 0
        assert is_closed(link)


@pytest.mark.parametrize("api_key", [0, 16], ids=["read whole", "forwarded"])
def test_half_a_request_does_not_hold_up_the_end(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, api_key: int
) -> None:
    monkeypatch.setattr(connections, "HALF_REQUEST_SECONDS", 0.1)
    with running(cluster.bootstrap_servers) as gateway, closing(connection(gateway)) as link:
        link.sendall(framed(API_VERSIONS))
        received(link)
        link.sendall(pack(">ihhih", 100_000, api_key, 3, 1, -1) + bytes(1000))
        (session,) = gateway.gateway.clients.sessions
        eventually(lambda: session._requests.is_half_received, "half of it is there")
        assert gateway.run(gateway.gateway.drain(3)) == 0


def test_at_the_end_half_a_request_waits_for_responses_to_those_before_it(gateway: RunningGateway) -> None:
    with scripted(gateway) as (client, broker, session):
        client.sendall(framed(LIST_GROUPS) + pack(">ihhih", 100_000, 16, 0, 6, -1))
        assert received(broker) == LIST_GROUPS

        async def ended() -> None:
            session.drain()
            session.cut_off()

        gateway.run(ended())
        broker.sendall(framed(pack(">ihi", 5, 0, 0)))
        assert received(client)[:4] == pack(">i", 5)
        assert is_closed(client)


@pytest.mark.parametrize("reads", [False, True])
def test_a_client_that_reads_nothing_does_not_hold_up_the_end(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, reads: bool
) -> None:
    """A response of 20 MB is on its way when the gateway ends, which would wait for an hour. One that reads gets all of it."""
    monkeypatch.setattr(connections, "HALF_REQUEST_SECONDS", 0.5)
    size, got = 20_000_000, 0
    with running(cluster.bootstrap_servers) as gateway, scripted(gateway) as (client, broker, session):
        client.sendall(framed(LIST_GROUPS))
        received(broker)
        sender = Thread(target=lambda: _sends(broker, framed(pack(">i", 5) + bytes(size - 4))), daemon=True)
        sender.start()
        eventually(lambda: session.client.unaccepted is not None, "the response waits for its client")
        ended = Thread(target=lambda: gateway.run(gateway.gateway.drain(3600)), daemon=True)
        ended.start()
        while reads and got < size + 4:
            got += len(client.recv(100_000))
        ended.join(WITHIN_SECONDS)
        assert not ended.is_alive()
        assert gateway.gateway.clients.sessions == set()
        sender.join(WITHIN_SECONDS)
    closed = [line for line in caplog.messages if "did not read their responses" in line]
    assert (len(closed), got) == ((0, size + 4) if reads else (1, 0))


def _sends(link: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        link.sendall(data)


def test_an_honest_request_that_waits_for_memory_is_not_closed_and_one_whose_client_is_silent_is(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory is full of another's request, which goes on; the wait is ten times as long as a client may be silent."""
    monkeypatch.setattr(session_module, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(connections, "OVERDUE_CHECK_SECONDS", 0.02)
    size = 3_000_000
    head = pack(">ihhih", size, 0, 9, 1, -1)
    with running(cluster.bootstrap_servers, listen={"request": {"memory": {"bytes": 1_048_576}}}) as gateway:
        clients = gateway.gateway.clients
        memory = clients.shared.frames

        async def filled() -> Frame:
            other = memory.begin(10_000_000, 0.0)
            while not memory.is_full or memory._first is not other:
                memory.fill(other, memory.receivable(other, lambda: None, 0.0))
            return other

        other = gateway.run(filled())
        with closing(connection(gateway)) as honest, closing(connection(gateway)) as silent:
            silent.sendall(framed(API_VERSIONS) + head)
            received(silent)
            assert is_closed(silent)
            sender = Thread(target=lambda: _sends(honest, head + bytes(size - 10)), daemon=True)
            sender.start()
            eventually(lambda: len(memory._waiting) == 1, "the request waits for memory")
            (session,) = clients.sessions
            sleep(1)
            assert session in clients.sessions

            async def freed() -> None:
                memory.end(other)

            gateway.run(freed())
            sender.join(WITHIN_SECONDS)
            eventually(lambda: memory.used == 0, "it was read whole")


@pytest.mark.slow
def test_two_thousand_connections_leave_nothing_behind(gateway: RunningGateway) -> None:
    for _ in range(20):
        links = [connection(gateway) for _ in range(100)]
        for link in links:
            link.close()
    eventually(lambda: len(gateway.gateway.clients.sessions) == 0, "every session has ended")
    assert gateway.gateway.clients.shared.buffers.in_use == 0
    assert serves(gateway)


@contextmanager
def scripted(gateway: RunningGateway) -> Iterator[tuple[socket.socket, socket.socket, ClientSession]]:
    """A session between a client and a broker that are the test's own."""
    (client_end, client), (upstream_end, broker) = pair(), pair()

    async def started() -> ClientSession:
        session = gateway.gateway.clients.session(client_end, upstream_end, 1)
        session.start()
        return session

    session = gateway.run(started())
    for link in (client, broker):
        link.settimeout(WITHIN_SECONDS)
    try:
        yield client, broker, session
    finally:
        client.close()
        broker.close()
        eventually(lambda: session.closed, "the session has ended")


FIND_COORDINATOR, LIST_GROUPS = pack(">hhihh", 10, 0, 5, -1, 1) + b"g", pack(">hhih", 16, 0, 5, -1)


@pytest.mark.parametrize("request_", [FIND_COORDINATOR, LIST_GROUPS])
@pytest.mark.parametrize("size", [-(2**31), -1, 0, 3])
def test_a_size_that_no_response_has_closes_the_connection(gateway: RunningGateway, request_: bytes, size: int) -> None:
    with scripted(gateway) as (client, broker, _):
        client.sendall(framed(request_))
        assert received(broker) == request_
        broker.sendall(pack(">i", size))
        assert is_closed(client)


def test_a_response_too_small_for_its_correlation_id_closes_the_connection(gateway: RunningGateway) -> None:
    """The id is the right one, and received with the size."""
    with scripted(gateway) as (client, broker, _):
        client.sendall(framed(LIST_GROUPS))
        received(broker)
        broker.sendall(pack(">ii", 3, 5))
        assert is_closed(client)


def test_clients_that_come_at_once_do_not_pass_the_limit(cluster: EmbeddedCluster) -> None:
    """Those count that have sent nothing yet, and have no session."""
    with running(cluster.bootstrap_servers, listen={"max": {"connections": 2}}) as gateway:
        links = [connection(gateway) for _ in range(5)]
        try:
            clients = gateway.gateway.clients
            eventually(lambda: clients.refused["limit"] == 3, "three are turned away")
            assert clients.accepted == 5
        finally:
            for link in links:
                link.close()


def test_a_huge_response_that_would_be_read_whole_closes_the_connection(gateway: RunningGateway) -> None:
    with scripted(gateway) as (client, broker, _):
        client.sendall(framed(FIND_COORDINATOR))
        received(broker)
        broker.sendall(pack(">ii", 2**31 - 1, 5))
        assert is_closed(client)


def test_a_response_to_no_request_closes_the_connection(gateway: RunningGateway) -> None:
    for correlation_id in (4, 5, 6):
        with scripted(gateway) as (client, broker, _):
            if correlation_id != 5:
                client.sendall(framed(LIST_GROUPS))
                received(broker)
            broker.sendall(pack(">iihi", 10, correlation_id, 0, 0))
            assert is_closed(client)


def test_a_huge_response_that_is_forwarded_takes_no_more_than_a_buffer(gateway: RunningGateway) -> None:
    """A broker announces 2 GB and sends 8 MB of them, and the client reads none, then all that was sent."""
    with scripted(gateway) as (client, broker, session):
        client.sendall(framed(LIST_GROUPS))
        received(broker)
        head, part = pack(">ii", 2**31 - 1, 5), bytes(8 * 1024 * 1024)
        sending = Thread(target=lambda: broker.sendall(head + part))
        sending.start()
        eventually(lambda: bool(session.client.outgoing), "the client's socket is full")
        assert sum(map(len, tuple(session.client.outgoing))) <= BUFFER_BYTES
        assert _exactly(client, len(head) + len(part)) == head + part
        sending.join()


def test_half_a_response_that_is_read_whole_takes_what_was_sent_of_it(gateway: RunningGateway) -> None:
    with scripted(gateway) as (client, broker, session):
        client.sendall(framed(FIND_COORDINATOR))
        received(broker)
        broker.sendall(pack(">ii", 60_000_000, 5) + bytes(1000))
        eventually(lambda: session._responses._whole is not None, "it is being read")
        assert len(session._responses._whole or b"") < 2000


def test_a_client_that_is_gone_while_its_request_waits_leaves_nothing_behind(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DescribeConfigs is read whole, and what is behind it waits: nothing is read of this client meanwhile."""
    monkeypatch.setattr(connections, "GONE_CHECK_SECONDS", 0.1)
    describe = pack(">hhih", 32, 1, 5, -1) + pack(">i", 0) + b"\0"
    with running(cluster.bootstrap_servers) as gateway, scripted(gateway) as (client, broker, session):
        session.is_proven = True
        client.sendall(framed(describe))
        assert received(broker)[:4] == describe[:4]
        client.close()
        eventually(lambda: session.closed, "the session has ended")
        assert is_closed(broker)


def test_a_request_whose_handling_fails_costs_its_connection(
    gateway: RunningGateway, caplog: pytest.LogCaptureFixture
) -> None:
    for error, logged in (
        (ValueError("a fault"), "a request failed"),
        (ConnectionResetError("gone"), ": gone"),
        (MalformedRequest("no frame"), ": no frame"),
    ):

        async def fail(error: Exception = error) -> list[Any]:
            raise error

        with scripted(gateway) as (client, _, session):

            async def handled(session: ClientSession = session) -> None:
                session.handle(Exchange(ApiKey.LIST_GROUPS, 0, 5, Treatment.WHOLE), fail())

            gateway.run(handled())
            assert is_closed(client)
        assert logged in caplog.messages[-1]
    assert serves(gateway)


def test_a_request_of_the_gateways_own_fails_with_the_connection(gateway: RunningGateway) -> None:
    """While it waits, and after the broker has closed its side."""
    with scripted(gateway) as (_, broker, session):

        async def closed() -> None:
            call = asyncio.ensure_future(session.call(ApiKey.METADATA, 4, None, MetadataRequestData(topics=[])))
            await asyncio.sleep(0)
            session.close()
            with pytest.raises(ConnectionResetError, match="the connection is closed"):
                await call
            with pytest.raises(ConnectionResetError, match="the broker closed its connection"):
                await session.call(ApiKey.METADATA, 4, None, MetadataRequestData(topics=[]))

        gateway.run(closed())
        assert received(broker)[:4] == pack(">hh", 3, 4)
        assert is_closed(broker)


def test_a_bug_costs_one_connection(gateway: RunningGateway, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("a fault")

    with scripted(gateway) as (client, _, session):

        async def guarded() -> None:
            session.run_guarded(fail)

        gateway.run(guarded())
        assert is_closed(client)
    assert [entry.exc_info is not None for entry in caplog.records if entry.levelname == "ERROR"] == [True]
