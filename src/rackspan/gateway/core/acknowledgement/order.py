"""Batches of idempotent producers behind one that was refused before the append: they are refused as well.

A broker would find a gap in the sequence numbers and respond OUT_OF_ORDER_SEQUENCE_NUMBER. librdkafka then takes a new epoch and
sends everything again that has no acknowledgement yet; a record that was appended and refused after it would be in the log twice.
Refused in order, batches are retried in order, in the epoch that they have. Source: KIP-98.
"""

from dataclasses import dataclass
from typing import Final

from rackspan.acks.isr_samples import Partition
from rackspan.errors import CorruptRecords
from rackspan.kafka_bytes.record_batch import read_header

ORDER_SECONDS: Final = 10.0
"""Time limit for the batch to come again, from the time that its producer may know of the refusal. Requests on their way arrive at once; a
producer that gave it up gets the broker's own response."""

_MOST_KEPT: Final = 1000
"""On one connection: a client chooses how many partitions it names."""

_SEQUENCES: Final = 2**31


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """The producer's part of a record batch's header."""

    producer_id: int
    epoch: int
    sequence: int
    last_offset_delta: int


def producer_batch(records: "memoryview[int] | bytes | None") -> ProducerBatch | None:
    """The first batch's; None if no idempotent producer wrote it."""
    if records is None:
        return None
    try:
        header = read_header(records)
    except CorruptRecords:
        # The broker refuses it.
        return None
    if header.producer_id < 0 or header.base_sequence < 0:
        return None
    return ProducerBatch(header.producer_id, header.producer_epoch, header.base_sequence, header.last_offset_delta)


class RefusedSequences:
    """On one connection, the first batch of each producer and partition that was refused and has not come again."""

    def __init__(self) -> None:
        self._first: dict[tuple[Partition, int], tuple[ProducerBatch, float]] = {}

    def admits(self, partition: Partition, batch: ProducerBatch, now: float) -> bool:
        """False for a batch behind the refused one."""
        first, refused_at = self._first.get((partition, batch.producer_id), (None, now))
        if first is None:
            return True
        ahead = (first.sequence - batch.sequence) % _SEQUENCES
        if first.epoch != batch.epoch or now - refused_at > ORDER_SECONDS or ahead <= batch.last_offset_delta:
            # Another epoch counts from 0; the batch that has this sequence number is the refused one.
            del self._first[partition, batch.producer_id]
            return True
        return ahead < _SEQUENCES // 2

    def refuse(self, partition: Partition, batch: ProducerBatch, now: float) -> None:
        """A batch that `admits` admitted is refused for another reason."""
        self._first.pop((partition, batch.producer_id), None)
        if len(self._first) >= _MOST_KEPT:
            del self._first[next(iter(self._first))]
        self._first[partition, batch.producer_id] = batch, now

    def restart(self, now: float) -> None:
        """Refusals are received only now: a response before them on the connection was held."""
        self._first = {key: (batch, now) for key, (batch, _) in self._first.items()}
