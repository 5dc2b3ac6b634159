"""A transaction coordinator, its log, and partitions that take markers."""

from collections import deque
from dataclasses import dataclass, field

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.transactions import TransactionCoordinator, TransactionSettings, WriteMarker
from rackspan.cluster.core.transactions.requests import (
    AddPartitions,
    AddPartitionsResponse,
    EndTransaction,
    EndTransactionResponse,
    InitProducerId,
    InitProducerIdResponse,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.coordinator_world import CoordinatorWorld

ONE_PARTITION = TransactionSettings(transaction_state_log_num_partitions=1)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@dataclass
class World(CoordinatorWorld[TransactionCoordinator]):
    """One transactional id, "t". `markers` are (partition, producer id, epoch, commit or abort) as they were written."""

    unwritten: deque[WriteMarker] = field(default_factory=deque)
    markers: list[tuple[TopicPartition, int, int, Marker]] = field(default_factory=list)
    producer_ids: int = 100

    def new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(ONE_PARTITION)

    def emitted(self, effect: object) -> None:
        if isinstance(effect, WriteMarker):
            self.unwritten.append(effect)
        else:
            super().emitted(effect)

    # Requests.

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

    # The partitions.

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
        """Until every record is committed and every marker written."""
        while self.in_flight or self.unwritten:
            super().settle()
            if self.unwritten:
                self.mark()

    def fail_over(self, kept: int = 0) -> None:
        """The coordinator's broker is lost, and with it the markers it had not sent."""
        self.unwritten.clear()
        super().fail_over(kept)
