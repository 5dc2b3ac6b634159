"""Decodes the records of a batch: to find the one at a timestamp, to check that each has a key, to compact a log."""

from dataclasses import dataclass
from typing import Any

from rackspan.cluster.core.batch import BatchBytes, RecordBatch
from rackspan.cluster.core.log.compaction import uncompressed_body
from rackspan.kafka_bytes.record_batch import HEADER_BYTES, read_stored_header

_GZIP, _SNAPPY, _LZ4, _ZSTD = range(1, 5)


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """A record's offset and timestamp (ms)."""

    offset: int
    timestamp: int


def first_record_at(batch: RecordBatch, timestamp: int) -> RecordPosition:
    """The first record of the batch at `timestamp` or later; the last record if the batch cannot be decompressed here."""
    later = [position for position in _positions(batch) if position.timestamp >= timestamp]
    return later[0] if later else RecordPosition(batch.last_offset, batch.max_timestamp)


def latest_record(batch: RecordBatch) -> RecordPosition:
    """The first of those with the batch's greatest timestamp."""
    return first_record_at(batch, batch.max_timestamp)


def keyless_records(data: bytes | bytearray | memoryview) -> list[int]:
    """The places in the batch of records without a key; none if the batch cannot be decompressed here."""
    return [index for index, record in enumerate(_records(data)) if record.key is None]


def record_body(batch: RecordBatch) -> "BatchBytes | None":
    """The records of a batch, decompressed; None if the library of its compression is not installed here."""
    from kafka import codec

    compression = read_stored_header(batch.data).compression if len(batch.data) >= HEADER_BYTES else 0
    installed, decode = {
        _GZIP: (codec.has_gzip, codec.gzip_decode),
        _SNAPPY: (codec.has_snappy, codec.snappy_decode),
        _LZ4: (codec.has_lz4, codec.lz4_decode),
        _ZSTD: (codec.has_zstd, codec.zstd_decode),
    }.get(compression, (lambda: False, None))
    if not compression:
        return uncompressed_body(batch)
    return decode(bytes(batch.data[HEADER_BYTES:])) if decode is not None and installed() else None


def _positions(batch: RecordBatch) -> list[RecordPosition]:
    return [RecordPosition(record.offset, record.timestamp) for record in _records(batch.data)]


def _records(data: bytes | bytearray | memoryview) -> list[Any]:
    # kafka-python reads every compression whose library is installed.
    from kafka.errors import UnsupportedCodecError
    from kafka.record.default_records import DefaultRecordBatch

    try:
        return list(DefaultRecordBatch(bytes(data)))
    except UnsupportedCodecError:
        return []
