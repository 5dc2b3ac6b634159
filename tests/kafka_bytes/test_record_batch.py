"""Batch headers, against the batch builders of kafka-python and aiokafka and against crc32c's own vectors."""

import gzip

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from rackspan.errors import CorruptRecords, MalformedBytes
from rackspan.kafka_bytes.record_batch import (
    HEADER_BYTES,
    KeyValue,
    end_marker,
    read_header,
    read_records,
    read_stored_header,
    stamp,
    stamp_append_time,
    stored_records,
    verify_crc,
    whole_batches,
    with_records,
    write_batch,
)

PRODUCER = {"producer_id": 2**40, "producer_epoch": 7, "base_sequence": 11}


def built(values: list[bytes], *, compression: int = 0, transactional: bool = False) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=compression, is_transactional=transactional, batch_size=1 << 20, **PRODUCER
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=1000 + offset, key=None, value=value, headers=[])
    return bytes(builder.build())


def aio_built(values: list[bytes]) -> bytes:
    builder = AioBuilder(
        magic=2, compression_type=0, is_transactional=0, batch_size=1 << 20,
        producer_id=-1, producer_epoch=-1, base_sequence=-1,
    )  # fmt: skip
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=5, key=b"k", value=value, headers=[])
    return bytes(builder.build())


values = st.lists(st.binary(max_size=50), min_size=1, max_size=20)


@given(values, st.sampled_from([0, 1]), st.booleans())
def test_what_kafka_python_builds_is_read(wanted: list[bytes], compression: int, transactional: bool) -> None:
    wanted = [*wanted, bytes(2000)]  # where gzip gains nothing, kafka-python leaves it
    data = built(wanted, compression=compression, transactional=transactional)
    header = read_header(data)
    verify_crc(data, header)
    assert header.size_bytes == len(data)
    assert header.record_count == len(wanted)
    assert header.last_offset_delta == len(wanted) - 1
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1000 + len(wanted) - 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == tuple(PRODUCER.values())
    assert (header.compression, header.transactional, header.control) == (compression, transactional, False)


@given(values)
def test_what_aiokafka_builds_is_read(wanted: list[bytes]) -> None:
    data = aio_built(wanted)
    header = read_header(data)
    verify_crc(data, header)
    assert (header.size_bytes - len(data), header.record_count, header.producer_id, header.log_append_time) == (
        0,
        len(wanted),
        -1,
        False,
    )


@given(values, st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_a_stamped_batch_is_still_whole_to_kafka_python(wanted: list[bytes], offset: int, epoch: int) -> None:
    data = bytearray(built(wanted))
    stamp(data, offset, epoch)
    theirs = DefaultRecordBatch(bytes(data))
    assert theirs.validate_crc()
    assert [record.offset for record in theirs] == list(range(offset, offset + len(wanted)))
    assert read_header(data).leader_epoch == epoch


@given(values, st.data())
def test_any_flipped_bit_behind_the_crc_is_noticed(wanted: list[bytes], data: st.DataObject) -> None:
    batch = bytearray(built(wanted))
    at = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))
    batch[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptRecords, match="CRC-32C"):
        verify_crc(batch, read_header(batch))


@given(values, st.data())
def test_a_batch_that_is_cut_off_is_noticed(wanted: list[bytes], data: st.DataObject) -> None:
    batch = built(wanted)
    with pytest.raises(CorruptRecords):
        read_header(batch[: data.draw(st.integers(1, len(batch) - 1))])


@pytest.mark.parametrize(
    ("at", "byte", "message"), [(16, 1, "version 1"), (23, 0x7F, "offset delta"), (8, 0xFF, "bytes")]
)
def test_a_header_that_contradicts_itself_is_refused(at: int, byte: int, message: str) -> None:
    batch = bytearray(built([b"one"]))
    batch[at] = byte
    with pytest.raises(CorruptRecords, match=message):
        read_header(batch)


