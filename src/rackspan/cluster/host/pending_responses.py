"""Who waits for which answer of the core."""

from collections.abc import Callable, Iterable
from typing import Any

from rackspan.cluster.core.ids import CorrelationId


class PendingResponses:
    """Numbers that are never used twice, and what to do when the answer comes. An answer nobody waits for is dropped."""

    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[CorrelationId, Callable[[Any], None]] = {}

    def draw(self, answered: Callable[[Any], None]) -> CorrelationId:
        self._last += 1
        self._waiting[self._last] = answered
        return self._last

    def answer(self, correlation_id: CorrelationId, result: Any) -> None:
        answered = self._waiting.pop(correlation_id, None)
        if answered is not None:
            answered(result)

    def forget(self, pending_responses: Iterable[CorrelationId]) -> None:
        for correlation_id in pending_responses:
            self._waiting.pop(correlation_id, None)

    def __len__(self) -> int:
        return len(self._waiting)
