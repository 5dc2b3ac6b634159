"""Connections of one address are bounded, whatever they send, and those of others are not touched by it."""

import asyncio
import logging
import socket
import ssl
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.gateway.clients import connections
from rackspan.gateway.net.channel import Channel, FirstRequest
from tests.gateway.net.test_session import API_VERSIONS, framed, is_closed, received
from tests.gateway.running import RunningGateway, running
from tests.gateway.sleeps import Limits, Sleeps
from tests.waiting import WITHIN_SECONDS, eventually

OTHER = "127.0.0.2"


@pytest.fixture
def gateway(cluster: EmbeddedCluster) -> Iterator[RunningGateway]:
    """Two connections of an address at a time."""
    with running(cluster.bootstrap_servers, listen={"address": {"max": {"connections": 2}}}) as started:
        yield started


def connection(gateway: RunningGateway, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(gateway.address(1), WITHIN_SECONDS, source_address=(address, 0))


def is_served(link: socket.socket) -> bool:
    link.sendall(framed(API_VERSIONS))
    return received(link)[:4] == pack(">i", 7)


def test_an_address_with_as_many_connections_as_allowed_gets_no_further_one(
    gateway: RunningGateway, caplog: pytest.LogCaptureFixture
) -> None:
    clients = gateway.gateway.clients
    with caplog.at_level(logging.WARNING), closing(connection(gateway)) as first, closing(connection(gateway)) as idle:
        assert is_served(first)
        eventually(lambda: clients.accepted == 2, "a connection that has sent nothing counts")
        for _ in range(3):
            with closing(connection(gateway)) as further:
                assert is_closed(further)
        with closing(connection(gateway, OTHER)) as other:
            assert is_served(other)
        assert clients.refused == {"address": 3}
        first.close()
        idle.close()
        eventually(lambda: not clients._of_address, "those that have ended count no more")
        with closing(connection(gateway)) as again:
            assert is_served(again)
    lines = [line for line in caplog.messages if "listen.address.max.connections" in line]
    assert len(lines) == 1, "one line, however many are turned away"


def test_without_the_setting_an_address_has_as_many_as_all(cluster: EmbeddedCluster) -> None:
    with running(cluster.bootstrap_servers) as gateway:
        links = [connection(gateway) for _ in range(20)]
        assert all(map(is_served, links))
        for link in links:
            link.close()


def test_a_client_that_is_gone_at_two_checks_is_closed_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second check leaves the first one's response the time to be noticed as one that nobody reads."""
    sleeps = Sleeps(4)
    monkeypatch.setattr(asyncio, "sleep", sleeps)
    ended: dict[str, Iterator[bool]] = {
        "gone": iter([False, True, True]),
        "for-a-moment": iter([True, False, True]),
        "there": iter([False, False, False]),
    }
    closed: list[str] = []

    class Session:
        def __init__(self, peer: str) -> None:
            self.peer, self.client = peer, self

        @property
        def has_ended_unseen(self) -> bool:
            return next(ended[self.peer])

        def close(self) -> None:
            closed.append(self.peer)

    clients = connections.Clients.__new__(connections.Clients)
    clients.sessions = {Session(peer) for peer in ended}  # type: ignore[misc]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(clients.close_gone())
    assert (closed, sleeps.seconds) == (["gone"], [30.0] * 4)


def test_a_client_whose_request_arrives_too_slowly_is_closed_at_the_next_second(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sleeps, closed = Sleeps(4), list[str]()
    monkeypatch.setattr(asyncio, "sleep", sleeps)

    class Session:
        def __init__(self, peer: str, overdue_after: int) -> None:
            self.peer, self._overdue_after = peer, overdue_after

        @property
        def is_overdue(self) -> bool:
            return self.peer == "slow" and len(sleeps.seconds) >= self._overdue_after

        @property
        def is_stuck(self) -> bool:
            return self.peer == "stuck" and len(sleeps.seconds) >= self._overdue_after

        def close(self) -> None:
            closed.append(self.peer)
            clients.sessions.discard(self)

    clients = connections.Clients.__new__(connections.Clients)
    clients.sessions = {Session("slow", 2), Session("stuck", 3), Session("quick", 9)}  # type: ignore[arg-type]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(clients.close_slow())
    assert (closed, sleeps.seconds) == (["slow", "stuck"], [1.0] * 4)
    assert caplog.messages == [
        "closing the connection of slow: its request arrives too slowly",
        "closing the connection of stuck: others wait for the memory of its request, of which the broker takes nothing, or the client reads no "
        "responses",
    ]


def test_thousands_that_are_closed_are_closed_between_others_requests_and_named_in_six_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sleeps, closed = Sleeps(202), list[int]()
    clients = connections.Clients.__new__(connections.Clients)

    class Session:
        peer, is_overdue = "slow", True

        def close(self) -> None:
            closed.append(len(sleeps.seconds))
            clients.sessions.discard(self)

    monkeypatch.setattr(asyncio, "sleep", sleeps)
    clients.sessions = {Session() for _ in range(2000)}  # type: ignore[misc]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(clients.close_slow())
    assert (len(closed), max(Counter(closed).values()), sleeps.seconds) == (2000, 10, [1.0, *[0] * 200, 1.0])
    assert caplog.messages[5:] == ["closed 1995 more connections for the same reasons"]


class Socket:
    """A client's socket: whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def turned_away(
    monkeypatch: pytest.MonkeyPatch,
    secured: Callable[[object], Awaitable[object]] | None = None,
    sends: Callable[..., Awaitable[bool]] | None = None,
    connected: Callable[..., Awaitable[object]] | None = None,
) -> connections.Clients:
    """A client that sends something before broker 1, which is there, but for these; with what the gateway counted of it."""

    async def in_the_clear(client: object) -> tuple[object, None, None]:
        return client, None, None

    async def at_once(*_: object) -> bool:
        return True

    clients = connections.Clients.__new__(connections.Clients)
    clients.refused, clients._opening = Counter(), 3
    clients._tls = SimpleNamespace(secured=secured or in_the_clear)  # type: ignore[assignment]
    known = {1: SimpleNamespace(host="upstream", port=9)}
    clients._cluster = SimpleNamespace(by_id=known)  # type: ignore[assignment]
    monkeypatch.setattr(connections, "sends", sends or at_once)
    monkeypatch.setattr(connections, "connected", connected or at_once)
    client = Socket()
    assert asyncio.run(clients._session_of(1, client, "192.0.2.1")) is None  # type: ignore[arg-type]
    assert (client.is_closed, clients._opening) == (True, 3), "three others are being connected"
    return clients


async def never(*_: object) -> bool:
    return await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("late", "limits"), [("secured", [10.0]), ("sends", [10.0, 600.0]), ("connected", [10.0, 600.0, 10.0])]
)
def test_a_handshake_and_the_broker_have_ten_seconds_and_a_clients_first_bytes_ten_minutes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, late: str, limits: list[float]
) -> None:
    caplog.set_level(logging.INFO, connections.__name__)
    timeouts = Limits(len(limits))
    monkeypatch.setattr(asyncio, "timeout", timeouts)
    clients = turned_away(monkeypatch, **{late: never})
    assert (timeouts.seconds, clients.refused) == (limits, {"connect": 1})
    assert caplog.messages == ["a client of broker 1 is turned away: TimeoutError: "]


def test_a_client_that_leaves_or_fails_its_handshake_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def leaves(*_: object) -> bool:
        return False

    async def fails(*_: object) -> None:
        raise ssl.SSLError("bad certificate")

    assert turned_away(monkeypatch, sends=leaves).refused == {}
    assert turned_away(monkeypatch, secured=fails).refused == {"handshake": 1}
    assert turned_away(monkeypatch, connected=fails).refused == {"handshake": 1}


def test_a_client_that_is_being_connected_when_the_gateway_ends_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancelled(_: object) -> None:
        raise asyncio.CancelledError

    clients, client = connections.Clients.__new__(connections.Clients), Socket()
    clients.refused, clients._opening = Counter(), 0
    clients._tls = SimpleNamespace(secured=cancelled)  # type: ignore[assignment]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(clients._session_of(1, client, "192.0.2.1"))  # type: ignore[arg-type]
    assert (client.is_closed, clients._opening, clients.refused) == (True, 0, {})


@pytest.mark.parametrize(("context", "host"), [(None, None), (object(), "upstream")])
def test_a_client_gets_a_connection_to_its_broker_and_the_principal_of_its_certificate(
    monkeypatch: pytest.MonkeyPatch, context: object | None, host: str | None
) -> None:
    """The broker's certificate is checked by its host name, if there is one."""
    connected: list[tuple[object, ...]] = []

    async def secured(client: object) -> tuple[object, object, str]:
        return client, context, "alice"

    async def sends(*_: object) -> bool:
        return True

    async def connect(*to: object) -> str:
        connected.append(to)
        return "upstream"

    clients, client = connections.Clients.__new__(connections.Clients), Socket()
    clients.refused, clients._opening = Counter(), 0
    clients._tls = SimpleNamespace(secured=secured)  # type: ignore[assignment]
    clients._cluster = SimpleNamespace(by_id={1: SimpleNamespace(host="upstream", port=9)})  # type: ignore[assignment]
    monkeypatch.setattr(connections, "sends", sends)
    monkeypatch.setattr(connections, "connected", connect)
    monkeypatch.setattr(clients, "session", lambda *parts: SimpleNamespace(parts=parts))
    session: Any = asyncio.run(clients._session_of(1, client, "192.0.2.1"))  # type: ignore[arg-type]
    assert (session.parts, session.principal) == ((client, "upstream", 1), "alice")
    assert connected == [(("upstream", 9), context, host)]
    assert (client.is_closed, clients._opening, clients.refused) == (False, 0, {})


class Connected:
    """A session that has sent a whole request, or not."""

    def __init__(self, has_sent_request: bool = False) -> None:
        self.has_sent_request = has_sent_request


def counting(most: int | None, most_new: int) -> connections.Clients:
    clients = connections.Clients.__new__(connections.Clients)
    config = SimpleNamespace(max_connections_per_address=most, max_new_connections_per_address=most_new)
    clients.config = config  # type: ignore[assignment]
    clients._of_address, clients._opening_of = Counter(), defaultdict(set)
    clients._new, clients._warned = {}, set()
    return clients


def test_an_address_is_named_in_the_log_again_once_it_had_no_client(caplog: pytest.LogCaptureFixture) -> None:
    clients = counting(2, 500)

    def refused(times: int) -> int:
        """How many of so many further clients are turned away."""
        return sum(clients._has_most("192.0.2.1") for _ in range(times))

    for left in (2, 1, 2, 0, 2):
        while clients._of_address["192.0.2.1"] > left:
            clients._ended("192.0.2.1", None)
        while clients._of_address["192.0.2.1"] < left:
            assert not refused(1)
            clients._of_address["192.0.2.1"] += 1
        if left == 2:
            assert refused(3) == 3
    line = "address 192.0.2.1 has 2 connections, as many as listen.address.max.connections: others are turned away"
    assert caplog.messages == [line, line]


def test_of_an_address_only_connections_that_have_sent_no_request_are_bounded_by_default(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clients, address = counting(None, 3), "192.0.2.1"
    served = [Connected(has_sent_request=True) for _ in range(1000)]
    clients._of_address[address] = 1003
    clients._new[address] = {*served, Connected()}  # type: ignore[arg-type]
    clients._opening_of[address].add(socket.socket())
    assert not clients._has_most(address), "behind one address may be a thousand clients"
    silent = Connected()
    clients._new[address].add(silent)  # type: ignore[arg-type]
    assert clients._has_most(address)
    assert not clients._has_most("192.0.2.2")
    clients._ended(address, silent)  # type: ignore[arg-type]
    assert not clients._has_most(address)
    line = (
        "3 connections without a whole request, as many as listen.address.max.new.connections: others are turned away"
    )
    assert caplog.messages == [f"address {address} has {line}"]


def test_an_address_cannot_have_more_than_so_many_connections_without_a_request(cluster: EmbeddedCluster) -> None:
    with running(cluster.bootstrap_servers, listen={"address": {"max": {"new": {"connections": 2}}}}) as gateway:
        clients = gateway.gateway.clients
        served: list[socket.socket] = []
        for _ in range(5):
            served.append(connection(gateway))
            assert is_served(served[-1])
        # Their first request is waited for, and they go on sending it.
        halves = [connection(gateway) for _ in range(2)]
        for link in halves:
            link.sendall(pack(">ihhih", 90_000_000, 0, 9, 1, -1) + bytes(16_384))
        eventually(lambda: len(clients.sessions) == 7, "two have sent half a request")
        with closing(connection(gateway)) as further:
            assert is_closed(further)
        with closing(connection(gateway, OTHER)) as other:
            assert is_served(other)
        halves.pop().close()
        eventually(lambda: len(clients.sessions) == 6, "one has ended")
        with closing(connection(gateway)) as again:
            assert is_served(again)
        assert clients.refused == {"address": 1}
        for link in (*served, *halves):
            link.close()


@pytest.mark.parametrize(("first", "turned_away"), [(FirstRequest.WHOLE, 0), (FirstRequest.PART, 7)])
def test_clients_whose_request_is_whole_are_not_bounded_while_their_broker_is_connected(
    monkeypatch: pytest.MonkeyPatch, first: FirstRequest, turned_away: int
) -> None:
    """Ten behind one address (NAT), of which three may be new, before a broker that accepts no connection for now."""
    clients = counting(None, 3)
    clients.config.max_connections, clients.refused, clients._opening, clients.accepted = 99, Counter(), 0, 0  # type: ignore[misc]
    clients.sessions, clients.draining, clients._open_files = set(), False, 9_999

    async def secured(client: object) -> tuple[object, None, None]:
        return client, None, None

    async def sends(*_: object) -> FirstRequest:
        return first

    clients._tls = SimpleNamespace(secured=secured)  # type: ignore[assignment]
    clients._cluster = SimpleNamespace(by_id={1: SimpleNamespace(host="upstream", port=9)})  # type: ignore[assignment]
    monkeypatch.setattr(connections, "sends", sends)
    monkeypatch.setattr(connections, "connected", never)
    monkeypatch.setattr(connections, "address_of", lambda _: "192.0.2.1")

    async def scenario() -> None:
        tasks = []
        for _ in range(10):
            work = clients.accept(1, Socket())  # type: ignore[arg-type]
            if work is not None:
                tasks.append(asyncio.ensure_future(work))
                await asyncio.sleep(0)
        assert clients.refused["address"] == turned_away
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scenario())
    assert (clients._opening, clients._opening_of, clients._of_address) == (0, {}, {})


def test_the_addresses_of_one_ipv6_network_are_one() -> None:
    counted = connections._counted
    assert counted("2001:db8:0:1::5") == counted("2001:db8:0:1:ffff::1") != counted("2001:db8:0:2::5")
    assert counted("192.0.2.1") != counted("192.0.2.2")
    assert counted("::ffff:192.0.2.1") != counted("::ffff:192.0.2.2"), "an IPv4 address on a listener for both"
    assert counted("a client that is gone") == "a client that is gone"


class Ending:
    """A session that ends after so many seconds, or once it is cut off for `None`; it keeps what was done to it, and when."""

    def __init__(self, clients: connections.Clients, now: list[float], ends_at: float | None) -> None:
        self._clients, self._now, self._ends_at = clients, now, ends_at
        self.client: Any = SimpleNamespace(unmoved_seconds=lambda: 0.0)
        self.done: list[tuple[str, float]] = []

    def drain(self) -> None:
        self.done.append(("drain", self._now[0]))

    def cut_off(self) -> None:
        self.done.append(("cut off", self._now[0]))
        if self._ends_at is None or self._now[0] >= self._ends_at:
            self._clients.sessions.discard(self)


class Responses(Channel):
    """What was sent to a client, and what of it is with its system, as a test has it."""

    def __init__(self, now: list[float], look: Callable[[], tuple[int, int] | None]) -> None:
        self._loop: Any = SimpleNamespace(time=lambda: now[0])
        self._unaccepted, self._unmoved_since = None, 0.0
        self._look = look

    @property
    def unaccepted(self) -> tuple[int, int] | None:
        return self._look()


def drain(clients: connections.Clients, now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Drain for 3 s, with a look every quarter of a second."""

    async def sleep(_seconds: float) -> None:
        now[0] += 0.25

    async def scenario() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
        await clients.drain(3.0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("ends_at", "done", "left"),
    [
        (None, [("drain", 0.0), ("cut off", 2.0)], 0),
        (2.5, [("drain", 0.0), ("cut off", 2.0), ("cut off", 2.25), ("cut off", 2.5)], 0),
        (9.0, [("drain", 0.0), ("cut off", 2.0), ("cut off", 2.25), ("cut off", 2.5), ("cut off", 2.75)], 1),
    ],
)
def test_clients_may_continue_for_two_seconds_to_send_a_request_that_they_have_begun(
    monkeypatch: pytest.MonkeyPatch, ends_at: float | None, done: list[tuple[str, float]], left: int
) -> None:
    now = [0.0]
    clients = connections.Clients.__new__(connections.Clients)
    session = Ending(clients, now, ends_at)
    clients.sessions, clients.draining = {session}, False  # type: ignore[arg-type]

    drain(clients, now, monkeypatch)
    assert (session.done, len(clients.sessions), clients.draining) == (done, left, True)


@pytest.mark.parametrize(
    ("progress", "ends_at"), [([(9, 5)], 2.0), ([(9, 5), (9, 4)], 2.25), ([(9, 5), (10, 5)], 2.25), ([None], 3.0)]
)
def test_at_the_end_a_client_that_takes_no_byte_for_two_seconds_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    progress: list[tuple[int, int] | None],
    ends_at: float,
) -> None:
    """What was sent and what of it is with its system, at each look, the last for good. One that reads has all of 3 s."""
    now = [0.0]
    clients = connections.Clients.__new__(connections.Clients)
    session, reader = Ending(clients, now, 99.0), Ending(clients, now, 99.0)
    closed: list[float] = []

    def close() -> None:
        closed.append(now[0])
        clients.sessions.discard(session)

    session.client = Responses(now, lambda: progress.pop(0) if len(progress) > 1 else progress[0])
    session.close = close  # type: ignore[attr-defined]
    reader.client = Responses(now, lambda: (9, int(now[0] * 4)))
    clients.sessions, clients.draining = {session, reader}, False  # type: ignore[arg-type]

    drain(clients, now, monkeypatch)
    is_closed = ends_at < 3.0
    assert (closed, cast("object", reader) in clients.sessions) == ([ends_at] if is_closed else [], True)
    assert caplog.messages == (["1 connection closed, as clients did not read their responses"] if is_closed else [])


def test_clients_beyond_the_limit_or_during_the_end_are_closed_and_counted() -> None:
    clients = connections.Clients.__new__(connections.Clients)
    clients.accepted, clients.refused, clients.draining, clients._opening = 0, Counter(), False, 1
    clients.sessions = {object(), object()}  # type: ignore[arg-type]
    clients._open_files, clients._cluster = 1_000, SimpleNamespace(by_id={1: None, 2: None})  # type: ignore[assignment]

    def accepted(max_connections: int, *, draining: bool = False) -> bool:
        clients.config = SimpleNamespace(max_connections=max_connections)  # type: ignore[assignment]
        clients.draining = draining
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connections, "address_of", lambda _: "a")
            patch.setattr(clients, "_has_most", lambda _: True)
            client = Socket()
            assert clients.accept(1, client) is None  # type: ignore[arg-type]
        assert client.is_closed
        return clients.refused.pop("limit", 0) == 0

    assert [accepted(most) for most in (2, 3, 4)] == [False, False, True]
    assert not accepted(4, draining=True)
    assert (clients.accepted, clients.refused) == (4, {"address": 1})
    clients.config = SimpleNamespace(max_connections=10_000)  # type: ignore[assignment]
    # A client takes two files, a broker eight, and the gateway itself 64.
    assert clients.most == (1_000 - 2 * 8 - 64) // 2 == 460


def test_a_client_of_a_broker_that_is_gone_is_turned_away(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, connections.__name__)
    with running(cluster.bootstrap_servers) as gateway:
        gateway.gateway.cluster.by_id.pop(1)
        with closing(connection(gateway)) as link:
            link.sendall(framed(API_VERSIONS))
            assert is_closed(link)
        assert gateway.gateway.clients.refused == {"connect": 1}
    expected = "a client of broker 1 is turned away: ConnectionRefusedError: broker 1 is not in the cluster"
    assert expected in caplog.messages


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        (272, []),
        (
            271,
            [
                "open files: at most 99 clients can connect, listen.max.connections is 100: it needs 272 open files, and the hard limit "
                "of this process is 271; raise it (LimitNOFILE= of systemd, ulimit -Hn) or lower the setting"
            ],
        ),
    ],
)
def test_a_limit_of_open_files_below_the_setting_is_warned_of(
    caplog: pytest.LogCaptureFixture, files: int, lines: list[str]
) -> None:
    clients = connections.Clients.__new__(connections.Clients)
    clients.config = SimpleNamespace(max_connections=100)  # type: ignore[assignment]
    clients._open_files, clients._cluster = files, SimpleNamespace(by_id={1: None})  # type: ignore[assignment]
    clients.warn_of_open_files()
    assert caplog.messages == lines
