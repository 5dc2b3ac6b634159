"""The heap of what is still to happen, in order of time and then of being planned."""

import heapq
from collections.abc import Callable
from typing import TypeAlias

Callback: TypeAlias = Callable[[], None]


class Clock:
    """Virtual milliseconds: they pass as events are taken, and in no other way."""

    __slots__ = ("_heap", "_number", "now")

    def __init__(self) -> None:
        self.now = 0
        self._number = 0
        self._heap: list[tuple[int, int, Callback]] = []

    def at(self, time_ms: int, callback: Callback) -> None:
        """Plan something, not before now."""
        self._number += 1
        heapq.heappush(self._heap, (max(time_ms, self.now), self._number, callback))

    def after(self, delay_ms: int, callback: Callback) -> None:
        self.at(self.now + delay_ms, callback)

    def run_until(self, time_ms: int) -> int:
        """Runs every event up to and including `time_ms`. Returns how many events there were."""
        events = 0
        heap = self._heap
        while heap and heap[0][0] <= time_ms:
            self.now, _, callback = heapq.heappop(heap)
            callback()
            events += 1
        self.now = time_ms
        return events
