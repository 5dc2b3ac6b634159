"""The effects of the event that is being handled, and the appends that are not acknowledged yet."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.cluster.core.messages import Respond
from rackspan.kafka_bytes.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class Append:
    """Append to a partition of the coordinator's own topic, acks=all, and pass the outcome to `on_appended` with `write`.

    Appends to one partition must be made in the order in which they come out.
    """

    partition: int
    batch: RecordBatch
    write: int


CoordinatorEffect: TypeAlias = Respond | Append

Then: TypeAlias = Callable[[int, ErrorCode, int], None]
"""Called after an append: (now in ms, error, offset of the batch's first record or NO_OFFSET)."""


@dataclass(frozen=True, slots=True)
class _Write:
    partition: int
    then: Then


class Writes:
    """Collects effects. A write's number is never used twice, so that a late acknowledgement is ignored."""

    __slots__ = ("_effects", "_last", "_waiting")

    def __init__(self) -> None:
        self._effects: list[CoordinatorEffect] = []
        self._waiting: dict[int, _Write] = {}
        self._last = 0

    def respond(self, correlation_id: CorrelationId, response: object) -> None:
        self._effects.append(Respond(correlation_id, response))

    def append(self, partition: int, batch: RecordBatch, then: Then) -> None:
        self._last += 1
        self._waiting[self._last] = _Write(partition, then)
        self._effects.append(Append(partition, batch, self._last))

    def acknowledged(self, now: int, write: int, error: ErrorCode, base_offset: int) -> None:
        waiting = self._waiting.pop(write, None)
        if waiting is not None:
            waiting.then(now, error, base_offset)

    def abandon(self, now: int, partition: int) -> None:
        """Fail the pending writes of a partition that another broker leads now."""
        for number in [number for number, write in self._waiting.items() if write.partition == partition]:
            self.acknowledged(now, number, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET)

    def pending(self, partition: int) -> int:
        """How many writes to this partition are not acknowledged."""
        return sum(write.partition == partition for write in self._waiting.values())

    def take(self) -> list[CoordinatorEffect]:
        effects, self._effects = self._effects, []
        return effects
