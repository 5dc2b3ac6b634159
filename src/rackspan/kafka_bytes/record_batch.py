"""Record batches, version 2: the 61-byte header, its CRC, and the records where they are not compressed.

    offset  0  base offset         int64   set by the leader, outside the CRC
            8  length              int32   of what follows it
           12  leader epoch        int32   set by the leader, outside the CRC
           16  magic               int8    2
           17  CRC-32C             uint32  of everything behind it
           21  attributes          int16   bits 0–2 compression, 3 log append time, 4 transactional, 5 control
           23  last offset delta   int32
           27  base timestamp      int64   ms
           35  max timestamp       int64   ms
           43  producer id         int64
           51  producer epoch      int16
           53  base sequence       int32
           57  record count        int32

A record is its size as a varint and then: attributes int8, timestamp delta varlong, offset delta varint, key and value
(each a varint size, -1 for null, and bytes), a varint number of headers (each two more such pairs).

Source: Kafka's DefaultRecordBatch, DefaultRecord and EndTransactionMarker.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from crc32c import crc32c

from rackspan.errors import CorruptRecords
from rackspan.kafka_bytes.primitives import ByteReader, int16, int32, varint

HEADER_BYTES: Final = 61
LENGTH_END: Final = 12
"""A batch is longer by this than its length field counts."""

MAGIC: Final = 2
MAGIC_AT: Final = 16

_HEADER: Final = Struct(">qiibIhiqqqhii")
_BASE_OFFSET: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_LEADER_EPOCH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_CRC_END: Final = 21
_MAX_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35

_MARKER_VERSION: Final = 0

_COMPRESSION: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20


KeyValue: TypeAlias = tuple[bytes | None, bytes | None]
"""A record's key and value, null as None. A record without value is a tombstone: compaction removes the key."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header's fields. Timestamps in ms since 1970; `size_bytes` counts the whole batch."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & _COMPRESSION

    @property
    def is_counted(self) -> bool:
        """Whether it has as many records as its offsets, and one at least, as a producer sends it."""
        return 1 <= self.record_count == self.last_offset_delta + 1

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & _CONTROL)


def read_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """The batch that begins at `at`, as a producer sends it: without gaps. Its CRC is unchecked.

    Errors: CorruptRecords for a batch that is cut off, of another version, or contradicts itself.
    """
    header = read_stored_header(data, at)
    if not header.is_counted:
        raise CorruptRecords(
            f"a record batch of {header.record_count} records whose last has offset delta {header.last_offset_delta}"
        )
    return header


def read_stored_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """The batch that begins at `at`, as a log may hold it: compaction removes records, at worst all. Its CRC is unchecked.

    Errors: CorruptRecords for a batch that is cut off, of another version, or contradicts itself.
    """
    header = read_any_header(data, at)
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        raise CorruptRecords(
            f"a record batch of {header.record_count} records whose last has offset delta {header.last_offset_delta}"
        )
    return header


def read_any_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """The same, whatever its number of records. Errors: CorruptRecords for a batch that is cut off, or of another version."""
    if len(data) - at < HEADER_BYTES:
        raise CorruptRecords(f"a record batch of {len(data) - at} bytes; its header alone takes {HEADER_BYTES}")
    base, length, epoch, magic, crc, *rest = _HEADER.unpack_from(data, at)
    if magic != MAGIC:
        raise CorruptRecords(f"a record batch of version {magic}; only version {MAGIC} is read")
    size = length + LENGTH_END
    if not HEADER_BYTES <= size <= len(data) - at:
        raise CorruptRecords(
            f"a record batch of {size} bytes by its length field, of which {len(data) - at} are present"
        )
    return BatchHeader(base, size, epoch, crc, *rest)


def last_offset_delta(records: "memoryview[int] | bytes | None") -> int | None:
    """How far the last record of the first batch is behind the first one; None if there is no batch."""
    try:
        return None if records is None else read_header(records).last_offset_delta
    except CorruptRecords:
        return None


def whole_batches(data: bytes | bytearray | memoryview) -> Iterator[tuple[BatchHeader, int]]:
    """The batches of a log or a Fetch response in order, each with the position where it begins. Their CRCs are unchecked.

    One that is cut off at the end of `data` is left out: a broker cuts a response at its maximum size. Errors: CorruptRecords.
    """
    at = 0
    while len(data) - at >= HEADER_BYTES:
        if len(data) - at < LENGTH_END + _LENGTH.unpack_from(data, at + _LENGTH_AT)[0]:
            return
        header = read_stored_header(data, at)
        yield header, at
        at += header.size_bytes


def verify_crc(data: bytes | bytearray | memoryview, header: BatchHeader, at: int = 0) -> None:
    """Errors: CorruptRecords where the bytes are not those that the producer sent."""
    actual = crc32c(memoryview(data)[at + _CRC_END : at + header.size_bytes])
    if actual != header.crc:
        raise CorruptRecords(f"a record batch with CRC-32C {header.crc:08x}, whose bytes have {actual:08x}")


