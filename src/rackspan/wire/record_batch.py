"""The header of a record batch, version 2: the 61 bytes a broker reads of records that it never opens.

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

Source: Kafka's DefaultRecordBatch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from crc32c import crc32c

from rackspan.errors import CorruptRecords

HEADER_BYTES: Final = 61
LENGTH_END: Final = 12
"""A batch is this much longer than its length says."""

MAGIC: Final = 2
MAGIC_AT: Final = 16

_HEADER: Final = Struct(">qiibIhiqqqhii")
_BASE_OFFSET: Final = Struct(">q")
_LEADER_EPOCH: Final = Struct(">i")
_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_CRC_END: Final = 21
_MAX_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35

_COMPRESSION: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """What a broker knows of a batch. Timestamps in ms since the epoch; `size_bytes` counts the whole batch."""

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
    def log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & _CONTROL)


def read_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    """The batch that begins at `at`, its CRC unchecked.

    Errors: CorruptRecords for a batch that is cut off, of another version, or contradicts itself.
    """
    if len(data) - at < HEADER_BYTES:
        raise CorruptRecords(f"a record batch of {len(data) - at} bytes; its header alone takes {HEADER_BYTES}")
    base, length, epoch, magic, crc, *rest = _HEADER.unpack_from(data, at)
    if magic != MAGIC:
        raise CorruptRecords(f"a record batch of version {magic}; only version {MAGIC} is read")
    size = length + LENGTH_END
    if not HEADER_BYTES <= size <= len(data) - at:
        raise CorruptRecords(f"a record batch that says it has {size} bytes, of which {len(data) - at} are there")
    header = BatchHeader(base, size, epoch, crc, *rest)
    # A producer's batch has no gaps; compaction makes them, and we do not compact.
    if header.record_count != header.last_offset_delta + 1 or header.record_count < 1:
        raise CorruptRecords(
            f"a record batch of {header.record_count} records whose last has offset delta {header.last_offset_delta}"
        )
    return header


def verify_crc(data: bytes | bytearray | memoryview, header: BatchHeader, at: int = 0) -> None:
    """Errors: CorruptRecords where the bytes are not those the producer sent."""
    found = crc32c(memoryview(data)[at + _CRC_END : at + header.size_bytes])
    if found != header.crc:
        raise CorruptRecords(f"a record batch with CRC-32C {header.crc:08x}, whose bytes have {found:08x}")


def read_headers(data: bytes | bytearray | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch in a row of them, with where it begins. CRCs are checked. Errors: CorruptRecords."""
    at = 0
    while at < len(data):
        header = read_header(data, at)
        verify_crc(data, header, at)
        yield at, header
        at += header.size_bytes


def stamp_append_time(batch: bytearray | memoryview, now: int) -> None:
    """Write in place that the leader tells the time (ms): of all records alike. The CRC is made anew, as Kafka does."""
    attributes = int.from_bytes(batch[_CRC_END : _CRC_END + 2], "big") | _LOG_APPEND_TIME
    batch[_CRC_END : _CRC_END + 2] = attributes.to_bytes(2, "big")
    _MAX_TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, now)
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_END:]))


def stamp(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Write in place what only a leader knows. The CRC holds: it does not cover these fields."""
    _BASE_OFFSET.pack_into(batch, 0, base_offset)
    _LEADER_EPOCH.pack_into(batch, LENGTH_END, leader_epoch)
