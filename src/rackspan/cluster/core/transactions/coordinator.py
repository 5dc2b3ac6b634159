"""The transaction coordinator of one broker: it runs the ids whose partition of `__transaction_state` the broker leads.

Events as the group coordinator's, and `on_marked`. The response to a commit is sent once PrepareCommit is committed: every
later coordinator completes it, so that the response need not wait for the markers (KIP-98).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.coordination import (
    Append,
    CoordinatorRecord,
    Writes,
    decode_batch,
    encode_batch,
    marker_batch,
    partition_for,
)
from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET, CorrelationId
from rackspan.cluster.core.messages import Respond
from rackspan.cluster.core.transactions import records
from rackspan.cluster.core.transactions.records import TransactionLogValue, TransactionState
from rackspan.cluster.core.transactions.requests import (
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    AddPartitions,
    AddPartitionsResponse,
    DescribeTransactionResponse,
    EndTransaction,
    EndTransactionResponse,
    InitProducerId,
    InitProducerIdResponse,
    ListedTransaction,
    TransactionRequest,
    refusal,
)
from rackspan.cluster.core.transactions.transaction import EPOCH_BUMPING_CLIENT, Transaction, new_value
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Times in ms. Kafka's defaults, but for ten partitions of `__transaction_state` (50)."""

    transaction_max_timeout_ms: int = 900_000
    transaction_state_log_num_partitions: int = 10
    marker_retry_ms: int = 100
    """The pause before a marker is sent again; Kafka's retry backoff."""


STATE_NAMES: Final = {state: state.name.title().replace("_", "") for state in TransactionState}


def described(transaction: Transaction) -> DescribeTransactionResponse:
    value = transaction.value
    return DescribeTransactionResponse(
        *(ErrorCode.NONE, transaction.transactional_id, STATE_NAMES[value.state], value.timeout_ms),
        *(value.started_ms, value.producer_id, value.producer_epoch),
        topics=dict(value.partitions),
    )


def listed(
    transactions: Iterable[Transaction], now: int, states: frozenset[str], producers: frozenset[int], duration_ms: int
) -> list[ListedTransaction]:
    passing = [
        each
        for each in transactions
        if (not states or STATE_NAMES[each.value.state] in states)
        and (not producers or each.value.producer_id in producers)
        and (duration_ms < 0 or _runs_for(each, now) > duration_ms)
    ]
    named = [ListedTransaction(t.transactional_id, t.value.producer_id, STATE_NAMES[t.value.state]) for t in passing]
    return sorted(named, key=lambda each: each.transactional_id)


def _runs_for(transaction: Transaction, now: int) -> int:
    started = transaction.value.started_ms
    return now - started if started >= 0 else -1


@dataclass(frozen=True, slots=True)
class WriteMarker:
    """Append `batch`, a transaction's end, to `partition` wherever that is led, acks=all; then call `on_marked`."""

    transactional_id: str
    partition: TopicPartition
    batch: RecordBatch


TransactionEffect: TypeAlias = Respond | Append | WriteMarker

_Done: TypeAlias = Callable[[int, ErrorCode], None]

