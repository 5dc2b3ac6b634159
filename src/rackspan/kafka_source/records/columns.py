"""Record batches of a fetch response as columns: offsets, timestamps, and where each key and value stands in the bytes.

Only two loops visit single items in Python: one over batches, and one over the size prefixes of records, because each says
where the next begins. All other fields of all records are decoded together with NumPy.

Source: Kafka's DefaultRecordBatch and DefaultRecord; docs of the format in kafka_bytes/record_batch.py. For aborted transactions:
KIP-98, and the consumer's use of FetchResponse's aborted transactions.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rackspan.errors import CorruptRecords
from rackspan.kafka_bytes.primitives import ByteReader
from rackspan.kafka_bytes.record_batch import HEADER_BYTES, BatchHeader, verify_crc, whole_batches

_SNAPPY: Final = 2
_STREAMED: Final = {1: "gzip", 3: "lz4", 4: "zstd"}
_NAMES: Final = {**_STREAMED, _SNAPPY: "snappy"}

_JAVA_FRAMING: Final = b"\x82SNAPPY\x00"
_JAVA_FRAMING_BYTES: Final = 16
"""The magic above, then two version numbers."""

_BLOCK_SIZE: Final = Struct(">i")


def decompressed(payload: memoryview, codec: int) -> bytes:
    """`codec` as in a batch's attributes. Errors: CorruptRecords, also for a codec that Kafka does not have."""
    if codec not in _NAMES:
        raise CorruptRecords(f"a record batch with compression type {codec}, which Kafka 4.1 does not have")
    try:
        if codec == _SNAPPY:
            return _snappy(payload)
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(payload)), _STREAMED[codec]) as stream:
            return bytes(stream.read())
    except (pa.ArrowException, OSError) as error:
        raise CorruptRecords(f"a record batch whose {_NAMES[codec]} data cannot be read: {error}") from None


def _snappy(payload: memoryview) -> bytes:
    if bytes(payload[: len(_JAVA_FRAMING)]) != _JAVA_FRAMING:
        return _snappy_block(payload)
    blocks, at = [], _JAVA_FRAMING_BYTES
    while at < len(payload):
        if at + _BLOCK_SIZE.size > len(payload):
            raise CorruptRecords("a record batch whose last snappy block is cut off")
        (size,) = _BLOCK_SIZE.unpack_from(payload, at)
        at += _BLOCK_SIZE.size
        if not 0 <= size <= len(payload) - at:
            raise CorruptRecords(
                f"a record batch with a snappy block of {size} bytes, of which {len(payload) - at} are present"
            )
        blocks.append(_snappy_block(payload[at : at + size]))
        at += size
    return b"".join(blocks)


def _snappy_block(block: memoryview) -> bytes:
    # A block begins with its decompressed size, which Arrow requires.
    size = ByteReader(block).unsigned_varint()
    return bytes(pa.decompress(pa.py_buffer(block), decompressed_size=size, codec="snappy"))


Ints: TypeAlias = npt.NDArray[np.int64]
Header: TypeAlias = tuple[str, bytes | None]

_MARKER_TYPE: Final = Struct(">hh")
_ABORT: Final = 0

_VARINT_BYTES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in offset order. `data` holds their keys and values; a length of -1 is null.

    Shapes: every column has one item a record. Timestamps in ms since 1970, or -1.
    """

    data: bytes
    offsets: Ints
    timestamps: Ints
    log_append_time: npt.NDArray[np.bool_]
    key_starts: Ints
    key_lengths: Ints
    value_starts: Ints
    value_lengths: Ints
    header_starts: Ints
    """Where the number of headers stands."""

    def __len__(self) -> int:
        return len(self.offsets)

    def headers(self, row: int) -> list[Header]:
        """The headers of one record, keys as text."""
        reader = ByteReader(self.data, int(self.header_starts[row]))
        return [(_header_key(reader), _header_value(reader)) for _ in range(reader.varint())]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a response held: the records of a range, and the offset to fetch from next."""

    records: RecordColumns
    next_offset: int
    """The offset after the last whole batch, skipped ones included: offsets between batches belong to no record."""


@dataclass(frozen=True, slots=True)
class FetchedAbort:
    producer_id: int
    first_offset: int


