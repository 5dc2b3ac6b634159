"""Runs a group or transaction coordinator inside a broker: it receives leadership changes and ticks, and appends through the broker.

The core's coordinator decides; a runner executes its effects. An append is a produce with acks=all like any other, so that
min.insync.replicas and min.insync.racks hold for groups and transactions too.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

from rackspan.cluster.context.broker_context import BrokerContext
from rackspan.cluster.core.batch import Batch
from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Append, PendingLoads
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.groups.requests import GroupRequest
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import LeadershipChanged, Produce, ProduceResponse, Respond, VerifyTransaction
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.cluster.core.transactions import TransactionCoordinator, WriteMarker
from rackspan.cluster.core.transactions.requests import AddPartitions, TransactionRequest
from rackspan.model.ids import TopicPartition

_APPEND_TIMEOUT_MS: Final = 5_000
"""Kafka's offsets.commit.timeout.ms."""

RequestT = TypeVar("RequestT", contravariant=True)


class Coordinator(Protocol[RequestT]):
    """The methods that both of the core's coordinators have."""

    def on_request(self, now: int, correlation_id: CorrelationId, request: RequestT) -> Iterable[Any]: ...

    def on_elected(self, now: int, partition: int, leader_epoch: int, batches: Iterable[Batch]) -> Iterable[Any]: ...

    def on_resigned(self, now: int, partition: int) -> Iterable[Any]: ...

    def on_appended(self, now: int, write: int, error: KafkaError, base_offset: int = NO_OFFSET) -> Iterable[Any]: ...

    def on_tick(self, now: int) -> Iterable[Any]: ...


class CoordinatorRunner(Generic[RequestT]):
    """One coordinator of one broker process. `topic` is the coordinator's own, whose leaders coordinate."""

    def __init__(self, broker: BrokerContext, topic: str, coordinator: Coordinator[RequestT]) -> None:
        self._broker = broker
        self._topic = topic
        self._coordinator = coordinator
        self._pending_loads = PendingLoads()
        self._responses: dict[CorrelationId, asyncio.Future[Any]] = {}
        self._last_correlation_id = 0
        self._effects: deque[Any] = deque()
        self._executing = False

    # Events of the broker.

    def change_leadership(self, change: LeadershipChanged) -> None:
        """This broker became or ceased to be the leader of a partition. Other topics' partitions are ignored."""
        if change.partition.topic != self._topic:
            return
        now, number = self._broker.now, change.partition.partition
        if change.leads:
            self._pending_loads.add(number, change.leader_epoch, self._log(number))
            self._load(now)
        else:
            self._pending_loads.remove(number)
            self.execute(self._coordinator.on_resigned(now, number))

    def tick(self, now: int) -> None:
        self._load(now)
        self.execute(self._coordinator.on_tick(now))

    def stop(self) -> None:
        """The process has ended: requests without a response are cancelled."""
        for response in tuple(self._responses.values()):
            response.cancel()
        self._responses.clear()

    def _load(self, now: int) -> None:
        for number, leader_epoch in self._pending_loads.pop_ready(self._log):
            self.execute(self._coordinator.on_elected(now, number, leader_epoch, self._log(number).batches))

    def _log(self, number: int) -> PartitionLog:
        return self._broker.logs[TopicPartition(self._topic, number)]

    # Requests of clients.

    async def response(self, request: RequestT) -> Any:
        """The coordinator's response. Cancelled if the broker's process ends first."""
        return await self.send(request)

    def send(self, request: RequestT) -> "asyncio.Future[Any]":
        """Give the request to the coordinator before returning; the response comes in the future."""
        self._last_correlation_id += 1
        correlation_id = self._last_correlation_id
        response = self._responses[correlation_id] = asyncio.get_running_loop().create_future()
        response.add_done_callback(lambda _: self._responses.pop(correlation_id, None))
        self.execute(self._coordinator.on_request(self._broker.now, correlation_id, request))
        return response

    # Effects of the coordinator.

    def execute(self, effects: Iterable[Any]) -> None:
        """In order, and effects that an effect causes after those before it: appends must not overtake each other."""
        self._effects.extend(effects)
        if self._executing:
            return
        self._executing = True
        try:
            while self._effects:
                self._execute_one(self._effects.popleft())
        finally:
            self._executing = False

    def _execute_one(self, effect: Any) -> None:
        match effect:
            case Respond(correlation_id, response):
                future = self._responses.get(correlation_id)
                if future is not None and not future.done():
                    future.set_result(response)
            case Append():
                self._append(effect)

    def _append(self, append: Append) -> None:
        partition = TopicPartition(self._topic, append.partition)
        self._broker.requests.send_to_core(
            lambda correlation_id: _produce(correlation_id, partition, append.batch),
            lambda response: self._on_appended(append.write, response),
        )

    def _on_appended(self, write: int, response: ProduceResponse) -> None:
        self.execute(self._coordinator.on_appended(self._broker.now, write, response.error, response.base_offset))


class GroupCoordinatorRunner(CoordinatorRunner[GroupRequest]):
    """The group coordinator of one broker process."""

    def __init__(self, broker: BrokerContext, coordinator: GroupCoordinator) -> None:
        super().__init__(broker, OFFSETS_TOPIC, coordinator)


class TransactionCoordinatorRunner(CoordinatorRunner[TransactionRequest]):
    """The transaction coordinator of one broker process. Its markers are sent to the leaders of the partitions."""

    def __init__(self, broker: BrokerContext, coordinator: TransactionCoordinator) -> None:
        super().__init__(broker, TRANSACTIONS_TOPIC, coordinator)
        self._transactions = coordinator

    def _execute_one(self, effect: Any) -> None:
        if isinstance(effect, WriteMarker):
            self._write_marker(effect)
        else:
            super()._execute_one(effect)

    def verify(self, message: VerifyTransaction, on_response: Callable[[KafkaError], None]) -> None:
        """Check that a partition is in an ongoing transaction, or add it where the message requires that (KIP-890)."""
        producer = (message.transactional_id, message.producer_id, message.producer_epoch)
        request = AddPartitions(*producer, frozenset({message.partition}))
        if not message.adds:
            on_response(self._transactions.verify(request)[message.partition])
            return
        self.send(request).add_done_callback(
            lambda done: None if done.cancelled() else on_response(done.result().error)
        )

    def _write_marker(self, marker: WriteMarker) -> None:
        state = self._broker.image.partition(marker.partition)
        if state is None:
            self._on_marked(marker, KafkaError.NONE)  # Deleted with its topic: no consumer will read it.
        elif state.leader == NO_LEADER:
            self._on_marked(marker, KafkaError.LEADER_NOT_AVAILABLE)
        else:
            self._broker.requests.send_to_broker(
                state.leader,
                lambda correlation_id: _produce(correlation_id, marker.partition, marker.batch),
                lambda response: self._on_marked(marker, response.error),
                _APPEND_TIMEOUT_MS,
                ProduceResponse(KafkaError.REQUEST_TIMED_OUT),
            )

    def _on_marked(self, marker: WriteMarker, error: KafkaError) -> None:
        self.execute(
            self._transactions.on_marked(
                self._broker.now, marker.transactional_id, marker.batch.producer_epoch, marker.partition, error
            )
        )


def _produce(correlation_id: CorrelationId, partition: TopicPartition, batch: Batch) -> Produce:
    return Produce(correlation_id, partition, (batch,), -1, _APPEND_TIMEOUT_MS, internal=True)
