"""The compressed part of a record batch, by Arrow's codecs: gzip, snappy (Java's framing too), lz4 frames, zstd."""

from struct import Struct
from typing import Final

import pyarrow as pa

from rackspan.errors import CorruptRecords
from rackspan.kafka_bytes.reader import ByteReader

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