class AbortedProducers:
    """Which transactional batches of one response were aborted. Feed it the batches in offset order."""

    def __init__(self, transactions: Iterable[FetchedAbort]) -> None:
        self._coming = deque(sorted(transactions, key=lambda transaction: transaction.first_offset))
        self._aborted: set[int] = set()

    def skips(self, batch: BatchHeader, marker: int | None) -> bool:
        """Whether the batch is left out. `marker` is the type of a control batch's record."""
        last = batch.base_offset + batch.last_offset_delta
        while self._coming and self._coming[0].first_offset <= last:
            self._aborted.add(self._coming.popleft().producer_id)
        if marker == _ABORT:
            self._aborted.discard(batch.producer_id)
        return batch.transactional and batch.producer_id in self._aborted


def decode(
    data: bytes, start: int, end: int, aborted: Sequence[FetchedAbort] = (), *, check_crcs: bool = True
) -> Fetched:
    """The records of `data` with start <= offset < end. A batch that is cut off at the end of `data` is left for the next fetch.

    Control records are left out, and so are records of `aborted` transactions (read_committed passes those of the response).
    Errors: CorruptRecords.
    """
    producers = AbortedProducers(aborted)
    kept: list[tuple[BatchHeader, int]] = []
    next_offset = start
    for header, at in whole_batches(data):
        if header.base_offset >= end:
            # What lies between is a gap, so the range is complete.
            next_offset = max(next_offset, header.base_offset)
            break
        if check_crcs:
            verify_crc(data, header, at)
        next_offset = max(next_offset, header.base_offset + header.last_offset_delta + 1)
        skipped = producers.skips(header, _marker_type(data, header, at))
        if not (skipped or header.control) and header.record_count and next_offset > start:
            kept.append((header, at))
    return Fetched(_between(_columns(data, kept), start, end), next_offset)


def _marker_type(data: bytes, header: BatchHeader, at: int) -> int | None:
    """The type of the control record in a control batch (0 abort, 1 commit), else None."""
    if not header.control or not header.record_count:
        return None
    reader = ByteReader(data, at + HEADER_BYTES)
    reader.varint()  # size
    reader.int8()  # attributes
    reader.varlong()  # timestamp delta
    reader.varint()  # offset delta
    if reader.varint() < _MARKER_TYPE.size:
        raise CorruptRecords(f"the control batch at offset {header.base_offset} names no type")
    return int(_MARKER_TYPE.unpack(reader.take(_MARKER_TYPE.size))[1])


def _columns(data: bytes, batches: Sequence[tuple[BatchHeader, int]]) -> RecordColumns:
    data, spans = _uncompressed(data, batches)
    starts = _record_starts(
        data, [(at, end, header.record_count) for (header, _), (at, end) in zip(batches, spans, strict=True)]
    )
    counts = np.array([header.record_count for header, _ in batches], np.int64)

    def of_batch(values: Sequence[int]) -> Ints:
        return np.repeat(np.array(values, np.int64), counts)

    append_time = np.repeat(np.array([header.log_append_time for header, _ in batches], np.bool_), counts)
    fields = _Varints(data, starts)
    fields.skip(1)  # attributes
    timestamp_deltas = fields.signed()
    offset_deltas = fields.signed()
    key_lengths, key_starts = fields.sized()
    value_lengths, value_starts = fields.sized()
    columns = RecordColumns(
        data=data,
        offsets=of_batch([header.base_offset for header, _ in batches]) + offset_deltas,
        timestamps=np.where(
            append_time,
            of_batch([header.max_timestamp for header, _ in batches]),
            of_batch([header.base_timestamp for header, _ in batches]) + timestamp_deltas,
        ),
        log_append_time=append_time,
        key_starts=key_starts,
        key_lengths=key_lengths,
        value_starts=value_starts,
        value_lengths=value_lengths,
        header_starts=fields.at,
    )
    ends = np.repeat(np.array([end for _, end in spans], np.int64), counts)
    if (fields.at >= ends).any():
        raise CorruptRecords("a record's key or value reaches beyond its batch")
    return columns


