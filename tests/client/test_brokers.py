"""One connection to each broker: shared, replaced without a loss, and closed when the broker has moved."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rackspan.client.brokers import BrokerConnections, addresses
from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, UsageError


class Link:
    """An open connection."""

    def __init__(self) -> None:
        self.closed = False
        self.is_usable = True

    def close(self) -> None:
        self.closed, self.is_usable = True, False


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The arguments of every connection that is opened; all of them are links."""
    arguments: list[tuple[object, ...]] = []

    async def open_link(*of_connection: object) -> Link:
        arguments.append(of_connection)
        await asyncio.sleep(0)
        return Link()

    monkeypatch.setattr(BrokerConnection, "open", open_link)
    return arguments


def run(scenario: Callable[[Any], Any]) -> None:
    login = Login()

    async def made() -> None:
        brokers: Any = BrokerConnections(login, 2.5)
        brokers.addresses = {1: ("one", 9092), 2: ("two", 9092)}
        await scenario(brokers)

    asyncio.run(made())


def test_a_connection_is_opened_once_and_again_after_it_has_ended(opened: list[tuple[object, ...]]) -> None:
    async def scenario(brokers: Any) -> None:
        first, same = await asyncio.gather(brokers.connection(1), brokers.connection(1))
        assert first is same
        assert opened == [("one", 9092, brokers._login, 2.5)]
        assert await brokers.connection(1) is first
        await brokers.connection(2)
        assert brokers.usable() == [1, 2]
        first.close()
        assert brokers.usable() == [2]
        assert await brokers.connection(1) is not first
        assert len(opened) == 3
        assert not brokers._opening
        with pytest.raises(ClusterUnreachable, match="broker 3 is not in the cluster's metadata"):
            await brokers.connection(3)

    run(scenario)


def test_a_connection_that_is_replaced_stays_open_until_the_end(opened: list[tuple[object, ...]]) -> None:
    """For requests that wait on it. One that has ended is not kept."""
    assert opened == []

    async def scenario(brokers: Any) -> None:
        first, second, third, kept = Link(), Link(), Link(), Link()
        brokers.keep(1, first)
        brokers.keep(1, second)
        assert (first.closed, brokers._replaced) == (False, [first])
        assert await brokers.connection(1) is second
        first.close()
        brokers.keep(1, third)
        assert brokers._replaced == [second]
        brokers.keep(2, kept)
        brokers.close()
        assert [link.closed for link in (second, third, kept)] == [True, True, True]

    run(scenario)


def test_connections_to_brokers_that_moved_and_to_bootstrap_servers_are_closed(
    opened: list[tuple[object, ...]],
) -> None:
    async def scenario(brokers: Any) -> None:
        moved, stays = await brokers.connection(1), await brokers.connection(2)
        bootstrap, ended = Link(), Link()
        brokers.keep(-1, bootstrap)
        brokers.keep(5, ended)
        ended.close()
        brokers.addresses = {1: ("elsewhere", 9092), 2: ("two", 9092)}
        brokers.close_moved()
        assert [link.closed for link in (moved, stays, bootstrap)] == [True, False, True]
        assert list(brokers._connections) == [2]
        # As long as no broker is known, a bootstrap server is all there is, and a broker may not be listed now and then.
        brokers.addresses = {}
        brokers.keep(-1, again := Link())
        brokers.close_moved()
        assert not again.closed
        assert not stays.closed
        assert opened[0][0] == "one"

    run(scenario)


def test_connections_that_are_being_opened_are_given_up_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = False

    async def suspended(*_: object) -> Link:
        nonlocal given_up
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            given_up = True
            raise
        return Link()

    monkeypatch.setattr(BrokerConnection, "open", suspended)

    async def scenario(brokers: Any) -> None:
        waiting = asyncio.ensure_future(brokers.connection(1))
        await asyncio.sleep(0.01)
        brokers.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert given_up

    run(scenario)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", (("a", 9092),)),
        ("a:1, b:65535", (("a", 1), ("b", 65535))),
        ("[::1]:1,[fe80::1%eth0]", (("::1", 1), ("fe80::1%eth0", 9092))),
    ],
)
def test_an_address_has_kafkas_port_if_it_has_none(text: str, expected: tuple[tuple[str, int], ...]) -> None:
    assert addresses("--bootstrap-server", text) == expected


@pytest.mark.parametrize("part", ["", "a:", "a:b", ":1", "a:65536", "::1", "a b"])
def test_what_is_no_address_is_named_with_its_key(part: str) -> None:
    with pytest.raises(UsageError) as refused:
        addresses("bootstrap.servers", f"a:1,{part}")
    assert str(refused.value) == f"bootstrap.servers 'a:1,{part}': {part!r} is not of the form HOST:PORT"
