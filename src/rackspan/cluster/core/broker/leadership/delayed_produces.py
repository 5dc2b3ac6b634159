"""Produces with acks=all that wait for the high watermark (Kafka: DelayedProduce, its purgatory)."""

from dataclasses import dataclass, field
from heapq import heappop, heappush

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.ids import CorrelationId


@dataclass(frozen=True, slots=True)
class DelayedProduce:
    """One produce, acknowledged once the high watermark reaches `required_offset`; `deadline` in ms."""

    correlation_id: CorrelationId
    required_offset: int
    base_offset: int
    deadline: int
    marker: tuple[int, Marker] | None = None
    """The producer id and the marker, where the produce ends a transaction."""


@dataclass(slots=True)
class DelayedProduces:
    """The delayed produces of one partition, ordered by offset. Deadlines are checked at each clock tick."""

    _waiting: list[tuple[int, int, DelayedProduce]] = field(default_factory=list)
    _count: int = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def has_reached(self, high_watermark: int) -> bool:
        """Whether a produce requires no more than this."""
        return bool(self._waiting) and self._waiting[0][0] <= high_watermark

    def add(self, produce: DelayedProduce) -> None:
        self._count += 1
        heappush(self._waiting, (produce.required_offset, self._count, produce))

    def pop_reached(self, high_watermark: int) -> list[DelayedProduce]:
        """Remove and return the produces that require no more than this."""
        reached: list[DelayedProduce] = []
        while self._waiting and self._waiting[0][0] <= high_watermark:
            reached.append(heappop(self._waiting)[2])
        return reached

    def pop_expired(self, now: int) -> list[DelayedProduce]:
        """Remove and return the produces whose deadline has passed."""
        due = [entry[2] for entry in self._waiting if entry[2].deadline <= now]
        if due:
            self._waiting = sorted(entry for entry in self._waiting if entry[2].deadline > now)
        return due

    def pop_all(self) -> list[DelayedProduce]:
        """Remove and return every produce."""
        produces, self._waiting = [entry[2] for entry in self._waiting], []
        return produces
