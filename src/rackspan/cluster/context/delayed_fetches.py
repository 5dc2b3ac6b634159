"""Fetches that wait at a broker for news of their partitions (Kafka's delayed_fetches)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from rackspan.model.ids import TopicPartition

Wake: TypeAlias = Callable[[], None]


class DelayedFetches:
    """Who waits for which partition. Nobody is woken without news: waiting costs nothing."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, set[Wake]] = {}

    def wait(self, partitions: Iterable[TopicPartition], wake: Wake) -> None:
        for partition in partitions:
            self._waiting.setdefault(partition, set()).add(wake)

    def leave(self, partitions: Iterable[TopicPartition], wake: Wake) -> None:
        for partition in partitions:
            waiting = self._waiting.get(partition)
            if waiting is not None:
                waiting.discard(wake)
                if not waiting:
                    del self._waiting[partition]

    def news(self, partition: TopicPartition) -> None:
        """Wake all who wait for it; they leave by themselves."""
        for wake in tuple(self._waiting.get(partition, ())):
            wake()

    def __len__(self) -> int:
        return len(self._waiting)


async def until(done: Callable[[], bool], news: Callable[[], Awaitable[object]], seconds: float) -> bool:
    """Wait until `done`, looking again after each `news`; False when the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not done():
        left = deadline - loop.time()
        if left <= 0:
            return False
        try:
            await asyncio.wait_for(news(), left)
        except TimeoutError:
            return done()
    return True
