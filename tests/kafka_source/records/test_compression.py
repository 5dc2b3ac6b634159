"""Codecs, against the encoders of kafka-python's package and Arrow's own."""

import gzip
from struct import pack

import pyarrow as pa
import pytest

from rackspan.errors import CorruptRecords
from rackspan.kafka_source.records.columns import decompressed

DATA = b"rack " * 1000
SNAPPY_BLOCK = bytes(pa.compress(DATA, "snappy", asbytes=True))
JAVA = b"\x82SNAPPY\x00" + pack(">ii", 1, 1)


def framed(*blocks: bytes) -> bytes:
    """As Java's snappy writes it: a header, then each block behind its size."""
    return JAVA + b"".join(pack(">i", len(block)) + block for block in blocks)


@pytest.mark.parametrize(
    ("codec", "payload", "expected"),
    [
        (1, gzip.compress(DATA, mtime=0), DATA),
        (2, SNAPPY_BLOCK, DATA),
        (2, framed(SNAPPY_BLOCK, SNAPPY_BLOCK), DATA * 2),
        (2, framed(), b""),
    ],
)
def test_each_codec_gives_back_what_was_compressed(codec: int, payload: bytes, expected: bytes) -> None:
    assert decompressed(memoryview(payload), codec) == expected


@pytest.mark.parametrize("name", ["lz4", "zstd"])
def test_frames_of_arrows_streams_are_read(name: str) -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, name) as stream:
        stream.write(DATA)
    assert decompressed(memoryview(sink.getvalue().to_pybytes()), {"lz4": 3, "zstd": 4}[name]) == DATA


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (framed(SNAPPY_BLOCK)[:-1], "of which .* are present"),
        (JAVA + b"\x00\x00", "last snappy block is cut off"),
        (JAVA + pack(">i", -1), "a snappy block of -1 bytes"),
    ],
)
def test_a_cut_frame_is_corrupt(payload: bytes, message: str) -> None:
    with pytest.raises(CorruptRecords, match=message):
        decompressed(memoryview(payload), 2)


def test_a_codec_that_kafka_does_not_have_is_refused() -> None:
    with pytest.raises(CorruptRecords, match="compression type 5"):
        decompressed(memoryview(b""), 5)
