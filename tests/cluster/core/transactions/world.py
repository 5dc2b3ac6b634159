"""A transaction coordinator, its log, and partitions that take markers: a test decides what happens when."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.coordination import Append
from rackspan.cluster.core.messages import Respond
from rackspan.cluster.core.transactions import TransactionCoordinator, TransactionSettings, WriteMarker
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    AddPartitionsResponse,
    EndTransaction,
    EndTransactionResponse,
    InitProducerId,
    InitProducerIdResponse,
    TransactionRequest,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition

ONE_PARTITION = TransactionSettings(transaction_state_log_num_partitions=1)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)

T = TypeVar("T")


@dataclass
class World:
    """One transactional id, "t". `markers` are (partition, producer id, epoch, commit or abort) as they were written."""

    now: int = 1_000
    epoch: int = 0
    log: list[RecordBatch] = field(default_factory=list)
    in_flight: deque[Append] = field(default_factory=deque)
    unwritten: deque[WriteMarker] = field(default_factory=deque)
    markers: list[tuple[TopicPartition, int, int, Marker]] = field(default_factory=list)
    responses: dict[int, object] = field(default_factory=dict)
    request_count: int = 0
    producer_ids: int = 100

    def __post_init__(self) -> None:
        self.elect()

    def elect(self) -> None:
        self.epoch += 1
        self.coordinator = TransactionCoordinator(ONE_PARTITION)
        self.took(self.coordinator.on_elected(self.now, 0, self.epoch, list(self.log)))

    def took(self, effects: Iterable[object]) -> None:
        for effect in effects:
            match effect:
                case Respond(correlation_id, response):
                    assert correlation_id not in self.responses, "a request gets one response"
                    self.responses[correlation_id] = response
                case Append():
                    self.in_flight.append(effect)
                case WriteMarker():
                    self.unwritten.append(effect)

    # Requests.

    def send(self, request: TransactionRequest) -> int:
        self.request_count += 1
        self.took(self.coordinator.on_request(self.now, self.request_count, request))
        return self.request_count

    def call(self, request: TransactionRequest, response: type[T]) -> T:
        """The response, once every record is committed and every marker written."""
        correlation_id = self.send(request)
        self.settle()
        received = self.responses[correlation_id]
        assert isinstance(received, response)
        return received

    def init(self, timeout_ms: int = 60_000, producer_id: int = -1, epoch: int = -1) -> InitProducerIdResponse:
        self.producer_ids += 1
        request = InitProducerId("t", timeout_ms, self.producer_ids, producer_id, epoch)
        return self.call(request, InitProducerIdResponse)

    def add(self, who: InitProducerIdResponse, *partitions: TopicPartition, adds: bool = False) -> ErrorCode:
        """`adds`: by writing (KIP-890, part 2)."""
        request = AddPartitions("t", who.producer_id, who.producer_epoch, frozenset(partitions), by_writing=adds)
        return self.call(request, AddPartitionsResponse).error

    def end(self, who: InitProducerIdResponse, commit: bool, bump: bool = False) -> EndTransactionResponse:
        self.producer_ids += 1
        request = EndTransaction("t", who.producer_id, who.producer_epoch, commit, bump, self.producer_ids)
        return self.call(request, EndTransactionResponse)

    @property
    def state(self) -> str:
        return self.coordinator.describe("t").state

    # The log and the partitions.

    def append(self, batch: RecordBatch) -> None:
        self.log.append(batch.stamped(self.log[-1].last_offset + 1 if self.log else 0, self.epoch))

    def acknowledge(self, error: ErrorCode = ErrorCode.NONE, kept: bool = True) -> None:
        append = self.in_flight.popleft()
        if kept:
            self.append(append.batch)
        self.took(self.coordinator.on_appended(self.now, append.write, error))

    def mark(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """A partition's leader takes the oldest marker, or does not."""
        marker = self.unwritten.popleft()
        batch = marker.batch
        assert batch.marker is not None
        if error is ErrorCode.NONE:
            self.markers.append((marker.partition, batch.producer_id, batch.producer_epoch, batch.marker))
        effects = self.coordinator.on_marked(
            self.now, marker.transactional_id, batch.producer_epoch, marker.partition, error
        )
        self.took(effects)

    def settle(self) -> None:
        while self.in_flight or self.unwritten:
            if self.in_flight:
                self.acknowledge()
            else:
                self.mark()

    def passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.took(self.coordinator.on_tick(self.now))

    def fail_over(self, kept: int = 0) -> None:
        """The coordinator's broker is lost, and with it the markers it had not sent."""
        in_flight = list(self.in_flight)
        self.in_flight.clear()
        self.unwritten.clear()
        self.took(self.coordinator.on_resigned(self.now, 0))
        assert not self.in_flight
        assert not self.unwritten
        for append in in_flight[:kept]:
            self.append(append.batch)
        self.elect()
