"""Fetches that wait at a broker until one of their partitions changes (Kafka's DelayedFetch purgatory)."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from rackspan.model.ids import TopicPartition

Wake: TypeAlias = Callable[[], None]


class DelayedFetches:
    """The waiting fetches of one broker by partition. A fetch is woken by a change only, so waiting costs nothing."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, set[Wake]] = {}

    def add(self, partitions: Iterable[TopicPartition], wake: Wake) -> None:
        for partition in partitions:
            self._waiting.setdefault(partition, set()).add(wake)

    def remove(self, partitions: Iterable[TopicPartition], wake: Wake) -> None:
        for partition in partitions:
            waiting = self._waiting.get(partition)
            if waiting is not None:
                waiting.discard(wake)
                if not waiting:
                    del self._waiting[partition]

    def wake(self, partition: TopicPartition) -> None:
        """Call every fetch that waits for the partition. A fetch that is done removes itself."""
        for wake in tuple(self._waiting.get(partition, ())):
            wake()

    def __len__(self) -> int:
        return len(self._waiting)
