"""Writes Kafka's primitive types: each function returns the bytes of one value, to be joined by the caller.

Formats and their source: reader.py.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final

int8: Final = struct.Struct(">b").pack
int16: Final = struct.Struct(">h").pack
int32: Final = struct.Struct(">i").pack
int64: Final = struct.Struct(">q").pack

NULL_STRING: Final = int16(-1)
COMPACT_NULL: Final = b"\x00"
NO_TAGS: Final = b"\x00"

_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, least significant first; the top bit is set where more follow."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """VARINT and VARLONG: a signed number of at most 64 bits, zigzag. 0, -1, 1, -2 become 0, 1, 2, 3."""
    return unsigned_varint((value << 1) ^ (value >> 63))


def string(value: str) -> bytes:
    data = value.encode()
    return int16(len(data)) + data


def nullable_string(value: str | None) -> bytes:
    return NULL_STRING if value is None else string(value)


def byte_string(value: bytes) -> bytes:
    return int32(len(value)) + value


def array(items: Iterable[bytes]) -> bytes:
    encoded = list(items)
    return int32(len(encoded)) + b"".join(encoded)


def compact_string(value: str) -> bytes:
    data = value.encode()
    return unsigned_varint(len(data) + 1) + data


def compact_array(items: Iterable[bytes]) -> bytes:
    encoded = list(items)
    return unsigned_varint(len(encoded) + 1) + b"".join(encoded)


def tagged_fields(fields: Mapping[int, bytes]) -> bytes:
    """The end of a flexible structure: fields that a reader may skip, in the order of their tags."""
    return unsigned_varint(len(fields)) + b"".join(
        unsigned_varint(tag) + unsigned_varint(len(value)) + value for tag, value in sorted(fields.items())
    )
