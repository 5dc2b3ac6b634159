"""Producers: plain and idempotent, with the retries of real ones, and no memory but their own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from rackspan.cluster.core.batch import NO_PRODUCER, NO_SEQUENCE, RecordBatch
from rackspan.cluster.core.ids import CorrelationId
from rackspan.cluster.core.messages import Produce, ProduceResponse
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import HEADER_BYTES
from rackspan.model.ids import BrokerId, TopicPartition
from tests.simulation.environment.clock import Clock

DELIVERY_MS: Final = 2_500
REQUEST_MS: Final = 400
BACKOFF_MS: Final = 40

FATAL: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNKNOWN_PRODUCER_ID}
)
"""After these an idempotent producer begins anew under another producer id."""


_DATA: Final = bytes(HEADER_BYTES)
"""A header's worth, so that fetches are limited by size and a follower catches up in steps."""


@dataclass(slots=True)
class Attempt:
    """One batch on its way: `record` is the number of its first record, the others follow."""

    record: int
    count: int
    sequence: int
    give_up_at: int
    correlation_id: CorrelationId = -1


@dataclass(slots=True)
class Producer:
    """Sends one batch after another with acks=all (now and then with less) and retries what may be retried.

    `find_leader` is a look at some broker's metadata; `send` puts a request on the network. Records are numbered in
    `Batch.max_timestamp`, which no broker interprets here.
    """

    partition: TopicPartition
    clock: Clock
    rng: Random
    find_leader: Callable[[], BrokerId | None]
    send: Callable[[BrokerId, Produce], None]
    next_record: Callable[[int], int]
    next_correlation_id: Callable[[], CorrelationId]
    next_producer_id: Callable[[], int]
    idempotent: bool
    stop_at: int
    producer_id: int = NO_PRODUCER
    sequence: int = 0
    current: Attempt | None = None
    acknowledged: int = 0
    attempts: dict[CorrelationId, Attempt] = field(default_factory=dict)

    def start(self) -> None:
        if self.idempotent:
            self.producer_id = self.next_producer_id()
        self._next_batch()

    def _next_batch(self) -> None:
        if self.clock.now >= self.stop_at:
            self.current = None
            return
        count = self.rng.randint(1, 3)
        self.current = Attempt(self.next_record(count), count, self.sequence, self.clock.now + DELIVERY_MS)
        self._try()

    def _try(self) -> None:
        attempt = self.current
        if attempt is None:
            return
        if self.clock.now >= attempt.give_up_at:
            self._give_up()
            return
        attempt.correlation_id = self.next_correlation_id()
        self.attempts[attempt.correlation_id] = attempt
        leader = self.find_leader()
        if leader is not None:
            self.send(leader, Produce(attempt.correlation_id, self.partition, (self._batch(attempt),), -1, REQUEST_MS))
        correlation_id = attempt.correlation_id
        self.clock.after(REQUEST_MS + self.rng.randint(50, 200), lambda: self._timed_out(correlation_id))

    def _batch(self, attempt: Attempt) -> RecordBatch:
        numbered = self.idempotent
        return RecordBatch(
            0,
            attempt.count - 1,
            -1,
            producer_id=self.producer_id if numbered else NO_PRODUCER,
            producer_epoch=0 if numbered else -1,
            base_sequence=attempt.sequence if numbered else NO_SEQUENCE,
            max_timestamp=attempt.record,
            data=_DATA,
        )

    def on_response(self, correlation_id: CorrelationId, result: ProduceResponse) -> None:
        attempt = self.current
        if attempt is None or attempt.correlation_id != correlation_id:
            return
        if result.error is ErrorCode.NONE:
            self.acknowledged += 1
            self.sequence += attempt.count
            self.clock.after(self.rng.randint(0, 30), self._next_batch)
        elif self.idempotent and result.error in FATAL:
            self._give_up()
        else:
            self._retry(attempt)

    def _timed_out(self, correlation_id: CorrelationId) -> None:
        attempt = self.current
        if attempt is not None and attempt.correlation_id == correlation_id:
            self._retry(attempt)

    def _retry(self, attempt: Attempt) -> None:
        attempt.correlation_id = -1
        self.clock.after(self.rng.randint(1, 2 * BACKOFF_MS), self._try)

    def _give_up(self) -> None:
        """Whether the batch was written is unknown: an idempotent producer may not use its numbers again."""
        if self.idempotent:
            self.producer_id = self.next_producer_id()
            self.sequence = 0
        self.clock.after(self.rng.randint(1, BACKOFF_MS), self._next_batch)
