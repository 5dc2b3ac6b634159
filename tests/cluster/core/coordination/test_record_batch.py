"""Batches of coordinators, read by a Kafka client's own reader."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.coordination import CoordinatorRecord, decode_batch, encode_batch, marker_batch
from rackspan.errors import InvalidRecord
from rackspan.kafka_bytes.record_batch import read_header, verify_crc, write_batch

RECORDS = st.lists(
    st.builds(CoordinatorRecord, st.binary(max_size=40), st.none() | st.binary(max_size=200)), min_size=1
)


@given(RECORDS, st.integers(0, 2**40))
def test_a_client_reads_what_was_written(records: list[CoordinatorRecord], timestamp_ms: int) -> None:
    batch = encode_batch(records, timestamp_ms)
    read = list(MemoryRecords(bytes(batch.data)).next_batch())
    assert [(one.key, one.value) for one in read] == [(record.key, record.value) for record in records]
    assert {one.timestamp for one in read} == {timestamp_ms}


@given(RECORDS, st.integers(0, 1000))
def test_a_coordinator_reads_it_at_the_leaders_offsets(records: list[CoordinatorRecord], base_offset: int) -> None:
    batch = encode_batch(records, 7).stamped(base_offset, 3)
    assert list(decode_batch(batch)) == list(enumerate(records, base_offset))


@given(st.sampled_from(Marker), st.integers(0, 2**31))
def test_a_marker_has_the_fields_of_its_header(marker: Marker, producer_id: int) -> None:
    batch = marker_batch(producer_id, 4, marker, 9, 7)
    header = read_header(batch.data)
    verify_crc(batch.data, header)
    assert (header.control, header.transactional, header.producer_id, header.producer_epoch) == (
        True,
        True,
        producer_id,
        4,
    )
    assert header.base_sequence == batch.base_sequence == -1
    (_, record) = next(decode_batch(batch))
    # ControlRecordType: 0 is an abort, 1 a commit.
    assert record.key == b"\0\0\0" + (b"\1" if marker is Marker.COMMIT else b"\0")
    assert record.value == b"\x00\x00" + bytes([0, 0, 0, 9])


def test_a_coordinators_batch_is_of_no_producer_unless_it_is_in_a_transaction() -> None:
    records = [CoordinatorRecord(b"a", b"x"), CoordinatorRecord(b"b", None)]
    plain = encode_batch(records, 70)
    assert plain == RecordBatch(0, 1, -1, plain.data, -1, -1, -1, 70, transactional=False, control=False, marker=None)
    header = read_header(plain.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    offsets = encode_batch(records, 70, 7, 2)
    assert offsets == RecordBatch(0, 1, -1, offsets.data, 7, 2, -1, 70, transactional=True)
    header = read_header(offsets.data)
    assert (header.producer_id, header.producer_epoch, header.transactional) == (7, 2, True)
    marker = marker_batch(7, 2, Marker.ABORT, 5, 70)
    assert marker == RecordBatch(0, 0, -1, marker.data, 7, 2, -1, 70, True, control=True, marker=Marker.ABORT)
    assert marker_batch(7, 2, Marker.ABORT, 5, 70, epoch_bumped=True).epoch_bumped


def test_a_cut_batch_is_refused_by_its_offset() -> None:
    whole = encode_batch([CoordinatorRecord(b"a", b"x")], 70).stamped(41, 0)
    with pytest.raises(InvalidRecord, match="offset 41"):
        list(decode_batch(replace(whole, data=bytes(whole.data)[:-1])))


def test_a_record_without_a_key_is_read_with_an_empty_one() -> None:
    batch = replace(encode_batch([CoordinatorRecord(b"a", b"x")], 7), data=write_batch([(None, b"x")], 7, -1, -1))
    assert list(decode_batch(batch)) == [(0, CoordinatorRecord(b"", b"x"))]
