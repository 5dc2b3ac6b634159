"""One connection to each broker: shared, replaced without a loss, and closed when the broker has moved."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rackspan.client.brokers import BrokerConnections, KnownBroker, KnownBrokers, addresses
from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, UsageError
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData
from tests.client.fake_broker import FakeBroker
from tests.client.test_cluster import closed_port


class Link:
    """An open connection."""

    def __init__(self) -> None:
        self.closed = False
        self.is_usable = True
        self.left_seconds = 0.0

    def was_left_for(self, seconds: float) -> bool:
        return self.left_seconds > seconds

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


def test_a_connection_that_was_left_long_ago_is_closed_when_another_one_is() -> None:
    """With logins that last a minute there is one a minute."""

    async def scenario(brokers: Any) -> None:
        links = [Link() for _ in range(4)]
        for link in links[:3]:
            brokers.keep(1, link)
        links[0].left_seconds = 61.0
        brokers.keep(1, links[3])
        assert [link.closed for link in links] == [True, False, False, False]
        assert brokers._replaced == links[1:3]
        brokers.close()

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
        ("SASL_SSL://a:1, INTERNAL://b,SSL://[::1]:1", (("a", 1), ("b", 9092), ("::1", 1))),
        ("2001:db8::1:9092", (("2001:db8::1", 9092),)),
    ],
)
def test_an_address_has_kafkas_port_if_it_has_none(text: str, expected: tuple[tuple[str, int], ...]) -> None:
    assert addresses("--bootstrap-server", text) == expected


@pytest.mark.parametrize("part", ["", "a:", "a:b", ":1", "a:65536", "::1", "a b", "a:1/", "u@a:1", "SSL://", "[a:1"])
def test_what_is_no_address_is_named_with_its_key(part: str) -> None:
    with pytest.raises(UsageError) as refused:
        addresses("bootstrap.servers", f"a:1,{part}")
    assert (
        str(refused.value)
        == f"bootstrap.servers 'a:1,{part}': {part!r} is not of the form HOST:PORT or PROTOCOL://HOST:PORT; write it as broker-1:9092"
    )


def metadata_of(*ports: int) -> MetadataResponseData:
    brokers = [
        MetadataResponseBroker(node_id=number, host="127.0.0.1", port=port, rack=f"r{number}")
        for number, port in enumerate(ports, 1)
    ]
    return MetadataResponseData(cluster_id="c", brokers=brokers)


def test_an_address_of_a_response_is_taken_over_and_the_rack_is_kept() -> None:
    known = KnownBrokers("127.0.0.1:1", Login(), Random(1))
    known.by_id[1] = before = KnownBroker(1, "a", 1, "r1")
    known.record(1, "a", 1)
    assert known.by_id[1] is before
    known.record(1, "b", 1)
    known.record(2, "c", 3)
    assert known.by_id == {1: KnownBroker(1, "b", 1, "r1"), 2: KnownBroker(2, "c", 3)}


def test_some_brokers_are_others_each_time_and_the_same_for_a_seed() -> None:
    def chosen(seed: int) -> list[list[int]]:
        known = KnownBrokers("127.0.0.1:1", Login(), Random(seed))
        known.by_id = {number: KnownBroker(number, "a", number) for number in (5, 3, 1, 4, 2)}
        assert sorted(known.some(9)) == [1, 2, 3, 4, 5]
        return [known.some(2) for _ in range(20)]

    assert chosen(1) == chosen(1)
    assert len({tuple(sorted(some)) for some in chosen(1)}) > 5
    assert all(len(set(some)) == 2 for some in chosen(1))


def test_requests_go_to_open_connections_then_to_other_brokers_then_to_the_bootstrap_servers() -> None:
    async def scenario() -> None:
        one, two, bootstrap = FakeBroker(), FakeBroker(), FakeBroker()
        for broker in (one, two, bootstrap):
            await broker.start()
        gone = closed_port()
        known = KnownBrokers(f"{gone},127.0.0.1:{bootstrap.port}", Login(), Random(1))
        # None is known yet: the second bootstrap server, under an id of its own.
        number, connection = await known.any_broker()
        assert (number, bootstrap.connections) == (-2, 1)
        assert (await known.any_connection()) is not connection, "it is no broker by its id, and may be closed"
        known.by_id = {1: KnownBroker(1, "127.0.0.1", one.port), 2: KnownBroker(2, "127.0.0.1", two.port)}
        kept = await known.connection(2)
        for _ in range(5):
            assert await known.any_broker() == (2, kept)
        # Broker 2 is gone: broker 1 is next.
        await two.close()
        await asyncio.sleep(0.05)
        number, _ = await known.any_broker()
        assert number == 1
        await one.close()
        await asyncio.sleep(0.05)
        number, _ = await known.any_broker()
        assert number == -2
        opened = bootstrap.connections
        for _ in range(3):
            assert (await known.any_broker())[0] == -2
        assert bootstrap.connections == opened, "one is enough while no broker can be used"
        await bootstrap.close()
        await asyncio.sleep(0.05)
        with pytest.raises(
            ClusterUnreachable, match=r"no broker of the cluster responds \(ConnectionRefusedError: .*\); see"
        ):
            await known.any_broker()
        known.close()

    asyncio.run(scenario())


def test_a_refresh_reads_brokers_addresses_and_racks_and_closes_what_moved() -> None:
    async def scenario() -> None:
        before, after = FakeBroker(), FakeBroker()
        await before.start()
        await after.start()

        async def metadata(request: object) -> MetadataResponseData | None:
            return responses.pop(0)

        responses = [metadata_of(before.port), metadata_of(after.port, before.port)]
        before.handles[ApiKey.METADATA] = metadata
        known = KnownBrokers(f"127.0.0.1:{before.port}", Login(), Random(1))
        await known.refresh()
        assert (known.cluster_id, known.by_id) == ("c", {1: KnownBroker(1, "127.0.0.1", before.port, "r1")})
        first = await known.connection(1)
        await known.refresh()
        assert first.closed, "broker 1 has moved"
        assert known.by_id[2] == KnownBroker(2, "127.0.0.1", before.port, "r2")
        assert await known.connection(1) is not first
        assert after.connections == 1
        known.close()
        for broker in (before, after):
            await broker.close()

    asyncio.run(scenario())


def test_metadata_that_cannot_be_read_costs_its_connection() -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start()

        async def hang_up(_: object) -> None:
            broker.send_raw(b"\x00\x00\x00\x08" + bytes(8))

        broker.handles[ApiKey.METADATA] = hang_up
        known = KnownBrokers(f"127.0.0.1:{broker.port}", Login(), Random(1))
        known.by_id[1] = KnownBroker(1, "127.0.0.1", broker.port)
        connection = await known.connection(1)
        with pytest.raises(
            ClusterUnreachable, match="the cluster's metadata could not be read: OtherProtocol: a response to"
        ):
            await known.refresh()
        assert connection.closed
        known.close()
        await broker.close()

    asyncio.run(scenario())


def test_metadata_without_a_response_costs_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        known, link = KnownBrokers("127.0.0.1:1", Login(), Random(1)), Link()

        async def call(*_: object) -> None:
            raise TimeoutError("no response to METADATA in 5 s")

        async def any_connection() -> Any:
            return link

        link.call = call  # type: ignore[attr-defined]
        monkeypatch.setattr(known, "any_connection", any_connection)
        with pytest.raises(ClusterUnreachable, match="the cluster's metadata could not be read: TimeoutError: no resp"):
            await known.refresh()
        assert link.closed

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(4))
def test_a_seed_chooses_the_same_brokers_whatever_their_ids(seed: int) -> None:
    """A set of 1 and 8 has 8 first."""
    expected = [1, 8]
    Random(seed).shuffle(expected)

    async def scenario() -> int:
        broker = FakeBroker()
        await broker.start()
        known = KnownBrokers("127.0.0.1:1", Login(), Random(seed))
        known.by_id = {number: KnownBroker(number, "127.0.0.1", broker.port) for number in (8, 1)}
        number, _ = await known.any_broker()
        known.close()
        await broker.close()
        return number

    assert asyncio.run(scenario()) == expected[0]