@given(st.lists(values, max_size=4), st.data())
def test_the_whole_batches_of_bytes_cut_anywhere_are_those_of_kafka_python(
    batches: list[list[bytes]], data: st.DataObject
) -> None:
    log = b"".join(built(one) for one in batches)
    cut = log[: data.draw(st.integers(0, len(log)))]
    theirs, reader = [], MemoryRecords(cut)
    while (batch := reader.next_batch()) is not None:
        theirs.append([bytes(record.value) for record in batch])
    read = list(whole_batches(cut))
    ours = [cut[at : at + header.size_bytes] for header, at in read]
    assert [[bytes(value or b"") for _, (_, value) in read_records(batch)] for batch in ours] == theirs
    assert b"".join(ours) == cut[: sum(len(batch) for batch in ours)]


def test_a_batch_whose_records_were_compacted_away_is_whole_and_one_that_contradicts_itself_is_refused() -> None:
    first, second = built([b"a", b"b", b"c"]), built([b"d"])
    some = with_records(first, list(stored_records(memoryview(first)[HEADER_BYTES:]))[1:2])
    read = [(header.record_count, header.last_offset_delta, at) for header, at in whole_batches(some + second)]
    assert read == [(1, 2, 0), (1, 0, len(some))]
    with pytest.raises(CorruptRecords, match="by its length field"):
        list(whole_batches(second + first[:8] + bytes(4) + first[12:]))


KEYS_AND_VALUES = st.lists(
    st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=200)), min_size=1, max_size=8
)


def _theirs(data: bytes) -> DefaultRecordBatch:
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    return batch


@given(KEYS_AND_VALUES, st.integers(0, 2**50))
def test_what_is_written_is_read_by_kafka_python_and_here(records: list[KeyValue], timestamp: int) -> None:
    data = write_batch(records, timestamp)
    theirs = _theirs(data)
    assert [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in theirs] == [
        (offset, timestamp, key, value, []) for offset, (key, value) in enumerate(records)
    ]
    assert (theirs.attributes, theirs.max_timestamp) == (0, timestamp)
    assert list(read_records(data)) == list(enumerate(records))


