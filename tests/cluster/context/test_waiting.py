"""What one running broker waits for: producer ids, metadata, and records for a fetch."""

import asyncio
from dataclasses import replace
from functools import partial

from rackspan.cluster.context import DelayedFetches, MetadataUpdates, ProducerIds
from rackspan.cluster.core.admin_messages import ProducerIdBlock
from rackspan.cluster.core.metadata import EMPTY_IMAGE
from rackspan.model.ids import TopicPartition
from tests.waiting import WITHIN_SECONDS

ORDERS, LOGS = TopicPartition("orders", 0), TopicPartition("logs", 0)


def test_producer_ids_are_given_once_also_to_clients_that_come_together() -> None:
    async def scene() -> None:
        blocks = iter([ProducerIdBlock(1000, 3), None, ProducerIdBlock(2000, 3)])

        async def allocate() -> ProducerIdBlock | None:
            await asyncio.sleep(0)
            return next(blocks)

        ids = ProducerIds(allocate)
        assert await asyncio.gather(*(ids.next() for _ in range(4))) == [1000, 1001, 1002, None]
        assert [await ids.next() for _ in range(2)] == [2000, 2001]

    asyncio.run(scene())


def test_a_fetch_is_woken_by_its_partitions_until_it_leaves() -> None:
    fetches, woken = DelayedFetches(), list[str]()

    def first() -> None:
        woken.append("first")
        fetches.remove([ORDERS, LOGS], first)

    def second() -> None:
        woken.append("second")

    fetches.add([ORDERS, LOGS], first)
    fetches.add([ORDERS], second)
    fetches.wake(LOGS)
    assert (woken, len(fetches)) == (["first"], 1)
    fetches.wake(ORDERS)
    assert woken == ["first", "second"]
    fetches.remove([ORDERS, LOGS], second)
    fetches.wake(ORDERS)
    assert (woken, len(fetches)) == (["first", "second"], 0)


class Metadata:
    """A broker's metadata at `offset`, of a cluster that has committed offset 5."""

    def __init__(self) -> None:
        self.offset = 3
        self.updates = MetadataUpdates(lambda: replace(EMPTY_IMAGE, offset=self.offset), lambda: 5)

    def apply(self, offset: int) -> None:
        self.offset = offset
        self.updates.notify()


def test_a_wait_for_metadata_ends_with_the_update_that_brings_it() -> None:
    async def scene() -> None:
        metadata = Metadata()
        waiting = asyncio.ensure_future(metadata.updates.wait_for(lambda image: image.offset >= 5, 600_000))
        for offset in (4, 5):
            await asyncio.sleep(0.01)
            assert not waiting.done()
            metadata.apply(offset)
        assert await asyncio.wait_for(waiting, WITHIN_SECONDS)

    asyncio.run(scene())


def test_a_wait_for_metadata_ends_by_itself() -> None:
    async def scene() -> None:
        metadata = Metadata()
        never = partial(metadata.updates.wait_for, lambda image: image.offset == 5)
        assert not await never(10)  # milliseconds
        assert not await never(0)
        # A broker whose metadata lags is a fault that a test injects: a request with any timeout waits a second for it.
        assert not await asyncio.wait_for(metadata.updates.wait_until_caught_up(600_000), WITHIN_SECONDS)
        metadata.offset = 5
        assert await metadata.updates.wait_until_caught_up(0)

    asyncio.run(scene())
