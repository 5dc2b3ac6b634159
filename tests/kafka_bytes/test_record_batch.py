"""Batch headers, against the batch builders of kafka-python and aiokafka and against crc32c's own vectors."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from rackspan.errors import CorruptRecords
from rackspan.kafka_bytes.record_batch import HEADER_BYTES, read_header, stamp, verify_crc

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