def test_a_batch_of_no_producer_has_minus_one_in_every_field_of_one_and_belongs_to_no_transaction() -> None:
    header = read_header(write_batch([(b"k", b"v")], 5))
    assert (header.base_offset, header.leader_epoch, header.attributes) == (0, -1, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (5, 5, 1)


@pytest.mark.parametrize("producer_id", [0, 1, 2**40])
def test_a_batch_of_a_producer_belongs_to_its_transaction(producer_id: int) -> None:
    header = read_header(write_batch([(b"k", b"v")], 5, producer_id, 3))
    assert (header.transactional, header.control, header.compression, header.log_append_time) == (True, *[False] * 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (producer_id, 3, -1)


def test_a_control_batch_has_kafkas_end_marker() -> None:
    """EndTransactionMarker: key is version and type, value is version and coordinator epoch, big-endian."""
    data = write_batch([end_marker(1, 258)], 5, 7, 0, control=True)
    assert (read_header(data).attributes, read_header(data).control) == (0x30, True)
    assert list(read_records(data)) == [(0, (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x01\x02"))]
    assert _theirs(data).is_control_batch
    assert end_marker(0, 0)[0] == b"\x00\x00\x00\x00"


@pytest.mark.parametrize("attributes", [0, 0x10])
def test_the_time_of_the_append_stands_for_all_records_alike(attributes: int) -> None:
    data = bytearray(write_batch([(None, b"a"), (None, b"b")], 5, *((9, 1) if attributes else ())))
    stamp_append_time(data, 77)
    assert [(one.timestamp, one.timestamp_type) for one in _theirs(bytes(data))] == [(77, 1), (77, 1)]
    header = read_header(data)
    verify_crc(data, header)
    assert (header.attributes, header.base_timestamp, header.max_timestamp) == (0x08 | attributes, 5, 77)
    assert header.log_append_time


def test_a_compressed_batch_is_refused_instead_of_read_as_records() -> None:
    data = built([bytes(2000)], compression=1)
    with pytest.raises(MalformedBytes, match="compressed"):
        list(read_records(data))


def test_a_header_that_announces_no_record_is_refused() -> None:
    batch = bytearray(built([b"one"]))
    batch[23:27], batch[57:61] = (-1).to_bytes(4, "big", signed=True), bytes(4)
    with pytest.raises(CorruptRecords, match="of 0 records"):
        read_header(batch)


def test_a_batch_is_read_where_it_begins() -> None:
    first, second = built([b"one"]), built([b"two", b"three"])
    header = read_header(first + second, len(first))
    assert (header.size_bytes, header.record_count) == (len(second), 2)
    verify_crc(first + second, header, len(first))
    with pytest.raises(CorruptRecords, match=f"of which {len(second) - 1} are present"):
        read_header((first + second)[:-1], len(first))


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=50)), min_size=1), st.data()
)
def test_some_records_of_a_batch_are_what_kafka_python_reads_of_them(
    pairs: list[KeyValue], data: st.DataObject
) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=True, batch_size=1 << 20, **PRODUCER
    )
    for offset, (key, value) in enumerate(pairs):
        builder.append(offset, timestamp=1000 - 3 * offset, key=key, value=value, headers=[("h", b"1")])
    whole = bytearray(builder.build())
    stamp(whole, 70, 5)
    stored = list(stored_records(memoryview(whole)[HEADER_BYTES:]))
    assert [(one.key, one.tombstone) for one in stored] == [(key, value is None) for key, value in pairs]
    kept = data.draw(st.sets(st.integers(0, len(pairs) - 1)))
    some = with_records(whole, [stored[index] for index in sorted(kept)])
    header, before = read_stored_header(some), read_stored_header(whole)
    verify_crc(some, header)
    read = [(one.offset, one.timestamp, one.key, one.value) for one in DefaultRecordBatch(some)] if kept else []
    assert read == [(70 + index, 1000 - 3 * index, *pairs[index]) for index in sorted(kept)]
    assert header.max_timestamp == (1000 - 3 * min(kept) if kept else before.max_timestamp)
    for field in ("base_offset", "leader_epoch", "attributes", "last_offset_delta", "base_timestamp"):
        assert getattr(header, field) == getattr(before, field)
    for field in ("producer_id", "producer_epoch", "base_sequence"):
        assert getattr(header, field) == getattr(before, field)


def test_records_with_the_time_of_their_append_keep_it_and_a_compressed_batch_is_one_no_longer() -> None:
    whole = bytearray(built([b"a" * 500, b"b" * 500], compression=1))
    stamp_append_time(whole, 9_000)
    records = list(stored_records(gzip.decompress(whole[HEADER_BYTES:])))
    header = read_stored_header(with_records(whole, records[:1]))
    assert (header.max_timestamp, header.log_append_time, header.compression) == (9_000, True, 0)


@pytest.mark.parametrize(
    ("count", "of_a_producer", "of_a_log"), [(-1, 0, 0), (0, 0, 1), (1, 0, 1), (2, 1, 1), (3, 0, 0)]
)
def test_a_batch_has_as_many_records_as_offsets_or_in_a_log_fewer(
    count: int, of_a_producer: int, of_a_log: int
) -> None:
    """Of two records. Compaction removes some, at worst all."""
    batch = bytearray(built([b"a", b"b"]))
    batch[HEADER_BYTES - 4 : HEADER_BYTES] = count.to_bytes(4, "big", signed=True)
    for read, allowed in ((read_header, of_a_producer), (read_stored_header, of_a_log)):
        if allowed:
            assert read(batch).record_count == count
        else:
            with pytest.raises(
                CorruptRecords, match=rf"^a record batch of {count} records whose last has offset delta 1$"
            ):
                read(batch)
