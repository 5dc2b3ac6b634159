"""Decoded columns, against the builder and the reader of kafka-python."""

import zlib
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from rackspan.errors import CorruptRecords, RackspanError
from rackspan.kafka_bytes.record_batch import end_marker, stamp, stamp_append_time, write_batch
from rackspan.kafka_source.records.columns import Fetched, FetchedAbort, RecordColumns, _Varints, decode

ALL = 1 << 60
COMMIT, ABORT = 1, 0


@dataclass(frozen=True)
class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


sizes = st.one_of(st.none(), st.binary(max_size=80), st.integers(100, 20_000).map(lambda n: bytes(n)))
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[int, list[Record]]]:
    """Compression and records of some batches, with gaps within and between them."""
    offset, found = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 4))):
        offset += draw(st.integers(0, 3))
        records = []
        for _ in range(draw(st.integers(1, 70))):
            timestamp = draw(st.integers(0, 2**45))
            records.append(Record(offset, timestamp, draw(sizes), draw(sizes), draw(headers)))
            offset += draw(st.integers(1, 3))
        found.append((draw(st.sampled_from([0, 0, 1])), records))
    return found


def built(records: list[Record], compression: int = 0, producer: int = -1, *, transactional: bool = False) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=compression, is_transactional=transactional,
        producer_id=producer, producer_epoch=0, base_sequence=0, batch_size=1 << 30,
    )  # fmt: skip
    base = records[0].offset
    for record in records:
        builder.append(record.offset - base, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytearray(builder.build())
    stamp(batch, base, 0)
    return bytes(batch)


def read_by_kafka_python(data: bytes) -> list[Record]:
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
        for row in DefaultRecordBatch(data[at : at + size]):
            found.append(Record(row.offset, row.timestamp, row.key, row.value, tuple(row.headers)))
        at += size
    return found


def rows(columns: RecordColumns) -> list[Record]:
    def part(starts: "np.ndarray[tuple[int], np.dtype[np.int64]]", lengths: object, row: int) -> bytes | None:
        length = int(lengths[row])  # type: ignore[index]
        return None if length < 0 else columns.data[starts[row] : starts[row] + length]

    return [
        Record(
            int(columns.offsets[row]),
            int(columns.timestamps[row]),
            part(columns.key_starts, columns.key_lengths, row),
            part(columns.value_starts, columns.value_lengths, row),
            tuple(columns.headers(row)),
        )
        for row in range(len(columns))
    ]


def offsets(fetched: Fetched) -> list[int]:
    return [int(offset) for offset in fetched.records.offsets]


@pytest.mark.slow
@given(batches(), st.data())
def test_columns_equal_the_records_that_kafka_python_reads(
    drawn: list[tuple[int, list[Record]]], data: st.DataObject
) -> None:
    stored = b"".join(built(records, compression) for compression, records in drawn)
    expected = read_by_kafka_python(stored)
    assert expected == [record for _, records in drawn for record in records]
    start = data.draw(st.integers(expected[0].offset, expected[-1].offset + 1), "start")
    end = data.draw(st.integers(start, expected[-1].offset + 3), "end")
    cut = stored + stored[: data.draw(st.integers(0, 60), "bytes of a batch that is cut off")]
    fetched = decode(cut, start, end)
    assert rows(fetched.records) == [record for record in expected if start <= record.offset < end]


@pytest.mark.slow
@given(batches())
def test_the_next_offset_is_behind_the_last_whole_batch_or_at_the_next_one(
    drawn: list[tuple[int, list[Record]]],
) -> None:
    stored = b"".join(built(records, compression) for compression, records in drawn)
    first, last = drawn[0][1], drawn[-1][1]
    assert decode(stored, first[0].offset, ALL).next_offset == last[-1].offset + 1
    gap_end = last[0].offset
    assert decode(stored, first[0].offset, gap_end).next_offset == (gap_end if len(drawn) > 1 else first[0].offset)


def test_an_end_inside_a_gap_is_reached_without_a_record() -> None:
    stored = built([Record(0, 1, b"k", b"v")]) + built([Record(9, 1, b"k", b"v")])
    fetched = decode(stored, 1, 5)
    assert (offsets(fetched), fetched.next_offset) == ([], 9)


def test_a_batch_without_records_moves_the_position() -> None:
    batch = bytearray(built([Record(5, 1, b"k", b"v"), Record(9, 1, b"k", b"v")]))
    empty = batch[:61]
    empty[8:12] = (61 - 12).to_bytes(4, "big")
    empty[57:61] = (0).to_bytes(4, "big")
    fetched = decode(bytes(empty), 5, ALL, check_crcs=False)
    assert (offsets(fetched), fetched.next_offset) == ([], 10)


def test_appended_times_hold_for_all_records() -> None:
    batch = bytearray(built([Record(0, 1, b"k", b"v"), Record(1, 2, None, None)]))
    stamp_append_time(batch, 77)
    columns = decode(bytes(batch), 0, ALL).records
    assert columns.timestamps.tolist() == [77, 77]
    assert columns.log_append_time.tolist() == [True, True]


def marker(offset: int, producer: int, kind: int) -> bytes:
    batch = bytearray(write_batch([end_marker(kind, 0)], 1, producer, 0, control=True))
    stamp(batch, offset, 0)
    return bytes(batch)


def sent(offset: int, producer: int) -> bytes:
    return built([Record(offset, 1, None, b"v")], producer=producer, transactional=True)


def test_markers_are_no_records_and_aborted_transactions_are_left_out_up_to_their_marker() -> None:
    stored = (
        sent(0, 7) + sent(1, 8) + marker(2, 7, ABORT) + sent(3, 7) + marker(4, 8, COMMIT) + marker(5, 7, COMMIT)
        + built([Record(6, 1, None, b"v")])
    )  # fmt: skip
    uncommitted = decode(stored, 0, ALL)
    assert (offsets(uncommitted), uncommitted.next_offset) == ([0, 1, 3, 6], 7)
    committed = decode(stored, 0, ALL, [FetchedAbort(7, 0)])
    assert (offsets(committed), committed.next_offset) == ([1, 3, 6], 7)


def test_a_range_that_starts_within_an_aborted_transaction_leaves_out_its_rest() -> None:
    stored = sent(4, 7) + marker(5, 7, ABORT) + sent(6, 7)
    assert offsets(decode(stored, 4, ALL, [FetchedAbort(7, 0)])) == [6]


@pytest.mark.parametrize("codec", range(1, 8))
def test_bytes_that_are_not_of_the_codec_are_corrupt(codec: int) -> None:
    batch = bytearray(built([Record(0, 1, b"k", b"v" * 50)]))
    batch[22] = codec
    with pytest.raises(RackspanError, match="record batch"):
        decode(bytes(batch), 0, ALL, check_crcs=False)


@pytest.mark.parametrize("size", [b"\x03", b"\x18", b"\xfe" + 8 * b"\xff" + b"\x01"], ids=["-2", "12", "2**63 - 1"])
def test_a_key_or_value_of_a_size_that_cannot_be_is_corrupt(size: bytes) -> None:
    with pytest.raises(CorruptRecords, match="a key or value of a size that cannot be"):
        _Varints(size + b"v", np.zeros(1, np.int64)).sized()


def test_a_number_of_several_bytes_is_read_whole() -> None:
    fields = _Varints(b"\x06\xac\x02", np.array([0, 1], np.int64))
    assert ([*fields.signed()], [*fields.at]) == ([3, 150], [1, 3])


def test_a_number_has_ten_bytes_at_most() -> None:
    ten = 9 * b"\xff" + b"\x01"
    assert [*_Varints(ten, np.zeros(1, np.int64)).signed()] == [-(2**63)]
    with pytest.raises(CorruptRecords, match="a varint of more than ten bytes"):
        _Varints(10 * b"\x80" + b"\x01", np.zeros(1, np.int64)).signed()


def test_a_changed_byte_is_corrupt() -> None:
    batch = bytearray(built([Record(0, 1, b"k", b"v" * 50)]))
    batch[-1] ^= 1
    with pytest.raises(RackspanError, match="CRC"):
        decode(bytes(batch), 0, ALL)


@pytest.mark.slow
@given(batches(), st.data())
def test_mutated_bytes_are_records_or_an_error_and_nothing_else(
    drawn: list[tuple[int, list[Record]]], data: st.DataObject
) -> None:
    stored = bytearray(built(drawn[0][1][:5], drawn[0][0]))
    for _ in range(data.draw(st.integers(1, 4))):
        stored[data.draw(st.integers(0, min(len(stored), 200) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(bytes(stored), drawn[0][1][0].offset, ALL, check_crcs=False)
        rows(found.records)
    except (RackspanError, zlib.error):
        return
    assert len(found.records) <= 5
