"""Connections of one address are bounded, whatever they send, and those of others are not touched by it."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from struct import pack

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.gateway.clients import connections
from tests.gateway.net.test_session import API_VERSIONS, framed, is_closed, received
from tests.gateway.running import RunningGateway, running
from tests.kafka_fixtures import eventually

OTHER = "127.0.0.2"


@pytest.fixture
def gateway(cluster: EmbeddedCluster) -> Iterator[RunningGateway]:
    """Two connections of an address at a time."""
    with running(cluster.bootstrap_servers, listen={"address": {"max": {"connections": 2}}}) as started:
        yield started


def connection(gateway: RunningGateway, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(gateway.address(1), 10, source_address=(address, 0))


def is_served(link: socket.socket) -> bool:
    link.sendall(framed(API_VERSIONS))
    return received(link)[:4] == pack(">i", 7)


def test_an_address_with_as_many_connections_as_allowed_gets_no_further_one(
    gateway: RunningGateway, caplog: pytest.LogCaptureFixture
) -> None:
    clients = gateway.gateway.clients
    with caplog.at_level(logging.WARNING), closing(connection(gateway)) as first, closing(connection(gateway)) as idle:
        assert is_served(first)
        eventually(lambda: clients.accepted == 2, "a connection that has sent nothing counts", 10)
        for _ in range(3):
            with closing(connection(gateway)) as further:
                assert is_closed(further)
        with closing(connection(gateway, OTHER)) as other:
            assert is_served(other)
        assert clients.refused == {"address": 3}
        first.close()
        idle.close()
        eventually(lambda: not clients._of_address, "those that have ended count no more", 10)
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
    monkeypatch.setattr(connections, "GONE_CHECK_SECONDS", 0)
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
            try:
                return next(ended[self.peer])
            except StopIteration:
                raise asyncio.CancelledError from None

        def close(self) -> None:
            closed.append(self.peer)

    clients = connections.Clients.__new__(connections.Clients)
    clients.sessions = {Session(peer) for peer in ended}  # type: ignore[misc]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(clients.close_gone())
    assert closed == ["gone"]


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