def write_batch(
    records: Sequence[KeyValue],
    timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    *,
    control: bool = False,
) -> bytes:
    """An uncompressed batch at offset 0 of at least one record. With a producer it is part of that producer's transaction.

    It has no sequence number: a coordinator writes on the producer's behalf, and the log checks the epoch alone.
    """
    body = b"".join(_write_record(delta, key, value) for delta, (key, value) in enumerate(records))
    attributes = (_TRANSACTIONAL if producer_id != -1 else 0) | (_CONTROL if control else 0)
    length, last = HEADER_BYTES - LENGTH_END + len(body), len(records) - 1
    producer = (producer_id, producer_epoch, -1)
    header = _HEADER.pack(
        0, length, -1, MAGIC, 0, attributes, last, timestamp_ms, timestamp_ms, *producer, len(records)
    )
    batch = bytearray(header + body)
    _write_crc(batch)
    return bytes(batch)


def _write_record(offset_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\x00\x00" + varint(offset_delta) + _varint_bytes(key) + _varint_bytes(value) + b"\x00"
    return varint(len(body)) + body


def _varint_bytes(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def end_marker(marker: int, coordinator_epoch: int) -> KeyValue:
    """The control record that ends a transaction: `marker` is 0 for abort, 1 for commit."""
    return int16(_MARKER_VERSION) + int16(marker), int16(_MARKER_VERSION) + int32(coordinator_epoch)


def read_records(batch: bytes | bytearray | memoryview) -> Iterator[tuple[int, KeyValue]]:
    """Offset delta, and key and value, of each record in an uncompressed batch; nothing of the header is checked.

    Errors: MalformedBytes, also for a compressed batch.
    """
    reader = ByteReader(batch, HEADER_BYTES)
    if int.from_bytes(batch[_CRC_END : _CRC_END + 2], "big") & _COMPRESSION:
        raise reader.malformed("the batch is compressed, and only uncompressed ones are read here")
    while reader.remaining:
        record = ByteReader(reader.view(reader.varint()))
        record.int8()
        record.varlong()
        delta = record.varint()
        yield delta, (_read_varint_bytes(record), _read_varint_bytes(record))


class StoredRecord(NamedTuple):
    """A record as it stands in a batch; `data` are its bytes, size included."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    tombstone: bool
    data: memoryview


def stored_records(body: bytes | bytearray | memoryview) -> Iterator[StoredRecord]:
    """The records of a batch; `body` is what follows its header, uncompressed. Errors: MalformedBytes."""
    reader = ByteReader(body)
    while reader.remaining:
        start = reader.at
        record = ByteReader(reader.view(reader.varint()))
        record.int8()
        timestamp_delta, offset_delta = record.varlong(), record.varint()
        key = _read_varint_bytes(record)
        yield StoredRecord(offset_delta, timestamp_delta, key, record.varint() < 0, memoryview(body)[start : reader.at])


def with_records(batch: bytes | bytearray | memoryview, records: Sequence[StoredRecord]) -> bytes:
    """The batch with these of its records alone, uncompressed: offsets, producer and sequence numbers stay as they are.

    The greatest timestamp is that of the records left, unless they have the time of the append. Source: Kafka's MemoryRecords.filterTo.
    """
    header = read_stored_header(batch)
    latest = header.max_timestamp
    if records and not header.log_append_time:
        latest = header.base_timestamp + max(record.timestamp_delta for record in records)
    body = b"".join(record.data for record in records)
    written = bytearray(
        _HEADER.pack(
            header.base_offset,
            HEADER_BYTES - LENGTH_END + len(body),
            header.leader_epoch,
            MAGIC,
            0,
            header.attributes & ~_COMPRESSION,
            header.last_offset_delta,
            header.base_timestamp,
            latest,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            len(records),
        )
        + body
    )
    _write_crc(written)
    return bytes(written)


def _read_varint_bytes(reader: ByteReader) -> bytes | None:
    size = reader.varint()
    return None if size < 0 else reader.take(size)


def stamp_append_time(batch: bytearray | memoryview, now: int) -> None:
    """Write the time of the append (ms) in place, for all records alike. The CRC is computed again, as Kafka does."""
    attributes = int.from_bytes(batch[_CRC_END : _CRC_END + 2], "big") | _LOG_APPEND_TIME
    batch[_CRC_END : _CRC_END + 2] = attributes.to_bytes(2, "big")
    _MAX_TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, now)
    _write_crc(batch)


def stamp(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write the leader's fields in place. The CRC does not cover them."""
    _BASE_OFFSET.pack_into(batch, 0, base_offset)
    _LEADER_EPOCH.pack_into(batch, LENGTH_END, leader_epoch)


def _write_crc(batch: bytearray | memoryview) -> None:
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_END:]))
