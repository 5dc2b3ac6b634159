"""Connections of the gateway's own: an error that nobody waits for any more is not left behind, nor is a connection."""

import asyncio
import gc
from random import Random
from typing import Any

import pytest

from rackspan.client.connection import BrokerConnection
from rackspan.client.known_brokers import KnownBroker
from rackspan.client.login import Login
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.model import Broker, BrokerId, RackId
from tests.client.fake_broker import FakeBroker


async def _given_up(cluster: UpstreamCluster) -> None:
    """A wait for a connection that ends before the connection is open."""
    waiting = asyncio.ensure_future(cluster.connection(1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])


def test_an_error_that_nobody_waits_for_is_not_reported_as_never_retrieved(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[dict[str, Any]] = []

    async def suspended(*_: object) -> BrokerConnection:
        await asyncio.sleep(0.01)
        raise TimeoutError

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        monkeypatch.setattr(BrokerConnection, "open", suspended)
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[1] = KnownBroker(1, "127.0.0.1", 1)
        await _given_up(cluster)
        await asyncio.sleep(0.05)
        gc.collect()
        with pytest.raises(TimeoutError):
            await cluster.connection(1)

    asyncio.run(work())
    assert reported == []


def test_a_connection_that_nobody_waits_for_is_kept_for_the_next() -> None:
    async def work() -> None:
        broker = FakeBroker()
        await broker.start()
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[1] = KnownBroker(1, "127.0.0.1", broker.port)
        await _given_up(cluster)
        (opening,) = cluster._brokers._opening.values()
        opened = await opening
        assert await cluster.connection(1) is opened
        cluster.close()
        await broker.close()

    asyncio.run(work())


def test_a_broker_that_the_locator_was_not_called_for_is_left_out() -> None:
    """A rack locator found broker 1 in r1 and no rack of broker 2, and was not called for broker 3 yet."""
    locator: Any = object()

    async def located() -> list[Broker]:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1), locator)
        cluster._located = {BrokerId(1): RackId("r1"), BrokerId(2): None}
        return cluster.located((number, "own") for number in (1, 2, 3))

    assert [(broker.id, broker.rack) for broker in asyncio.run(located())] == [(1, "r1"), (2, None)]
