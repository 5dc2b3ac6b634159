"""Coordinators' record batches as the log's `RecordBatch` values."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rackspan.cluster.core.batch import NO_PRODUCER, NO_SEQUENCE, Marker, RecordBatch
from rackspan.errors import InvalidRecord
from rackspan.kafka_bytes import malformed_as
from rackspan.kafka_bytes.record_batch import KeyValue, end_marker, read_records, write_batch


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
