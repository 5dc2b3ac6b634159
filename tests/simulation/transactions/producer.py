"""A transactional producer, one incarnation of its transactional id: it writes, sends offsets, commits or aborts.

It follows the Java client's TransactionManager. Version 1 adds partitions by requests of their own and begins anew with
InitProducerId where a sequence number is in doubt (KIP-360); version 2 lets writing add them, and takes a new epoch from
every EndTxn (KIP-890).
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.groups.requests import CommittedOffset, OffsetCommitResponse, TxnOffsetCommit
from rackspan.cluster.core.messages import Produce, TransactionSupport
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    EndTransaction,
    EndTransactionResponse,
    InitProducerId,
    InitProducerIdResponse,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import HEADER_BYTES
from rackspan.model.ids import TopicPartition
from tests.simulation.environment.clock import Clock
from tests.simulation.judges.transactions import Incarnation, TransactionRules, Written
from tests.simulation.transactions.script import RequestStep, Step, Steps, Wait

GROUP: Final = "readers"
INPUT: Final = "input"
"""The topic whose offsets are committed: partition n by transaction n alone, so that none hides another."""

DELIVERY_MS: Final = 900
PRODUCE_MS: Final = 400
GIVE_UP_MS: Final = 2_500
BACKOFF_MS: Final = 40
CALM_MS: Final = 3_000
"""So long before its end a producer takes no long pause any more."""

_DATA: Final = bytes(HEADER_BYTES)

FATAL: Final = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)
"""Another incarnation has come, or the coordinator has aborted for lack of time: this one ends."""

ABORTABLE: Final = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


class Fenced(Exception):
    """This incarnation may not go on."""


class MustAbort(Exception):
    """This transaction cannot be committed."""


_Steps = Generator[Step, Any, Any]


@dataclass(slots=True)
class TransactionalProducer:
    """`steps` is its life. `version` is that of transactions: 1, or 2 for KIP-890's second part."""

    incarnation: Incarnation
    version: int
    clock: Clock
    rng: Random
    rules: TransactionRules
    partitions: tuple[TopicPartition, ...]
    coordinator: TopicPartition
    group_coordinator: TopicPartition
    timeout_ms: int
    stop_at: int
    next: Callable[..., int]
    idempotent: Callable[[TopicPartition, range], None]
    ended: Callable[[], None]
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    _added: set[TopicPartition] = field(default_factory=set)
    _in_doubt: bool = False

    @property
    def transactional_id(self) -> str:
        return self.incarnation.transactional_id

    @property
    def _support(self) -> TransactionSupport:
        return TransactionSupport.ADDS if self.version > 1 else TransactionSupport.ABORTS

    def steps(self) -> Steps:
        try:
            yield from self._init()
            while self.clock.now < self.stop_at:
                yield Wait(self.rng.randint(0, 60))
                yield from self._transaction()
                if self._in_doubt:
                    yield from self._init()
        except Fenced:
            pass
        self.ended()

    # One request, until there is a response that counts.

    def _request(self, partition: TopicPartition, make: Callable[[], object], within_ms: int) -> _Steps:
        """Send until the response is no error that passes. Raises Fenced or MustAbort, which the time may also lead to."""
        give_up_at = self.clock.now + within_ms
        while True:
            response = yield RequestStep(partition, make())
            error = _error_of(response)
            if error is ErrorCode.NONE:
                return response
            if error in FATAL:
                raise Fenced
            if error in ABORTABLE or self.clock.now >= give_up_at:
                raise MustAbort
            yield Wait(self.rng.randint(1, 2 * BACKOFF_MS))

    def _init(self) -> _Steps:
        """A new epoch; whatever an earlier incarnation left open is aborted by then."""
        fresh = self.next("producer")
        known = (self.producer_id, self.epoch)
        request = InitProducerId(self.transactional_id, self.timeout_ms, fresh, *known)
        try:
            response: InitProducerIdResponse = yield from self._request(self.coordinator, lambda: request, GIVE_UP_MS)
        except MustAbort as failure:
            raise Fenced from failure
        self._continue_as(response.producer_id, response.producer_epoch)

    def _continue_as(self, producer_id: int, epoch: int) -> None:
        self._in_doubt = False
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences = {}

    # One transaction.

    def _transaction(self) -> _Steps:
        self._added = set()
        written = self.rules.begins(self.incarnation)
        try:
            for _ in range(self.rng.randint(1, 4)):
                yield from self._write(written, self.rng.choice(self.partitions))
                yield Wait(self.rng.randint(0, 30))
            if self.rng.random() < 0.5:
                yield from self._send_offsets(written)
            if self.rng.random() < 0.04 and self.clock.now < self.stop_at - CALM_MS:
                # Long enough for the coordinator to abort it.
                yield Wait(self.rng.randint(self.timeout_ms // 2, 2 * self.timeout_ms))
            if self.rng.random() < 0.15:
                raise MustAbort
            yield from self._end(written, commit=True)
        except MustAbort:
            yield from self._abort(written)

    def _write(self, written: Written, partition: TopicPartition) -> _Steps:
        yield from self._add(partition)
        count = self.rng.randint(1, 3)
        first = self.next("record", count) - count
        records = range(first, first + count)
        self.idempotent(partition, records)
        self.rules.writes(written, partition, records)
        sequence = self.sequences.get(partition, 0)
        batch = RecordBatch(
            *(0, count - 1, -1, _DATA, self.producer_id, self.epoch, sequence, first), transactional=True
        )

        def produce() -> Produce:
            """Each time with a correlation id of its own, as a message of the core."""
            return Produce(
                *(self.next("correlation_id"), partition, (batch,), -1, PRODUCE_MS),
                transactional_id=self.transactional_id,
                support=self._support,
            )

        try:
            yield from self._request(partition, produce, DELIVERY_MS)
        except MustAbort:
            self._in_doubt = True
            raise
        self.sequences[partition] = sequence + count

    def _add(self, partition: TopicPartition) -> _Steps:
        """Before the first write to it; with version 2, writing does it."""
        if self.version > 1 or partition in self._added:
            return
        who = (self.transactional_id, self.producer_id, self.epoch)
        request = AddPartitions(*who, frozenset({partition}))
        try:
            yield from self._request(self.coordinator, lambda: request, DELIVERY_MS)
        except MustAbort:
            self._in_doubt = True
            raise
        self._added.add(partition)

    def _send_offsets(self, written: Written) -> _Steps:
        yield from self._add(self.group_coordinator)
        self.rules.sends_offsets(written)
        offsets = {TopicPartition(INPUT, written.number): CommittedOffset(written.number)}
        request = TxnOffsetCommit(
            *(GROUP, self.producer_id, self.epoch, offsets),
            transactional_id=self.transactional_id,
            support=self._support,
        )
        yield from self._request(self.group_coordinator, lambda: request, DELIVERY_MS)

    def _end(self, written: Written, *, commit: bool) -> _Steps:
        request = EndTransaction(
            *(self.transactional_id, self.producer_id, self.epoch, commit),
            bump_epoch=self.version > 1,
            fresh_producer_id=self.next("producer") if self.version > 1 else -1,
        )
        self.rules.ends(written, (self.producer_id, self.epoch), commit=commit)
        try:
            response: EndTransactionResponse = yield from self._request(self.coordinator, lambda: request, GIVE_UP_MS)
        except MustAbort as failure:
            # Whether it was committed this incarnation never learns.
            raise Fenced from failure
        self.rules.acknowledged(written, commit=commit)
        if self.version > 1:
            self._continue_as(response.producer_id, response.producer_epoch)

    def _abort(self, written: Written) -> _Steps:
        """Version 1: where nothing was surely added there is nothing to end; InitProducerId aborts what there may be."""
        if self.version == 1 and self._in_doubt:
            return
        yield from self._end(written, commit=False)


def _error_of(response: object) -> ErrorCode:
    """REQUEST_TIMED_OUT where there was none."""
    if response is None:
        return ErrorCode.REQUEST_TIMED_OUT
    if isinstance(response, OffsetCommitResponse):
        return next(iter(response.errors.values()))
    error = getattr(response, "error", ErrorCode.NONE)
    assert isinstance(error, ErrorCode)
    return error
