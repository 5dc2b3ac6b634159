"""Record batches, version 2 and uncompressed, as coordinators write and read them.

Source: Kafka's DefaultRecordBatch (the 61 bytes before the records), DefaultRecord, and EndTransactionMarker (the control
record that ends a transaction).
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from rackspan.cluster.core.batch import NO_PRODUCER, NO_SEQUENCE, Batch, Marker
from rackspan.cluster.core.kafka_format import Reader, int16, int32, varint
from rackspan.errors import InvalidRecord
from rackspan.wire.record_batch import HEADER_BYTES

_MAGIC: Final = 2
_BEFORE_CRC: Final = struct.Struct(">qiib")
_CRC: Final = struct.Struct(">I")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")
_LENGTH_END: Final = 12
_COMPRESSION: Final = 0x07
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_MARKER_VERSION: Final = 0


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A null value is a tombstone: the key is forgotten."""

    key: bytes
    value: bytes | None


def encode_batch(
    records: Sequence[CoordinatorRecord], timestamp_ms: int, producer_id: int = NO_PRODUCER, producer_epoch: int = -1
) -> Batch:
    """One batch of these records, at least one. With a producer it is part of that producer's transaction.

    It carries no sequence number: the coordinator writes on the producer's behalf, and the log checks its epoch alone.
    """
    return _batch(records, timestamp_ms, producer_id, producer_epoch, None)


def marker_batch(
    producer_id: int, producer_epoch: int, marker: Marker, coordinator_epoch: int, timestamp_ms: int
) -> Batch:
    """The control batch that ends a producer's transaction in one partition."""
    record = CoordinatorRecord(
        int16(_MARKER_VERSION) + int16(marker), int16(_MARKER_VERSION) + int32(coordinator_epoch)
    )
    return _batch([record], timestamp_ms, producer_id, producer_epoch, marker)


def _batch(
    records: Sequence[CoordinatorRecord], timestamp_ms: int, producer_id: int, epoch: int, marker: Marker | None
) -> Batch:
    transactional = producer_id != NO_PRODUCER
    last = len(records) - 1
    attributes = (_TRANSACTIONAL if transactional else 0) | (_CONTROL if marker is not None else 0)
    body = _AFTER_CRC.pack(
        *(attributes, last, timestamp_ms, timestamp_ms, producer_id, epoch, NO_SEQUENCE, len(records))
    ) + b"".join(_encode_record(delta, record) for delta, record in enumerate(records))
    length = _BEFORE_CRC.size - _LENGTH_END + _CRC.size + len(body)
    data = _BEFORE_CRC.pack(0, length, -1, _MAGIC) + _CRC.pack(crc32c(body)) + body
    return Batch(
        *(0, last, -1, data, producer_id, epoch, NO_SEQUENCE, timestamp_ms, transactional),
        control=marker is not None,
        marker=marker,
    )


def _encode_record(offset_delta: int, record: CoordinatorRecord) -> bytes:
    value = varint(-1) if record.value is None else varint(len(record.value)) + record.value
    # Attributes, timestamp delta, offset delta; key and value; no headers.
    body = b"\x00\x00" + varint(offset_delta) + varint(len(record.key)) + record.key + value + b"\x00"
    return varint(len(body)) + body


def decode_batch(batch: Batch) -> Iterator[tuple[int, CoordinatorRecord]]:
    """(offset, record) of a batch that `encode_batch` or Kafka made.

    Raises InvalidRecord for one that is cut or compressed: coordinators, Kafka's too by default, do not compress.
    """
    data = bytes(batch.data)
    attributes = Reader(data[_BEFORE_CRC.size + _CRC.size :]).int16()
    if attributes & _COMPRESSION:
        raise InvalidRecord(f"offset {batch.base_offset}: a coordinator's batch is compressed; write it uncompressed")
    reader = Reader(data[HEADER_BYTES:])
    while reader.remaining:
        delta, record = _decode_record(Reader(reader.raw(reader.varint())))
        yield batch.base_offset + delta, record


def _decode_record(reader: Reader) -> tuple[int, CoordinatorRecord]:
    reader.int8()  # attributes: none are defined
    reader.varint()  # timestamp
    delta = reader.varint()
    key = reader.raw(max(reader.varint(), 0))
    value_bytes = reader.varint()
    return delta, CoordinatorRecord(key, None if value_bytes < 0 else reader.raw(value_bytes))
