"""One transactional id: its state, and the transitions it may make.

    Empty ──partitions──► Ongoing ──EndTxn──► PrepareCommit | PrepareAbort ──markers──► CompleteCommit | CompleteAbort
                             │ ▲                                                                 │
              time is up, or │ └───────────────────── partitions ────────────────────────────────┘
           another producer ─┴──► PrepareAbort, with a higher epoch: the old one is fenced

Each arrow is a record in `__transaction_state`, and takes effect once that is committed. Source: KIP-98, KIP-360, KIP-890;
TransactionMetadata.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from rackspan.cluster.core.transactions.records import (
    NO_PRODUCER_ID,
    TransactionLogValue,
    TransactionState,
    grouped,
)
from rackspan.cluster.core.transactions.requests import NO_PRODUCER_EPOCH, AddPartitions, EndTransaction, InitProducerId
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition

LAST_EPOCH: Final = 2**15 - 2
"""The largest epoch that a producer gets; the one above it is for fencing that producer."""

NOT_STARTED: Final = -1
EPOCH_BUMPING_CLIENT: Final = 2
"""The client version (transaction.version 2) whose producers take a new epoch from every end (KIP-890, part 2)."""
_ENDING: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


@dataclass(slots=True)
class Transaction:
    """`value` is its last committed record. `in_transition`: another record is being appended.

    `last_epoch`: the one before the epoch was last bumped, by which a repeated request is known.
    `unmarked`: partitions whose marker is not written yet; `retry` when those that failed are tried again (ms), and
    `complete_at` when the record that all are marked is.
    """

    transactional_id: str
    partition: int
    value: TransactionLogValue
    in_transition: bool = False
    last_epoch: int = NO_PRODUCER_EPOCH
    unmarked: set[TopicPartition] = field(default_factory=set)
    retry: dict[TopicPartition, int] = field(default_factory=dict)
    complete_at: int | None = None

    @property
    def ending(self) -> bool:
        return self.value.state in _ENDING

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(TopicPartition(topic, each) for topic, numbers in self.value.partitions for each in numbers)

    def is_late(self, now: int) -> bool:
        ongoing = self.value.state is TransactionState.ONGOING
        return ongoing and not self.in_transition and self.value.started_ms + self.value.timeout_ms <= now

    # Errors of requests.

    def busy(self) -> ErrorCode:
        busy = self.in_transition or self.ending
        return ErrorCode.CONCURRENT_TRANSACTIONS if busy else ErrorCode.NONE

    def init_error(self, request: InitProducerId) -> ErrorCode:
        """A producer that recovers must be the current one, or the one before, whose response was lost."""
        if self.in_transition:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return self.busy() if self._is_its_producer(request) else ErrorCode.PRODUCER_FENCED

    def _is_its_producer(self, request: InitProducerId) -> bool:
        current = self.value
        if request.producer_id == NO_PRODUCER_ID or current.producer_epoch == NO_PRODUCER_EPOCH:
            return True
        if request.producer_id == current.producer_id:
            return request.producer_epoch in (current.producer_epoch, self.last_epoch)
        return request.producer_id == current.previous_producer_id and request.producer_epoch >= LAST_EPOCH

    def add_error(self, request: AddPartitions) -> ErrorCode:
        if request.producer_id != self.value.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if request.producer_epoch != self.value.producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        return self.busy()

    def end_error(self, request: EndTransaction) -> ErrorCode:
        """NONE if the transaction is to be ended now, or has ended so already (`ended_as_requested`)."""
        if request.producer_id not in (self.value.producer_id, self.value.previous_producer_id):
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if request.producer_epoch != self.value.producer_epoch and not self._repeated(request):
            return ErrorCode.PRODUCER_FENCED
        if self.in_transition:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return self._state_error(request)

    def _state_error(self, request: EndTransaction) -> ErrorCode:
        state = self.value.state
        if state is TransactionState.ONGOING:
            return ErrorCode.NONE
        if state in _ENDING:
            same = (state is TransactionState.PREPARE_COMMIT) == request.commit
            return ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
        if self.ended_as_requested(request) or (request.bump_epoch and not request.commit):
            return ErrorCode.NONE
        return ErrorCode.INVALID_TXN_STATE

    def _repeated(self, request: EndTransaction) -> bool:
        """Whether the same end is requested again with the epoch that it has bumped, its first response being lost.

        Only an end leaves the state that it leads to. In any other a newer producer was let in, or the producer itself
        has gone on: the older epoch is fenced.
        """
        ended = self.ending or self.value.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
        return (
            ended and request.bump_epoch and request.producer_epoch in (self.last_epoch, self.value.producer_epoch - 1)
        )

    def ended_as_requested(self, request: EndTransaction) -> bool:
        ended = TransactionState.COMPLETE_COMMIT if request.commit else TransactionState.COMPLETE_ABORT
        if request.bump_epoch and request.producer_epoch == self.value.producer_epoch:
            return False  # No transaction of this epoch has ended yet.
        return self.value.state is ended

    # Transitions.

    def initialised(self, request: InitProducerId, now: int) -> TransactionLogValue:
        """A new epoch; at the last one, a new producer id. Repeated after a lost response, the same again."""
        current = self.value
        repeated = request.producer_epoch != NO_PRODUCER_EPOCH and request.producer_epoch != current.producer_epoch
        same = replace(current, timeout_ms=request.timeout_ms, updated_ms=now)
        if repeated and current.producer_epoch != NO_PRODUCER_EPOCH:
            return same
        bumped = _bumped(same, request.fresh_producer_id)
        return replace(bumped, state=TransactionState.EMPTY, partitions=(), started_ms=NOT_STARTED)

    def with_partitions(self, request: AddPartitions, now: int) -> TransactionLogValue:
        ongoing = self.value.state is TransactionState.ONGOING
        return replace(
            self.value,
            state=TransactionState.ONGOING,
            partitions=grouped([*(self.partitions if ongoing else ()), *request.partitions]),
            updated_ms=now,
            started_ms=self.value.started_ms if ongoing else now,
            client_version=EPOCH_BUMPING_CLIENT if request.by_writing else 0,
        )

    def prepared(
        self, commit: bool, now: int, bump: bool, fresh_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionLogValue:
        """About to end. Its markers have the new epoch, so that a bump fences writes with the old one."""
        state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
        value = replace(self.value, state=state, updated_ms=now, client_version=EPOCH_BUMPING_CLIENT if bump else 0)
        if not bump:
            return value
        following = fresh_producer_id if value.producer_epoch >= LAST_EPOCH else NO_PRODUCER_ID
        return replace(value, producer_epoch=value.producer_epoch + 1, next_producer_id=following)

    def fenced(self, now: int) -> TransactionLogValue:
        """To be aborted by the coordinator: it timed out, or another producer began."""
        epoch = min(self.value.producer_epoch + 1, LAST_EPOCH + 1)
        return replace(self.value, state=TransactionState.PREPARE_ABORT, producer_epoch=epoch, updated_ms=now)

    def completed(self, now: int) -> TransactionLogValue:
        commit = self.value.state is TransactionState.PREPARE_COMMIT
        state = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        value = replace(self.value, state=state, partitions=(), updated_ms=now)
        if value.next_producer_id == NO_PRODUCER_ID:
            return value
        return replace(
            value,
            producer_id=value.next_producer_id,
            producer_epoch=0,
            previous_producer_id=value.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )


def _bumped(value: TransactionLogValue, fresh_producer_id: int) -> TransactionLogValue:
    if value.producer_epoch < LAST_EPOCH:
        return replace(value, producer_epoch=value.producer_epoch + 1)
    return replace(value, producer_id=fresh_producer_id, producer_epoch=0, previous_producer_id=value.producer_id)


def new_value(request: InitProducerId, now: int) -> TransactionLogValue:
    """The state of a new id: without an epoch until its producer gets one."""
    return TransactionLogValue(
        *(request.fresh_producer_id, NO_PRODUCER_EPOCH, request.timeout_ms, TransactionState.EMPTY, ()),
        updated_ms=now,
        started_ms=NOT_STARTED,
    )
