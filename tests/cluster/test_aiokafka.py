"""aiokafka against the embedded cluster."""

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import TopicPartition

from rackspan.cluster import EmbeddedCluster
from tests.waiting import WITHIN_SECONDS


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, WITHIN_SECONDS))


async def consumed(consumer: AIOKafkaConsumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        batches = await consumer.getmany(timeout_ms=1000)
        found += [record.value for batch in batches.values() for record in batch]
    return found


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_is_produced_is_consumed(cluster: EmbeddedCluster, idempotent: bool) -> None:
    topic = f"aio-{uuid4().hex[:8]}"
    values = [b"%d" % number for number in range(100)]

    async def scene() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, enable_idempotence=idempotent
        ) as producer:
            for value in values:
                await producer.send(topic, value)
        async with AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert await consumed(consumer, len(values)) == values
            assert await consumer.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): len(values)}

    run(scene())


def test_two_members_of_a_group_share_a_topic(cluster: EmbeddedCluster) -> None:
    topic = f"aio-{uuid4().hex[:8]}"

    async def scene() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 4, 3)])
        await admin.close()
        settings = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "group_id": f"g-{topic}",
            "auto_offset_reset": "earliest",
        }
        async with AIOKafkaConsumer(topic, **settings) as one, AIOKafkaConsumer(topic, **settings) as other:
            while len(one.assignment()) != 2 or len(other.assignment()) != 2:
                await asyncio.gather(one.getmany(timeout_ms=50), other.getmany(timeout_ms=50))
            assert len(one.assignment() | other.assignment()) == 4
            async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                for number in range(40):
                    await producer.send(topic, b"%d" % number, partition=number % 4)
            found = await asyncio.gather(consumed(one, 20), consumed(other, 20))
            assert sorted(map(int, [*found[0], *found[1]])) == list(range(40))

    run(scene())
