"""A broker's whole process without its sockets: the replicas, both coordinators, and the requests between brokers.

BrokerProcess routes transaction markers, verifies transactional writes (KIP-890), and hands committed
markers and deleted topics to the group coordinator. It never draws a correlation id and never waits: requests to other
brokers are effects, and their responses and timeouts are events.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore
from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Append, PendingLoads
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.groups.requests import GroupRequest, OffsetCommitResponse, TxnOffsetCommit
from rackspan.cluster.core.ids import CLIENT, NO_OFFSET, CorrelationId, NodeId, TopicId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import (
    Effect,
    LeadershipChanged,
    Message,
    MetadataUpdated,
    Produce,
    ProduceResponse,
    Respond,
    SendRequest,
    TransactionEnded,
    TransactionSupport,
    VerifyTransaction,
)
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.cluster.core.transactions import TransactionCoordinator, WriteMarker
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    EndTransaction,
    InitProducerId,
    TransactionRequest,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition

_RETRIABLE: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)

ERROR_MESSAGES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Unable to verify the partition has been added to the transaction",
}


def transaction_support(version: int, *, abortable_since: int, adds_since: int) -> TransactionSupport:
    """The support of a request version, given the versions since which its API has the newer kinds."""
    if version >= adds_since:
        return TransactionSupport.ADDS
    return TransactionSupport.ABORTS if version >= abortable_since else TransactionSupport.VERIFIES


def produce_error(error: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """The transaction coordinator's error as producers of the version support it, for a write that the leader verified (KIP-890).

    Without verification a late batch begins a transaction that is never ended, and read_committed consumers wait behind it for
    ever. With an older request version the producer has added the partition itself; with a newer one the leader's request does.

    A passing error becomes NOT_ENOUGH_REPLICAS, which clients retry without new metadata. Source: ReplicaManager.
    """
    if error in _RETRIABLE or (error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupport.ADDS):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.VERIFIES:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error


def offset_commit_error(error: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """The same for TxnOffsetCommit, whose clients retry COORDINATOR_LOAD_IN_PROGRESS."""
    mapped = produce_error(error, support)
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if mapped is ErrorCode.NOT_ENOUGH_REPLICAS else mapped


class Coordinator(Protocol):
    """What both coordinators have; `on_request` differs in its requests."""

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> Iterable[Any]: ...

    def on_resigned(self, now: int, partition: int) -> Iterable[Any]: ...

    def on_appended(self, now: int, write: int, error: ErrorCode, base_offset: int = NO_OFFSET) -> Iterable[Any]: ...

    def on_tick(self, now: int) -> Iterable[Any]: ...


class CoordinatorRunner:
    """One coordinator, whose records are in `topic`. `handle` is called with each of its effects, in their order.

    `log_of` is the broker's log of a partition of the topic.
    """

    def __init__(
        self,
        topic: str,
        coordinator: Coordinator,
        log_of: Callable[[TopicPartition], PartitionLog],
        handle: Callable[[int, Any], None],
    ) -> None:
        self._topic = topic
        self._coordinator = coordinator
        self._log_of = log_of
        self._handle = handle
        self._pending_loads = PendingLoads()
        self._effects: deque[Any] = deque()
        self._busy = False

    def on_leadership(self, now: int, change: LeadershipChanged) -> None:
        """Load the partition when its log allows, or unload it. Changes of other topics are ignored."""
        if change.partition.topic != self._topic:
            return
        number = change.partition.partition
        if change.leads:
            self._pending_loads.add(number, change.leader_epoch, self._log(number))
            self._load(now)
        else:
            self._pending_loads.remove(number)
            self.carry_out(now, self._coordinator.on_resigned(now, number))

    def _load(self, now: int) -> None:
        for number, leader_epoch in self._pending_loads.pop_ready(self._log):
            self.carry_out(now, self._coordinator.on_elected(now, number, leader_epoch, self._log(number).batches))

    def _log(self, number: int) -> PartitionLog:
        return self._log_of(TopicPartition(self._topic, number))

    def on_tick(self, now: int) -> None:
        """Load what may be loaded by now, then pass the tick on."""
        self._load(now)
        self.carry_out(now, self._coordinator.on_tick(now))

    def carry_out(self, now: int, effects: Iterable[Any]) -> None:
        """Handle effects in their order, also those that one of them leads to: appends must not overtake each other."""
        self._effects.extend(effects)
        if self._busy:
            return
        self._busy = True
        try:
            while self._effects:
                self._handle(now, self._effects.popleft())
        finally:
            self._busy = False


Then: TypeAlias = Callable[[int, Any], None]
"""Called with the time (ms) and a response; None is no response within the timeout."""


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    deadline: int
    then: Then


class BrokerProcess:
    """One process of one broker. A restart makes a new object. `broker`, `groups` and `transactions` may be queried.

        on_message  from brokers, the controller and clients      on_request   of clients, to a coordinator
        on_response to a `SendRequest`                            on_tick      of the clock

    Each returns effects. A coordinator's record is a produce with acks=all like any other, so that min.insync.replicas and
    min.insync.racks hold for groups and transactions too.
    """

    append_timeout_ms: ClassVar[int] = 5_000
    """Kafka's offsets.commit.timeout.ms."""
    request_timeout_ms: ClassVar[int] = 5_000
    """How long another broker may take to respond."""

    def __init__(self, broker: BrokerCore, groups: GroupCoordinator, transactions: TransactionCoordinator) -> None:
        self.broker, self.groups, self.transactions = broker, groups, transactions
        self._group_runner = CoordinatorRunner(OFFSETS_TOPIC, groups, self._log, self._on_group_effect)
        self._transaction_runner = CoordinatorRunner(
            TRANSACTIONS_TOPIC, transactions, self._log, self._on_transaction_effect
        )
        self._effects: list[Effect] = []
        self._own_requests: dict[CorrelationId, Then] = {}
        """By correlation ids of this process's own, which are negative."""
        self._last_own_id = 0
        self._sent: dict[int, _PendingRequest] = {}
        self._last_sent_id = 0
        self._topic_names: Mapping[TopicId, str] = {}

    def _log(self, partition: TopicPartition) -> PartitionLog:
        return self.broker.disk.logs[partition]

    # Events.

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        """Handle a message. A transactional batch is verified first, unless the log has its transaction already."""
        if isinstance(message, VerifyTransaction):
            self._on_verification(now, message)
        elif isinstance(message, Produce) and message.batches[0].transactional and not message.internal:
            self._on_transactional_produce(now, message)
        else:
            self._apply(now, self.broker.on_message(now, source, message))
        return self._flushed()

    def on_request(
        self, now: int, correlation_id: CorrelationId, request: GroupRequest | TransactionRequest
    ) -> list[Effect]:
        """Handle a client's request to a coordinator. The response follows on `correlation_id`, once."""
        if isinstance(request, InitProducerId | AddPartitions | EndTransaction):
            self._transaction_runner.carry_out(now, self.transactions.on_request(now, correlation_id, request))
        elif isinstance(request, TxnOffsetCommit):
            self._on_transactional_commit(now, correlation_id, request)
        else:
            self._group_runner.carry_out(now, self.groups.on_request(now, correlation_id, request))
        return self._flushed()

    def on_response(self, now: int, request_id: int, response: object) -> list[Effect]:
        """Take the response to a `SendRequest`. One that comes after its timeout is dropped."""
        self._complete(now, request_id, response)
        return self._flushed()

    def on_tick(self, now: int) -> list[Effect]:
        """Handle a clock tick."""
        self._apply(now, self.broker.on_tick(now))
        self._group_runner.on_tick(now)
        self._transaction_runner.on_tick(now)
        for request_id in [request_id for request_id, sent in self._sent.items() if sent.deadline <= now]:
            self._complete(now, request_id, None)
        return self._flushed()

    def _flushed(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    # The replicas' effects.

    def _apply(self, now: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Respond):
                self._respond(now, effect)
                continue
            self._effects.append(effect)
            match effect:
                case LeadershipChanged():
                    self._group_runner.on_leadership(now, effect)
                    self._transaction_runner.on_leadership(now, effect)
                case TransactionEnded(partition, producer_id, marker) if partition.topic == OFFSETS_TOPIC:
                    self.groups.on_marker(partition.partition, producer_id, marker)
                case MetadataUpdated():
                    self._forget_deleted_topics(now)

    def _respond(self, now: int, effect: Respond) -> None:
        then = self._own_requests.pop(effect.correlation_id, None)
        if then is None:
            self._effects.append(effect)
        else:
            then(now, effect.response)

    def _forget_deleted_topics(self, now: int) -> None:
        """Drop the committed offsets of deleted topics, by topic id: a new topic of the same name may exist already."""
        before, self._topic_names = self._topic_names, self.broker.image.topic_names
        deleted = [before[topic_id] for topic_id in before.keys() - self._topic_names.keys()]
        if deleted:
            self._group_runner.carry_out(now, self.groups.on_topics_deleted(now, deleted))

    # The coordinators' effects.

    def _on_group_effect(self, now: int, effect: Respond | Append) -> None:
        if isinstance(effect, Append):
            self._append_record(now, self._group_runner, self.groups, OFFSETS_TOPIC, effect)
        else:
            self._respond(now, effect)

    def _on_transaction_effect(self, now: int, effect: Respond | Append | WriteMarker) -> None:
        if isinstance(effect, Append):
            self._append_record(now, self._transaction_runner, self.transactions, TRANSACTIONS_TOPIC, effect)
        elif isinstance(effect, WriteMarker):
            self._write_marker(now, effect)
        else:
            self._respond(now, effect)

    def _append_record(
        self,
        now: int,
        runner: CoordinatorRunner,
        coordinator: GroupCoordinator | TransactionCoordinator,
        topic: str,
        append: Append,
    ) -> None:
        def appended(later: int, response: ProduceResponse) -> None:
            effects = coordinator.on_appended(later, append.write, response.error, response.base_offset)
            runner.carry_out(later, effects)

        self.append(now, TopicPartition(topic, append.partition), append.batch, appended)

    def append(self, now: int, partition: TopicPartition, batch: RecordBatch, then: Then) -> None:
        """Append a coordinator's batch to a partition led here, acks=all. `then` gets the `ProduceResponse`."""
        produce = Produce(self._own_id(then), partition, (batch,), -1, self.append_timeout_ms, internal=True)
        self._apply(now, self.broker.on_message(now, CLIENT, produce))

    def _own_id(self, then: Then) -> CorrelationId:
        self._last_own_id -= 1
        self._own_requests[self._last_own_id] = then
        return self._last_own_id

    # Markers.

    def _write_marker(self, now: int, marker: WriteMarker) -> None:
        """Send the marker to the partition's leader. A partition that was deleted with its topic has no readers."""

        def marked(later: int, response: ProduceResponse | None) -> None:
            self._marked(later, marker, ErrorCode.REQUEST_TIMED_OUT if response is None else response.error)

        state = self.broker.image.partition(marker.partition)
        if state is None:
            self._marked(now, marker, ErrorCode.NONE)
        elif state.leader == NO_LEADER:
            self._marked(now, marker, ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            timeout_ms = self.append_timeout_ms
            produce = Produce(0, marker.partition, (marker.batch,), -1, timeout_ms, internal=True)
            self._send(now, state.leader, produce, timeout_ms, marked)

    def _marked(self, now: int, marker: WriteMarker, error: ErrorCode) -> None:
        producer_epoch = marker.batch.producer_epoch
        effects = self.transactions.on_marked(now, marker.transactional_id, producer_epoch, marker.partition, error)
        self._transaction_runner.carry_out(now, effects)

    # Verification of transactional writes.

    def _on_transactional_produce(self, now: int, produce: Produce) -> None:
        batch, leader = produce.batches[0], self.broker.leaders.get(produce.partition)
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if produce.transactional_id is None:
            refusal = ProduceResponse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            self._effects.append(Respond(produce.correlation_id, refusal))
            return
        if leader is None or leader.log.in_transaction(producer_id, epoch):
            self._apply(now, self.broker.on_message(now, CLIENT, produce))
            return
        log, producer_before = leader.log, leader.log.producers.get(producer_id)

        def verified(later: int, error: ErrorCode) -> None:
            error = produce_error(error, produce.support)
            # A marker that came meanwhile has ended the transaction that was verified.
            if error is ErrorCode.NONE and not log.in_transaction(producer_id, epoch):
                unchanged = log.producers.get(producer_id) is producer_before
                error = ErrorCode.NONE if unchanged else ErrorCode.INVALID_TXN_STATE
            if error is ErrorCode.NONE:
                self._apply(later, self.broker.on_message(later, CLIENT, produce))
            else:
                refusal = ProduceResponse(error, message=ERROR_MESSAGES.get(error))
                self._effects.append(Respond(produce.correlation_id, refusal))

        identity = (produce.transactional_id, producer_id, epoch)
        self._verify(now, identity, produce.partition, produce.support, verified)

    def _on_transactional_commit(self, now: int, correlation_id: CorrelationId, request: TxnOffsetCommit) -> None:
        """Verify that the group's partition of `__consumer_offsets` is in the transaction, then commit."""
        partition = TopicPartition(OFFSETS_TOPIC, self.groups.partition_of(request.group_id))

        def verified(later: int, error: ErrorCode) -> None:
            error = offset_commit_error(error, request.support)
            if error is ErrorCode.NONE:
                self._group_runner.carry_out(later, self.groups.on_request(later, correlation_id, request))
            else:
                response = OffsetCommitResponse(dict.fromkeys(request.offsets, error))
                self._effects.append(Respond(correlation_id, response))

        identity = (request.transactional_id, request.producer_id, request.producer_epoch)
        self._verify(now, identity, partition, request.support, verified)

    def _verify(
        self,
        now: int,
        producer: tuple[str, int, int],
        partition: TopicPartition,
        support: TransactionSupport,
        then: Callable[[int, ErrorCode], None],
    ) -> None:
        """Send VerifyTransaction to the coordinator of (transactional id, producer id, producer epoch)."""

        def verified(later: int, error: ErrorCode | None) -> None:
            then(later, ErrorCode.COORDINATOR_NOT_AVAILABLE if error is None else error)

        number = self.transactions.partition_of(producer[0])
        state = self.broker.image.partition(TopicPartition(TRANSACTIONS_TOPIC, number))
        if state is None or state.leader == NO_LEADER:
            then(now, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        message = VerifyTransaction(0, *producer, partition, adds=support is TransactionSupport.ADDS)
        self._send(now, state.leader, message, self.request_timeout_ms, verified)

    def _on_verification(self, now: int, message: VerifyTransaction) -> None:
        """Return, as the coordinator, whether the partition is in an ongoing transaction; with `adds`, add it if it is not."""
        identity = (message.transactional_id, message.producer_id, message.producer_epoch)
        request = AddPartitions(*identity, frozenset({message.partition}), by_writing=message.adds)
        if not message.adds:
            error = self.transactions.verify(request)[message.partition]
            self._effects.append(Respond(message.correlation_id, error))
            return
        own_id = self._own_id(
            lambda _now, response: self._effects.append(Respond(message.correlation_id, response.error))
        )
        self._transaction_runner.carry_out(now, self.transactions.on_request(now, own_id, request))

    # Requests to other brokers, or to this one as the coordinator or the leader.

    def _send(
        self, now: int, destination: BrokerId, message: Produce | VerifyTransaction, timeout_ms: int, then: Then
    ) -> None:
        self._last_sent_id += 1
        self._sent[self._last_sent_id] = _PendingRequest(now + timeout_ms, then)
        self._effects.append(SendRequest(destination, message, self._last_sent_id, timeout_ms))

    def _complete(self, now: int, request_id: int, response: object) -> None:
        sent = self._sent.pop(request_id, None)
        if sent is not None:
            sent.then(now, response)
