"""Mistakes in transactions: coordinators, a broker and a process, each a method overridden; planted.py says where each is found."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.broker import BrokerCore, Isolation, ReadResponse
from rackspan.cluster.core.coordination import Append
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.ids import CorrelationId, NodeId
from rackspan.cluster.core.messages import Effect, Message, WatermarkMoved
from rackspan.cluster.core.transactions import (
    TransactionCoordinator,
    TransactionSettings,
    TransactionState,
    WriteMarker,
)
from rackspan.cluster.core.transactions.coordinator import TransactionEffect
from rackspan.cluster.core.transactions.requests import EndTransaction, InitProducerId, TransactionRequest
from rackspan.cluster.core.transactions.transaction import Transaction
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.simulation.transactions.process import SimulatedProcess

# The transaction coordinator.


class EndsUnreplicated(TransactionCoordinator):
    """A commit is acknowledged, and its markers are written, before the decision is replicated."""

    def __init__(self, settings: TransactionSettings) -> None:
        super().__init__(settings)
        self._offset = 10**9

    def on_request(
        self, now: int, correlation_id: CorrelationId, request: TransactionRequest
    ) -> list[TransactionEffect]:
        effects = super().on_request(now, correlation_id, request)
        if not isinstance(request, EndTransaction):
            return effects
        writes = [effect.write for effect in effects if isinstance(effect, Append)]
        self._offset += 1
        return effects + [
            each for write in writes for each in self.on_appended(now, write, ErrorCode.NONE, self._offset)
        ]


class NeverResendsMarkers(TransactionCoordinator):
    """A marker that was lost, or not taken, counts as written."""

    def _marked(self, now: int, transaction: Transaction, partition: TopicPartition, error: ErrorCode) -> None:
        super()._marked(now, transaction, partition, ErrorCode.NONE)


class CompletesAtOnce(TransactionCoordinator):
    """The transaction is complete when the first of its markers is written."""

    def _complete_if_marked(self, now: int, transaction: Transaction) -> None:
        if len(transaction.unmarked) < len(transaction.partitions):
            transaction.unmarked.clear()
        super()._complete_if_marked(now, transaction)


class KeepsEpochOnFencing(TransactionCoordinator):
    """A transaction that another incarnation or the timeout aborts leaves its producer's epoch as it was."""

    def _fence(self, now: int, transaction: Transaction, then: Callable[[int, ErrorCode], None]) -> None:
        def done(later: int, error: ErrorCode) -> None:
            then(later, error)
            if error is ErrorCode.NONE:
                self._mark_all(later, transaction)

        value = replace(transaction.fenced(now), producer_epoch=transaction.value.producer_epoch)
        self._move(now, transaction, value, done)


class GivesTheSameEpoch(TransactionCoordinator):
    """A new incarnation is given the epoch of the one before."""

    def _init(self, now: int, correlation_id: CorrelationId, transaction: Transaction, request: InitProducerId) -> None:
        if transaction.value.producer_epoch > 0 and transaction.value.state is not TransactionState.ONGOING:
            transaction.value = replace(transaction.value, producer_epoch=transaction.value.producer_epoch - 1)
        super()._init(now, correlation_id, transaction, request)


class TimesOutPrepared(TransactionCoordinator):
    """The timeout aborts a transaction whose commit is decided and whose markers are under way."""

    def on_tick(self, now: int) -> list[TransactionEffect]:
        for transaction in self._transactions():
            value = transaction.value
            prepared = value.state is TransactionState.PREPARE_COMMIT and not transaction.in_transition
            if prepared and value.started_ms + value.timeout_ms <= now:
                self._fence(now, transaction, lambda _now, _error: None)
        return super().on_tick(now)


class TakesFencedForRepeated(TransactionCoordinator):
    """An end with the epoch below the current one is always taken for a repetition of the last end."""

    def _end(self, now: int, correlation_id: CorrelationId, transaction: Transaction, request: EndTransaction) -> None:
        if request.producer_epoch == transaction.value.producer_epoch - 1 and not transaction.ending:
            request = replace(request, producer_epoch=transaction.value.producer_epoch)
        super()._end(now, correlation_id, transaction, request)


class LoadsHalfOfItsLog(TransactionCoordinator):
    """A new coordinator reads the first half of the log."""

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> list[TransactionEffect]:
        known = list(batches)
        return super().on_elected(now, partition, leader_epoch, known[: len(known) // 2])


class ForgetsPrepared(TransactionCoordinator):
    """A new coordinator does not finish what its predecessor had decided."""

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> list[TransactionEffect]:
        return [
            each
            for each in super().on_elected(now, partition, leader_epoch, batches)
            if not isinstance(each, WriteMarker)
        ]


# Offsets in the group.


class KeepsAbortedOffsets(GroupCoordinator):
    """Offsets of a transaction count however it ends."""

    def on_marker(self, partition: int, producer_id: int, marker: Marker) -> None:
        super().on_marker(partition, producer_id, Marker.COMMIT)


class IgnoresMarkers(GroupCoordinator):
    """Offsets of a transaction are held back until the next coordinator reads the log."""

    def on_marker(self, partition: int, producer_id: int, marker: Marker) -> None:
        pass


# Readers.


class IgnoresOpenTransactions(BrokerCore):
    """Readers of committed data are shown what lies above the last stable offset."""

    def read(
        self,
        partition: TopicPartition,
        offset: int,
        max_bytes: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        **others: Any,
    ) -> ReadResponse:
        return super().read(partition, offset, max_bytes, Isolation.READ_UNCOMMITTED, **others)


class ForgetsAborted(BrokerCore):
    """Readers of committed data get no list of the aborted transactions."""

    def read(
        self,
        partition: TopicPartition,
        offset: int,
        max_bytes: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        **others: Any,
    ) -> ReadResponse:
        return replace(super().read(partition, offset, max_bytes, isolation, **others), aborted=())


class WakesNobody(BrokerCore):
    """A watermark or a last stable offset that moves is reported to nobody."""

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        return [each for each in super().on_message(now, source, message) if not isinstance(each, WatermarkMoved)]


# The process: verification and markers.


class TrustsSilence(SimulatedProcess):
    """A write counts as verified where the transaction coordinator does not respond."""

    def _verify(
        self,
        now: int,
        producer: tuple[str, int, int],
        partition: TopicPartition,
        support: Any,
        then: Callable[[int, ErrorCode], None],
    ) -> None:
        def verified(later: int, error: ErrorCode) -> None:
            silent = error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            then(later, ErrorCode.NONE if silent else error)

        super()._verify(now, producer, partition, support, verified)


class TakesLateMarkers(SimulatedProcess):
    """A marker may end any transaction of its epoch, also one that began after it was sent (before KIP-1228)."""

    def _write_marker(self, now: int, marker: WriteMarker) -> None:
        super()._write_marker(now, replace(marker, batch=replace(marker.batch, epoch_bumped=False)))
