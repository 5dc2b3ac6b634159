"""What group and transaction coordinators share: the partition of a key, record batches, writes and loads.

A coordinator sends no response that depends on a record before that record is acknowledged by its
partition (acks=all): its successor then has the same state.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from rackspan.cluster.core.batch import NO_PRODUCER, NO_SEQUENCE, Marker, RecordBatch
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import Respond
from rackspan.errors import InvalidRecord
from rackspan.kafka_bytes import malformed_as
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.java_hash import java_hash
from rackspan.kafka_bytes.record_batch import KeyValue, end_marker, read_records, write_batch

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


def partition_for(key: str, partitions: int) -> int:
    """Kafka's Utils.abs(hash) % partitions, where abs of the least int32 is 0."""
    code = java_hash(key)
    return (0 if code == -(2**31) else abs(code)) % partitions


@dataclass(frozen=True, slots=True)
class PendingLoad:
    """A partition to load. `end_offset` is where the log ended when its leadership began."""

    leader_epoch: int
    end_offset: int


class PendingLoads:
    """The loads that wait for their log, by partition: until all that the log held at the election is committed.

    A new leader's log may hold the last records of its predecessor that no other replica has. A coordinator that acted on them
    would give clients what a successor elected without them does not have: an offset, or a generation that is then used a second
    time. Kafka reads offsets up to the last committed record for the same reason.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, PendingLoad] = {}

    def add(self, partition: int, leader_epoch: int, log: PartitionLog) -> None:
        self._waiting[partition] = PendingLoad(leader_epoch, log.end_offset)

    def remove(self, partition: int) -> None:
        self._waiting.pop(partition, None)

    def pop_ready(self, log_of: Callable[[int], PartitionLog]) -> Iterator[tuple[int, int]]:
        """(partition, leader epoch) of each that may be loaded now, each once."""
        for partition, load in list(self._waiting.items()):
            if log_of(partition).high_watermark >= load.end_offset:
                del self._waiting[partition]
                yield partition, load.leader_epoch


class CoordinatorRecord(NamedTuple):
    """A null value is a tombstone: the key is removed."""

    key: bytes
    value: bytes | None


def encode_batch(
    records: Sequence[CoordinatorRecord], timestamp_ms: int, producer_id: int = NO_PRODUCER, producer_epoch: int = -1
) -> RecordBatch:
    """One batch of these records, at least one. With a producer it is part of that producer's transaction."""
    return _batch(records, timestamp_ms, producer_id, producer_epoch, None)


def marker_batch(
    producer_id: int,
    producer_epoch: int,
    marker: Marker,
    coordinator_epoch: int,
    timestamp_ms: int,
    *,
    epoch_bumped: bool = False,
) -> RecordBatch:
    """The control batch that ends a producer's transaction in one partition. `epoch_bumped`: see `RecordBatch`."""
    batch = _batch([end_marker(marker, coordinator_epoch)], timestamp_ms, producer_id, producer_epoch, marker)
    return replace(batch, epoch_bumped=True) if epoch_bumped else batch


def _batch(
    records: Sequence[KeyValue], timestamp_ms: int, producer_id: int, epoch: int, marker: Marker | None
) -> RecordBatch:
    data = write_batch(records, timestamp_ms, producer_id, epoch, control=marker is not None)
    return RecordBatch(
        *(0, len(records) - 1, -1, data, producer_id, epoch, NO_SEQUENCE, timestamp_ms, producer_id != NO_PRODUCER),
        control=marker is not None,
        marker=marker,
    )


def decode_batch(batch: RecordBatch) -> Iterator[tuple[int, CoordinatorRecord]]:
    """Offset and record of a batch that `encode_batch` or Kafka made.

    Errors: InvalidRecord for one that is cut, or compressed: coordinators, Kafka's too by default, do not compress.
    """
    with malformed_as(lambda why: InvalidRecord(f"offset {batch.base_offset}: {why}")):
        for delta, (key, value) in read_records(batch.data):
            yield batch.base_offset + delta, CoordinatorRecord(key or b"", value)


@dataclass(frozen=True, slots=True)
class Append:
    """Append to a partition of the coordinator's own topic, acks=all, and pass the outcome to `on_appended` with `write`.

    Appends to one partition must be made in the order in which they come out.
    """

    partition: int
    batch: RecordBatch
    write: int


CoordinatorEffect: TypeAlias = Respond | Append

Then: TypeAlias = Callable[[int, ErrorCode, int], None]
"""Called after an append: (now in ms, error, offset of the batch's first record or NO_OFFSET)."""


@dataclass(frozen=True, slots=True)
class _Write:
    partition: int
    then: Then


class Writes:
    """Collects effects. A write's number is never used twice, so that a late acknowledgement is ignored."""

    __slots__ = ("_effects", "_last", "_waiting")

    def __init__(self) -> None:
        self._effects: list[CoordinatorEffect] = []
        self._waiting: dict[int, _Write] = {}
        self._last = 0

    def respond(self, correlation_id: CorrelationId, response: object) -> None:
        self._effects.append(Respond(correlation_id, response))

    def append(self, partition: int, batch: RecordBatch, then: Then) -> None:
        self._last += 1
        self._waiting[self._last] = _Write(partition, then)
        self._effects.append(Append(partition, batch, self._last))

    def acknowledged(self, now: int, write: int, error: ErrorCode, base_offset: int) -> None:
        waiting = self._waiting.pop(write, None)
        if waiting is not None:
            waiting.then(now, error, base_offset)

    def abandon(self, now: int, partition: int) -> None:
        """Fail the pending writes of a partition that another broker leads now."""
        for number in [number for number, write in self._waiting.items() if write.partition == partition]:
            self.acknowledged(now, number, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET)

    def pending(self, partition: int) -> int:
        """How many writes to this partition are not acknowledged."""
        return sum(write.partition == partition for write in self._waiting.values())

    def take(self) -> list[CoordinatorEffect]:
        effects, self._effects = self._effects, []
        return effects