_PRODUCER_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_NOT_TRIED_AGAIN = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""A newer producer epoch or coordinator has ended this transaction there: no marker is needed."""


class TransactionCoordinator:
    """The ids of the partitions that are led here. It allocates no producer ids: they come with the requests."""

    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings
        self._writes = Writes()
        self._markers: list[WriteMarker] = []
        self._partitions: dict[int, dict[str, Transaction]] = {}
        self._leader_epochs: dict[int, int] = {}

    # Leadership.

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> list[TransactionEffect]:
        """Load a partition of `__transaction_state` that this broker leads, and complete the transactions that were ending."""
        if leader_epoch <= self._leader_epochs.get(partition, NO_EPOCH):
            return []
        effects = self.on_resigned(now, partition)
        self._leader_epochs[partition] = leader_epoch
        self._partitions[partition] = _load(partition, batches)
        for transaction in self._partitions[partition].values():
            if transaction.ending:
                self._mark_all(now, transaction)
        return effects + self._take()

    def on_resigned(self, now: int, partition: int) -> list[TransactionEffect]:
        """Unload a partition: requests that wait get NOT_COORDINATOR. If its topic is created again, epochs start again too."""
        self._leader_epochs.pop(partition, None)
        self._partitions.pop(partition, None)
        self._writes.abandon(now, partition)
        return self._take()

    # Events.

    def on_request(
        self, now: int, correlation_id: CorrelationId, request: TransactionRequest
    ) -> list[TransactionEffect]:
        """Handle a request. Its response is an effect of this event or of a later one, once."""
        transaction = self._transaction(now, request)
        if isinstance(transaction, ErrorCode):
            self._writes.respond(correlation_id, refusal(request, transaction))
        else:
            self._handle(now, correlation_id, transaction, request)
        return self._take()

    def on_appended(
        self, now: int, write: int, error: ErrorCode, base_offset: int = NO_OFFSET
    ) -> list[TransactionEffect]:
        self._writes.acknowledged(now, write, error, base_offset)
        return self._take()

    def on_marked(
        self, now: int, transactional_id: str, producer_epoch: int, partition: TopicPartition, error: ErrorCode
    ) -> list[TransactionEffect]:
        """Take the outcome of a `WriteMarker`; `producer_epoch` is that of its batch."""
        transaction = self._known(transactional_id)
        if transaction is not None and transaction.ending and transaction.value.producer_epoch == producer_epoch:
            self._marked(now, transaction, partition, error)
        return self._take()

    def on_tick(self, now: int) -> list[TransactionEffect]:
        for transaction in self._transactions():
            if transaction.is_late(now):
                self._fence(now, transaction, lambda _now, _error: None)
            for partition in [each for each, due in transaction.retry.items() if due <= now]:
                del transaction.retry[partition]
                self._mark(now, transaction, partition)
            if transaction.complete_at is not None and transaction.complete_at <= now:
                self._complete_if_marked(now, transaction)
        return self._take()

    # Queries.

    def partition_of(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` whose leader coordinates the id."""
        return partition_for(transactional_id, self._settings.transaction_state_log_num_partitions)

    def verify(self, request: AddPartitions) -> dict[TopicPartition, ErrorCode]:
        """Whether these partitions are in the producer's transaction: for their leaders (KIP-890, part 1)."""
        transaction = self._found(request.transactional_id)
        if isinstance(transaction, ErrorCode):
            return dict.fromkeys(request.partitions, transaction)
        error = transaction.add_error(request)
        inside = transaction.partitions if transaction.value.state is TransactionState.ONGOING else frozenset()
        if error is not ErrorCode.NONE:
            return dict.fromkeys(request.partitions, error)
        return {p: ErrorCode.NONE if p in inside else ErrorCode.TRANSACTION_ABORTABLE for p in request.partitions}

    def describe(self, transactional_id: str) -> DescribeTransactionResponse:
        existing = self._found(transactional_id)
        if isinstance(existing, ErrorCode):
            unknown = existing is ErrorCode.INVALID_PRODUCER_ID_MAPPING
            error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if unknown else existing
            return DescribeTransactionResponse(error, transactional_id)
        return described(existing)

    def list_transactions(
        self, now: int, states: Iterable[str] = (), producers: Iterable[int] = (), duration_ms: int = -1
    ) -> list[ListedTransaction]:
        """The transactions of these states and producers that run for longer than `duration_ms`, if it is not negative."""
        return listed(self._transactions(), now, frozenset(states), frozenset(producers), duration_ms)

    # Finding the transaction.

    def _transactions(self) -> list[Transaction]:
        return [each for transactions in self._partitions.values() for each in transactions.values()]

    def _known(self, transactional_id: str) -> Transaction | None:
        return self._partitions.get(self.partition_of(transactional_id), {}).get(transactional_id)

    def _found(self, transactional_id: str) -> Transaction | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if self.partition_of(transactional_id) not in self._partitions:
            return ErrorCode.NOT_COORDINATOR
        known = self._known(transactional_id)
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING if known is None else known

    def _transaction(self, now: int, request: TransactionRequest) -> Transaction | ErrorCode:
        """The transaction; created if a producer begins one."""
        existing = self._found(request.transactional_id)
        if not isinstance(request, InitProducerId) or existing in (
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NOT_COORDINATOR,
        ):
            return existing
        if not 0 < request.timeout_ms <= self._settings.transaction_max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        if isinstance(existing, Transaction):
            return existing
        partition = self.partition_of(request.transactional_id)
        made = Transaction(request.transactional_id, partition, new_value(request, now))
        self._partitions[partition][request.transactional_id] = made
        return made

    def _handle(
        self, now: int, correlation_id: CorrelationId, transaction: Transaction, request: TransactionRequest
    ) -> None:
        match request:
            case InitProducerId():
                self._init(now, correlation_id, transaction, request)
            case AddPartitions():
                self._add(now, correlation_id, transaction, request)
            case EndTransaction():
                self._end(now, correlation_id, transaction, request)

    # The three requests.

    def _init(self, now: int, correlation_id: CorrelationId, transaction: Transaction, request: InitProducerId) -> None:
        error = transaction.init_error(request)
        if error is not ErrorCode.NONE:
            self._writes.respond(correlation_id, InitProducerIdResponse(error))
        elif transaction.value.state is TransactionState.ONGOING:
            # The new producer retries, and gets its epoch once the old one's transaction is aborted.
            concurrent = InitProducerIdResponse(ErrorCode.CONCURRENT_TRANSACTIONS)
            self._fence(now, transaction, lambda _now, _error: self._writes.respond(correlation_id, concurrent))
        else:
            initialised = self._initialised(correlation_id, transaction, request)
            self._move(now, transaction, transaction.initialised(request, now), initialised)

    def _initialised(self, correlation_id: CorrelationId, transaction: Transaction, request: InitProducerId) -> _Done:
        def done(_now: int, error: ErrorCode) -> None:
            value = transaction.value
            if error is ErrorCode.NONE and request.producer_id == NO_PRODUCER:
                # The last epoch is another process's, which is fenced: no request with it repeats one of this producer.
                transaction.last_epoch = NO_PRODUCER_EPOCH
            good = InitProducerIdResponse(error, value.producer_id, value.producer_epoch)
            self._writes.respond(correlation_id, good if error is ErrorCode.NONE else InitProducerIdResponse(error))

        return done

    def _add(self, now: int, correlation_id: CorrelationId, transaction: Transaction, request: AddPartitions) -> None:
        error = transaction.add_error(request)
        ongoing = transaction.value.state is TransactionState.ONGOING
        if error is not ErrorCode.NONE or (ongoing and request.partitions <= transaction.partitions):
            self._writes.respond(correlation_id, AddPartitionsResponse(error))
            return
        self._move(
            now,
            transaction,
            transaction.with_partitions(request, now),
            lambda _now, failed: self._writes.respond(correlation_id, AddPartitionsResponse(failed)),
        )

    def _end(self, now: int, correlation_id: CorrelationId, transaction: Transaction, request: EndTransaction) -> None:
        error = transaction.end_error(request)
        if error is not ErrorCode.NONE or transaction.ended_as_requested(request):
            self._writes.respond(correlation_id, _ended(transaction, error))
            return
        value = transaction.prepared(request.commit, now, request.bump_epoch, request.fresh_producer_id)

        def done(later: int, failed: ErrorCode) -> None:
            self._writes.respond(correlation_id, _ended(transaction, failed))
            if failed is ErrorCode.NONE:
                self._mark_all(later, transaction)

        self._move(now, transaction, value, done)

    def _fence(self, now: int, transaction: Transaction, then: _Done) -> None:
        def done(later: int, error: ErrorCode) -> None:
            then(later, error)
            if error is ErrorCode.NONE:
                self._mark_all(later, transaction)

        self._move(now, transaction, transaction.fenced(now), done)

    # Records.

    def _move(self, now: int, transaction: Transaction, value: TransactionLogValue, done: _Done) -> None:
        """Append the next state, which takes effect once it is committed."""
        record = CoordinatorRecord(records.encode_key(transaction.transactional_id), records.encode_value(value))
        transaction.in_transition = True

        def written(later: int, error: ErrorCode, _offset: int) -> None:
            transaction.in_transition = False
            if error is ErrorCode.NONE:
                bumped = value.producer_epoch != transaction.value.producer_epoch
                transaction.last_epoch = transaction.value.producer_epoch if bumped else transaction.last_epoch
                transaction.value = value
            done(later, _producer_error(error))

        self._writes.append(transaction.partition, encode_batch([record], now), written)

    # Markers.

    def _mark_all(self, now: int, transaction: Transaction) -> None:
        transaction.unmarked = set(transaction.partitions)
        for partition in sorted(transaction.unmarked):
            self._mark(now, transaction, partition)
        self._complete_if_marked(now, transaction)

    def _mark(self, now: int, transaction: Transaction, partition: TopicPartition) -> None:
        value = transaction.value
        marker = Marker.COMMIT if value.state is TransactionState.PREPARE_COMMIT else Marker.ABORT
        coordinator_epoch = self._leader_epochs[transaction.partition]
        bumped = value.client_version >= EPOCH_BUMPING_CLIENT
        producer = (value.producer_id, value.producer_epoch)
        batch = marker_batch(*producer, marker, coordinator_epoch, now, epoch_bumped=bumped)
        self._markers.append(WriteMarker(transaction.transactional_id, partition, batch))

    def _marked(self, now: int, transaction: Transaction, partition: TopicPartition, error: ErrorCode) -> None:
        if error is ErrorCode.NONE or error in _NOT_TRIED_AGAIN:
            transaction.unmarked.discard(partition)
            self._complete_if_marked(now, transaction)
        else:
            transaction.retry[partition] = now + self._settings.marker_retry_ms

    def _complete_if_marked(self, now: int, transaction: Transaction) -> None:
        if transaction.unmarked or transaction.in_transition or not transaction.ending:
            return

        transaction.complete_at = None

        def done(later: int, error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                transaction.complete_at = later + self._settings.marker_retry_ms

        self._move(now, transaction, transaction.completed(now), done)

    def _take(self) -> list[TransactionEffect]:
        markers, self._markers = self._markers, []
        return [*self._writes.take(), *markers]


def _ended(transaction: Transaction, error: ErrorCode) -> EndTransactionResponse:
    value = transaction.value
    if error is not ErrorCode.NONE:
        return EndTransactionResponse(error)
    if value.next_producer_id != records.NO_PRODUCER_ID:
        return EndTransactionResponse(error, value.next_producer_id, 0)
    return EndTransactionResponse(error, value.producer_id, value.producer_epoch)


def _producer_error(error: ErrorCode) -> ErrorCode:
    """The error that a producer gets when an append fails: retry later, unless another broker is the coordinator now."""
    if error is ErrorCode.NONE:
        return error
    return _PRODUCER_ERRORS.get(error, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _load(partition: int, batches: Iterable[RecordBatch]) -> dict[str, Transaction]:
    transactions: dict[str, Transaction] = {}
    for batch in batches:
        for _, record in decode_batch(batch):
            transactional_id = records.decode_key(record.key)
            if transactional_id is None:
                continue
            transactions.pop(transactional_id, None)
            if record.value is not None:
                value = records.decode_value(record.value)
                transactions[transactional_id] = Transaction(transactional_id, partition, value)
    return transactions
