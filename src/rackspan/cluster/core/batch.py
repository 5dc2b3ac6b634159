"""A record batch in the core: the fields of its header, and bytes that the core does not decode.

Source: Kafka's record batch format v2. `baseOffset` (bytes 0-7) and `partitionLeaderEpoch` (bytes 12-15) stand outside the
CRC, so that a leader stamps them without touching what the producer signed.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from rackspan.kafka_bytes.record_batch import stamp

NO_PRODUCER: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

SEQUENCES: Final = 2**31
"""Sequence numbers wrap to 0 after the largest int32 (DefaultRecordBatch.incrementSequence)."""

BatchBytes: TypeAlias = "bytes | bytearray | memoryview"


class Marker(IntEnum):
    """How a transaction ended, by the numbers in its control record's key."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """One batch, offsets `base_offset` to `last_offset`. `data` is its bytes as on the wire, or empty in a simulation.

    A producer's batch starts at offset 0 with any leader epoch; `stamped` makes it the leader's. `marker` is set on the
    control batch that ends a transaction. Timestamps in ms since 1970.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    data: BatchBytes = b""
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    max_timestamp: int = NO_TIMESTAMP
    transactional: bool = False
    control: bool = False
    marker: Marker | None = None
    epoch_bumped: bool = False
    """Of a marker on its way to the log: it bumps the epoch, so the transaction it ends has a smaller one (KIP-890, part 2)."""
    delete_horizon_ms: int | None = None
    """When compaction removes the tombstones, or the marker, of this batch (KIP-534). Kafka keeps it in the batch's bytes."""

    @property
    def record_count(self) -> int:
        return self.last_offset - self.base_offset + 1

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    @property
    def idempotent(self) -> bool:
        """Whether it has a producer's sequence number; markers have a producer and no number."""
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return (self.base_sequence + self.last_offset - self.base_offset) % SEQUENCES

    def stamped(self, base_offset: int, leader_epoch: int) -> "RecordBatch":
        """The same batch at an offset of a leader's log. Writable memory is stamped in place, `bytes` are copied."""
        return RecordBatch(
            base_offset,
            base_offset + self.last_offset - self.base_offset,
            leader_epoch,
            _stamped(self.data, base_offset, leader_epoch),
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.max_timestamp,
            self.transactional,
            self.control,
            self.marker,
        )


def _stamped(data: BatchBytes, base_offset: int, leader_epoch: int) -> BatchBytes:
    if not data:
        return data
    stamped = bytearray(data) if isinstance(data, bytes) else data
    stamp(stamped, base_offset, leader_epoch)
    return stamped