def _uncompressed(data: bytes, batches: Sequence[tuple[BatchHeader, int]]) -> tuple[bytes, list[tuple[int, int]]]:
    """One buffer, and where in it the records of each batch begin and end; `data` itself if nothing is compressed."""
    if not any(header.compression for header, _ in batches):
        return data, [(at + HEADER_BYTES, at + header.size_bytes) for header, at in batches]
    parts, spans, end = [], [], 0
    for header, at in batches:
        payload = memoryview(data)[at + HEADER_BYTES : at + header.size_bytes]
        part = decompressed(payload, header.compression) if header.compression else bytes(payload)
        parts.append(part)
        spans.append((end, end := end + len(part)))
    return b"".join(parts), spans


def _record_starts(data: bytes, spans: Iterable[tuple[int, int, int]]) -> Ints:
    """Where each record begins, behind its size. Spans: begin and end of a batch's records, and their number."""
    starts: list[int] = []
    append = starts.append
    for at, end, count in spans:
        for _ in range(count):
            if at >= end:
                raise CorruptRecords(f"a batch with fewer than the {count} records that its header counts")
            # The two shortest forms of a zigzag varint, which hold sizes below 8,192 bytes.
            size = data[at]
            if size < 0x80:
                at += 1
            elif (second := data[at + 1] if at + 1 < end else 0x80) < 0x80:
                size = (size & 0x7F) | second << 7
                at += 2
            else:
                size, at = _long_size(data, at, end)
            append(at)
            if size & 1:
                raise CorruptRecords("a record of negative size")
            at += size >> 1
        if at != end:
            raise CorruptRecords(f"a batch whose {count} records end {abs(end - at)} bytes off its own end")
    return np.array(starts, np.int64)


def _long_size(data: bytes, at: int, end: int) -> tuple[int, int]:
    size = shift = 0
    while at < end and shift < 35:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, at
        shift += 7
    raise CorruptRecords("a record whose size is cut off, or longer than a varint")


class _Varints:
    """Reads the same field of every record at once; `at` is where each record's next field begins."""

    def __init__(self, data: bytes, at: Ints) -> None:
        self._bytes = np.frombuffer(data, np.uint8)
        self.at = at.copy()

    def skip(self, count: int) -> None:
        self.at += count

    def signed(self) -> Ints:
        """Zigzag varints of up to ten bytes."""
        raw = self._unsigned()
        return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)

    def sized(self) -> tuple[Ints, Ints]:
        """Lengths (-1 for null) and starts of byte strings, which are passed over."""
        lengths = self.signed()
        # Before it is added: the sum of a size near 2**63 would be negative.
        if ((lengths < -1) | (lengths > len(self._bytes))).any():
            raise CorruptRecords("a key or value of a size that cannot be")
        starts = self.at.copy()
        self.at += np.maximum(lengths, 0)
        return lengths, starts

    def _unsigned(self) -> npt.NDArray[np.uint64]:
        byte = self._next_bytes(self.at)
        self.at += 1
        value = (byte & 0x7F).astype(np.uint64)
        longer = np.flatnonzero(byte >= 0x80)
        for place in range(1, _VARINT_BYTES_MAX):
            if not len(longer):
                return value
            byte = self._next_bytes(self.at[longer])
            self.at[longer] += 1
            value[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * place)
            longer = longer[byte >= 0x80]
        if len(longer):
            raise CorruptRecords("a varint of more than ten bytes")
        return value

    def _next_bytes(self, at: Ints) -> npt.NDArray[np.uint8]:
        try:
            return self._bytes[at]
        except IndexError:
            raise CorruptRecords("a record that is cut off") from None


def _between(columns: RecordColumns, start: int, end: int) -> RecordColumns:
    offsets = columns.offsets
    if not len(offsets) or (offsets[0] >= start and offsets[-1] < end):
        return columns
    kept = slice(int(np.searchsorted(offsets, start)), int(np.searchsorted(offsets, end)))
    arrays: Mapping[str, npt.NDArray[np.generic]] = {
        name: getattr(columns, name)[kept] for name in RecordColumns.__dataclass_fields__ if name != "data"
    }
    return RecordColumns(data=columns.data, **arrays)  # type: ignore[arg-type]  # Each array keeps its type in a slice.


def _header_key(reader: ByteReader) -> str:
    return bytes(reader.take(reader.varint())).decode(errors="replace")


def _header_value(reader: ByteReader) -> bytes | None:
    size = reader.varint()
    return None if size < 0 else bytes(reader.take(size))
