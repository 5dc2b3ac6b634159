"""Kafka's primitive types as bytes: a reader of one value after another, and a function for each type that writes a value.

Malformed bytes raise MalformedBytes, and nothing else. The bytes that a function returns are joined by its caller.

Source: "Protocol Primitive Types" of Kafka's protocol guide; compact types and tagged fields from KIP-482. Integers are
big endian. A *compact* string, byte string or array has its length plus one as an unsigned varint, 0 for null.

Every length is compared with the bytes that are left before anything is allocated, so that reading takes memory in
proportion to the bytes.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar
from uuid import UUID

from rackspan.errors import MalformedBytes

MAX_ELEMENTS: Final = 2_000_000
"""Elements of all arrays of one message together: a byte of a message can cost a hundred bytes of ours."""

_NULL: Final = -1
_VARINT_BITS: Final = 32
_VARLONG_BITS: Final = 64

T = TypeVar("T")


@contextmanager
def malformed_as(error: Callable[[str], Exception]) -> Iterator[None]:
    """Raises the caller's own error in place of MalformedBytes: `error` gets its message. Also a decorator."""
    try:
        yield
    except MalformedBytes as cause:
        raise error(str(cause)) from cause


def _fixed(layout: str, _kind: type[T]) -> Callable[["ByteReader"], T]:
    packed = struct.Struct(layout)
    unpack, size = packed.unpack_from, packed.size

    def read_fixed(reader: "ByteReader") -> T:
        value: T
        try:
            (value,) = unpack(reader.data, reader.at)
        except struct.error:
            raise reader.truncated(size) from None
        reader.at += size
        return value

    return read_fixed


class ByteReader:
    """Bytes and the position up to which they have been read."""

    __slots__ = ("at", "data", "elements_left")

    def __init__(self, data: bytes | bytearray | memoryview, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.elements_left = MAX_ELEMENTS

    @property
    def remaining(self) -> int:
        return len(self.data) - self.at

    def malformed(self, why: str) -> MalformedBytes:
        """The error to raise for what was read last."""
        return MalformedBytes(f"byte {self.at}: {why}")

    def truncated(self, size: int) -> MalformedBytes:
        return self.malformed(f"{size} bytes are announced where {self.remaining} are left")

    def end(self) -> None:
        """Errors: MalformedBytes where bytes are left over."""
        if self.at < len(self.data):
            raise self.malformed(f"{self.remaining} bytes are left over")

    def skip(self, size: int) -> None:
        if size < 0 or self.at + size > len(self.data):
            raise self.truncated(size)
        self.at += size

    def take(self, size: int) -> bytes:
        at = self.at
        self.skip(size)
        return bytes(self.data[at : self.at])

    def view(self, size: int) -> memoryview:
        """The next bytes, not copied."""
        at = self.at
        self.skip(size)
        return memoryview(self.data)[at : self.at]

    boolean = _fixed(">?", bool)
    int8 = _fixed(">b", int)
    int16 = _fixed(">h", int)
    int32 = _fixed(">i", int)
    int64 = _fixed(">q", int)
    uint16 = _fixed(">H", int)
    float64 = _fixed(">d", float)

    def uuid(self) -> UUID | None:
        """Kafka's zero UUID is None."""
        data = self.take(16)
        return UUID(bytes=data) if any(data) else None

    def unsigned_varint(self, bits: int = _VARINT_BITS) -> int:
        """Seven bits a byte, least significant first; the top bit is set where more follow."""
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift >= bits:
                raise self.malformed("a varint that does not end")
            byte = self.data[self.at]
            self.at += 1
            if byte < 0x80:
                value |= byte << shift
                if value >> bits:
                    # Java drops the bits beyond: the two readers would go on at different bytes.
                    raise self.malformed(f"a varint of more than {bits} bits")
                return value
            value |= (byte & 0x7F) << shift
            shift += 7

    def varint(self) -> int:
        """A signed int32, zigzag: 0, 1, 2, 3 are 0, -1, 1, -2."""
        value = self.unsigned_varint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        """A signed int64, zigzag."""
        value = self.unsigned_varint(_VARLONG_BITS)
        return (value >> 1) ^ -(value & 1)

    def compact_length(self) -> int:
        """The length of a compact string, byte string or array; -1 for null."""
        return self.unsigned_varint() - 1

    def text(self, size: int, encoding: str = "utf-8") -> str:
        data = self.take(size)
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as cause:
            raise self.malformed(f"{data[:20]!r} is not text") from cause

    def string(self) -> str:
        return self.text(self.int16())

    def nullable_string(self) -> str | None:
        size = self.int16()
        return None if size == _NULL else self.text(size)

    def compact_string(self) -> str:
        return self.text(self.compact_length())

    def compact_nullable_string(self) -> str | None:
        size = self.compact_length()
        return None if size == _NULL else self.text(size)

    def byte_string(self) -> bytes:
        return self.take(self.int32())

    def nullable_byte_string(self) -> bytes | None:
        size = self.int32()
        return None if size == _NULL else self.take(size)

    def compact_byte_string(self) -> bytes:
        return self.take(self.compact_length())

    def elements(self, count: int, least_bytes: int = 1) -> int:
        """Check the length of an array, each element of which takes so many bytes at least."""
        if not 0 <= count * least_bytes <= len(self.data) - self.at or count > self.elements_left:
            raise self.malformed(f"{count} elements are announced where {self.remaining} bytes are left")
        self.elements_left -= count
        return count

    def array(self, item: Callable[[], T], least_bytes: int = 1) -> list[T]:
        return [item() for _ in range(self.elements(self.int32(), least_bytes))]

    def nullable_array(self, item: Callable[[], T]) -> list[T] | None:
        count = self.int32()
        return None if count == _NULL else [item() for _ in range(self.elements(count))]

    def compact_array(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(self.elements(self.compact_length()))]

    def compact_nullable_array(self, item: Callable[[], T]) -> list[T] | None:
        count = self.compact_length()
        return None if count == _NULL else [item() for _ in range(self.elements(count))]

    def tagged_fields(self) -> dict[int, bytes]:
        return {
            self.unsigned_varint(): self.take(self.unsigned_varint())
            for _ in range(self.elements(self.unsigned_varint()))
        }


# Writers: each returns the bytes of one value.

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
