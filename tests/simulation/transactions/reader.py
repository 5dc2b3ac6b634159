"""A reader of all partitions, from their first records on: it fetches near its rack and filters what was aborted.

It does what the Java consumer does with the list of aborted transactions: a producer's batches are passed over from the
first offset of its aborted transaction to the marker. It decides nothing by records of the coordinator.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.broker import ClientFetch, Isolation, PartitionFetch, ReadResponse
from rackspan.cluster.core.log import AbortedTransaction
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from tests.simulation.environment.clock import Clock
from tests.simulation.judges.transactions import TransactionRules
from tests.simulation.transactions.script import RequestStep, Steps, Wait

NO_BROKER: Final = -1


MAX_BYTES: Final = 1 << 20
MAX_WAITS_MS: Final = (0, 40, 120)


@dataclass(slots=True)
class Reader:
    """`number` identifies the reader; `positions` are the next offsets to read."""

    number: int
    isolation: Isolation
    rack: RackId | None
    partitions: tuple[TopicPartition, ...]
    clock: Clock
    rng: Random
    rules: TransactionRules
    stop_at: int
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    _nearest: dict[TopicPartition, BrokerId] = field(default_factory=dict)

    def steps(self) -> Steps:
        while self.clock.now < self.stop_at:
            for partition in self.partitions:
                near = self._nearest.get(partition)
                response: Any = yield RequestStep(partition, self._fetch(partition), near)
                self._take(partition, response)
            yield Wait(self.rng.randint(5, 60))

    def _fetch(self, partition: TopicPartition) -> ClientFetch:
        fetches = (PartitionFetch(partition, self.positions.get(partition, 0), MAX_BYTES),)
        wait_ms = self.rng.choice(MAX_WAITS_MS)
        return ClientFetch(fetches, 1, MAX_BYTES, wait_ms, self.isolation, self.rack, follower_ok=True)

    def _take(self, partition: TopicPartition, result: ReadResponse | None) -> None:
        """Whatever goes wrong at a follower is tried at the leader next."""
        self._nearest.pop(partition, None)
        if result is None or result.error is not ErrorCode.NONE:
            return
        if result.preferred_read_replica != NO_BROKER:
            self._nearest[partition] = result.preferred_read_replica
            return
        for batch in _visible(result.batches, result.aborted, self.isolation):
            self.rules.reads(self.number, self.isolation, partition, batch)
        if result.batches:
            self.positions[partition] = result.batches[-1].last_offset + 1


def _visible(
    batches: tuple[RecordBatch, ...], aborted: tuple[AbortedTransaction, ...], isolation: Isolation
) -> list[RecordBatch]:
    """The data batches that an application is given."""
    if isolation is Isolation.READ_UNCOMMITTED:
        return [batch for batch in batches if not batch.control]
    starts = sorted(aborted, key=lambda each: each.first_offset)
    skipped: set[int] = set()
    found: list[RecordBatch] = []
    for batch in batches:
        while starts and starts[0].first_offset <= batch.last_offset:
            skipped.add(starts.pop(0).producer_id)
        if batch.marker is Marker.ABORT:
            skipped.discard(batch.producer_id)
        if not batch.control and not (batch.transactional and batch.producer_id in skipped):
            found.append(batch)
    return found
