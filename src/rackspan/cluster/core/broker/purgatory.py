"""Produces that wait for the high watermark."""

from dataclasses import dataclass, field
from heapq import heappop, heappush

from rackspan.cluster.core.ids import CorrelationId


@dataclass(frozen=True, slots=True)
class Waiting:
    """One acks=all produce, acknowledged once the watermark reaches `required_offset`; `deadline` in ms."""

    correlation_id: CorrelationId
    required_offset: int
    base_offset: int
    deadline: int


@dataclass(slots=True)
class Purgatory:
    """Of one partition. Ordered by offset; `deadlines` are looked at by the tick."""

    _waiting: list[tuple[int, int, Waiting]] = field(default_factory=list)
    _count: int = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def has_reached(self, high_watermark: int) -> bool:
        """Whether anybody waits for no more than this."""
        return bool(self._waiting) and self._waiting[0][0] <= high_watermark

    def add(self, waiting: Waiting) -> None:
        self._count += 1
        heappush(self._waiting, (waiting.required_offset, self._count, waiting))

    def reached(self, high_watermark: int) -> list[Waiting]:
        """Take out whoever waits for no more than this."""
        found: list[Waiting] = []
        while self._waiting and self._waiting[0][0] <= high_watermark:
            found.append(heappop(self._waiting)[2])
        return found

    def expired(self, now: int) -> list[Waiting]:
        """Take out whoever waited too long."""
        due = [entry[2] for entry in self._waiting if entry[2].deadline <= now]
        if due:
            self._waiting = sorted(entry for entry in self._waiting if entry[2].deadline > now)
        return due

    def emptied(self) -> list[Waiting]:
        found, self._waiting = [entry[2] for entry in self._waiting], []
        return found
