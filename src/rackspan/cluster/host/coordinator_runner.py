"""A coordinator at work in a broker: it is told of leaderships and time, its appends go through the broker's own door.

The core's coordinator decides; this carries out. What it writes is a produce with acks=all like any other, so that
min.insync.replicas and min.insync.racks hold for groups and transactions too.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from rackspan.cluster.core.batch import Batch
from rackspan.cluster.core.coordination import Append, PendingLoads
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import LeadershipChanged, Produce, ProduceResponse, Respond, VerifyTransaction
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.cluster.core.transactions import TransactionCoordinator, WriteMarker
from rackspan.cluster.core.transactions.requests import AddPartitions
from rackspan.model.ids import TopicPartition

if TYPE_CHECKING:
    from rackspan.cluster.host.broker_host import BrokerHost

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"

_APPEND_MS: Final = 5_000
"""Kafka's offsets.commit.timeout.ms."""


class Coordinator(Protocol):
    """What both of the core's coordinators have; `on_request` differs in its requests."""

    def on_elected(self, now: int, partition: int, leader_epoch: int, batches: Iterable[Batch]) -> Iterable[Any]: ...

    def on_resigned(self, now: int, partition: int) -> Iterable[Any]: ...

    def on_appended(self, now: int, write: int, error: KafkaError, base_offset: int = NO_OFFSET) -> Iterable[Any]: ...

    def on_tick(self, now: int) -> Iterable[Any]: ...


class CoordinatorRunner:
    """One coordinator in one broker's process. Ends with it: whoever waits is cut off with their connection."""

    def __init__(self, host: "BrokerHost", topic: str, coordinator: Coordinator) -> None:
        self._host = host
        self._topic = topic
        self._coordinator = coordinator
        self._pending_loads = PendingLoads()
        self._waiting: dict[CorrelationId, asyncio.Future[Any]] = {}
        self._asked = 0
        self._effects: deque[Any] = deque()
        self._busy = False

    # What happens to the broker.

    def leadership(self, change: LeadershipChanged) -> None:
        if change.partition.topic != self._topic:
            return
        now, number = self._host.now, change.partition.partition
        if change.leads:
            self._pending_loads.add(number, change.leader_epoch, self._log(number))
            self._take_office(now)
        else:
            self._pending_loads.remove(number)
            self.carry_out(self._coordinator.on_resigned(now, number))

    def _take_office(self, now: int) -> None:
        for number, leader_epoch in self._pending_loads.pop_ready(self._log):
            self.carry_out(self._coordinator.on_elected(now, number, leader_epoch, self._log(number).batches))

    def _log(self, number: int) -> PartitionLog:
        return self._host.logs[TopicPartition(self._topic, number)]

    def tick(self, now: int) -> None:
        self._take_office(now)
        self.carry_out(self._coordinator.on_tick(now))

    def stop(self) -> None:
        for future in tuple(self._waiting.values()):
            future.cancel()
        self._waiting.clear()

    # What clients ask.

    async def response(self, question: Callable[[int, CorrelationId], Iterable[Any]]) -> Any:
        """`question` is given the time and a correlation_id; the answer on that correlation_id."""
        return await self.begin(question)

    def begin(self, question: Callable[[int, CorrelationId], Iterable[Any]]) -> "asyncio.Future[Any]":
        """The same, asked at once: cancelled where the broker's process ends first."""
        self._asked += 1
        correlation_id = self._asked
        future = self._waiting[correlation_id] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: self._waiting.pop(correlation_id, None))
        self.carry_out(question(self._host.now, correlation_id))
        return future

    # What it answers.

    def carry_out(self, effects: Iterable[Any]) -> None:
        """In their order, also those that an effect leads to at once: appends must not overtake each other."""
        self._effects.extend(effects)
        if self._busy:
            return
        self._busy = True
        try:
            while self._effects:
                self._carry_out_one(self._effects.popleft())
        finally:
            self._busy = False

    def _carry_out_one(self, effect: Any) -> None:
        match effect:
            case Respond(correlation_id, response):
                future = self._waiting.get(correlation_id)
                if future is not None and not future.done():
                    future.set_result(response)
            case Append():
                self._append(effect)

    def _append(self, append: Append) -> None:
        partition = TopicPartition(self._topic, append.partition)
        self._host.send_to_core(
            lambda correlation_id: Produce(correlation_id, partition, (append.batch,), -1, _APPEND_MS, internal=True),
            lambda result: self._appended(append.write, result),
        )

    def _appended(self, write: int, result: ProduceResponse) -> None:
        self.carry_out(self._coordinator.on_appended(self._host.now, write, result.error, result.base_offset))


class TransactionCoordinatorRunner(CoordinatorRunner):
    """And its markers go to whoever leads the partitions, over the links between brokers."""

    def __init__(self, host: "BrokerHost", coordinator: TransactionCoordinator) -> None:
        super().__init__(host, TRANSACTIONS_TOPIC, coordinator)
        self._transactions = coordinator

    def _carry_out_one(self, effect: Any) -> None:
        if isinstance(effect, WriteMarker):
            self._write_marker(effect)
        else:
            super()._carry_out_one(effect)

    def verify(self, asked: VerifyTransaction, answered: Callable[[KafkaError], None]) -> None:
        """As the coordinator: whether a partition is in a transaction that goes on, or it is put there."""
        who = (asked.transactional_id, asked.producer_id, asked.producer_epoch)
        request = AddPartitions(*who, frozenset({asked.partition}))
        if not asked.adds:
            answered(self._transactions.verify(request)[asked.partition])
            return
        adding = self.begin(lambda now, correlation_id: self._transactions.on_request(now, correlation_id, request))
        adding.add_done_callback(lambda done: None if done.cancelled() else answered(done.result().error))

    def _write_marker(self, marker: WriteMarker) -> None:
        state = self._host.image.partition(marker.partition)
        if state is None:
            self._marked(marker, KafkaError.NONE)  # Deleted with its topic: nobody will read it.
        elif state.leader == NO_LEADER:
            self._marked(marker, KafkaError.LEADER_NOT_AVAILABLE)
        else:
            self._host.send_to_broker(
                state.leader,
                lambda correlation_id: Produce(
                    correlation_id, marker.partition, (marker.batch,), -1, _APPEND_MS, internal=True
                ),
                lambda result: self._marked(marker, result.error),
                _APPEND_MS,
                ProduceResponse(KafkaError.REQUEST_TIMED_OUT),
            )

    def _marked(self, marker: WriteMarker, error: KafkaError) -> None:
        self.carry_out(
            self._transactions.on_marked(
                self._host.now, marker.transactional_id, marker.batch.producer_epoch, marker.partition, error
            )
        )
