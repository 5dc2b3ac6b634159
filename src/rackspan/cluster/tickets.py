"""Who waits for which answer of the core."""

from collections.abc import Callable, Iterable
from typing import Any

from rackspan.cluster.core.ids import Ticket


class Tickets:
    """Numbers that are never used twice, and what to do when the answer comes. An answer nobody waits for is dropped."""

    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[Ticket, Callable[[Any], None]] = {}

    def draw(self, answered: Callable[[Any], None]) -> Ticket:
        self._last += 1
        self._waiting[self._last] = answered
        return self._last

    def answer(self, ticket: Ticket, result: Any) -> None:
        answered = self._waiting.pop(ticket, None)
        if answered is not None:
            answered(result)

    def forget(self, tickets: Iterable[Ticket]) -> None:
        for ticket in tickets:
            self._waiting.pop(ticket, None)

    def __len__(self) -> int:
        return len(self._waiting)
