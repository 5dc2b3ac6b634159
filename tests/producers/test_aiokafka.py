"""The start of GuardedAIOKafkaProducer: the client's own errors and its own producer, whatever the guard finds."""

import asyncio

import pytest
from aiokafka.errors import KafkaConnectionError

from rackspan.errors import UnprovableBroker
from rackspan.producers import GuardedAIOKafkaProducer, verifier
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataResponseBroker
from tests.client.fake_broker import FakeBroker, ProvingBroker, configs_of
from tests.waiting import WITHIN_SECONDS

CLUSTER_AUTHORIZATION_FAILED = 31


async def ended(producer: GuardedAIOKafkaProducer) -> bool:
    """Whether its own producer was closed before."""
    was_closed: bool = producer._producer._closed
    await producer.stop()
    return was_closed


def test_a_start_before_a_cluster_that_is_down_has_the_clients_error_and_may_be_repeated() -> None:
    async def work() -> bool:
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1")
        for _ in range(2):
            with pytest.raises(KafkaConnectionError):
                await producer.start()
        return await ended(producer)

    assert asyncio.run(work()) is False


def test_a_start_does_not_wait_longer_for_brokers_that_do_not_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "START_SECONDS", 0.05)
    started: list[str] = []

    async def start() -> None:
        started.append("client")

    async def work() -> None:
        silent = FakeBroker()
        silent.handles.clear()
        await silent.start()
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers=f"127.0.0.1:{silent.port}")
        monkeypatch.setattr(producer._producer, "start", start)
        async with asyncio.timeout(WITHIN_SECONDS):
            await producer.start()
        await ended(producer)
        await silent.close()

    asyncio.run(work())
    assert started == ["client"]


def test_a_start_that_a_broker_without_a_proof_ends_closes_the_guards_connections_only() -> None:
    async def work() -> tuple[bool, bool]:
        broker = ProvingBroker(1, release=(4, 3))
        broker.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda _: CLUSTER_AUTHORIZATION_FAILED)
        await broker.start()
        broker.reported = [MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)]
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers=f"127.0.0.1:{broker.port}")
        with pytest.raises(UnprovableBroker):
            await producer.start()
        is_open = bool(producer._records._cluster._brokers.usable())
        was_closed = await ended(producer)
        await broker.close()
        return is_open, was_closed

    assert asyncio.run(work()) == (False, False)
