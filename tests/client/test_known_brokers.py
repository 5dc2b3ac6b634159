"""Which broker requests go to: one whose connection is open, another one, then the bootstrap servers."""

import asyncio
from random import Random

import pytest

from rackspan.client.known_brokers import KnownBroker, KnownBrokers
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData
from tests.client.fake_broker import FakeBroker
from tests.client.test_cluster import closed_port


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
        await bootstrap.close()
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
