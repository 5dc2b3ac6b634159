"""Kafka's primitive types as bytes, for the records that coordinators keep in their own topics.

Source: "Protocol Primitive Types" of Kafka's protocol guide; flexible versions and tagged fields from KIP-482. Integers
are big endian. A *compact* string, byte string or array has its length plus one as an unsigned varint, 0 meaning null.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from rackspan.errors import InvalidRecord

_INT8: Final = struct.Struct(">b")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")

T = TypeVar("T")

int8: Final = _INT8.pack
int16: Final = _INT16.pack
int32: Final = _INT32.pack
int64: Final = _INT64.pack

NO_TAGS: Final = b"\x00"


def uvarint(value: int) -> bytes:
    """Seven bits a byte, least first, the top bit saying that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """A signed number of at most 64 bits, zigzag: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return uvarint((value << 1) ^ (value >> 63))


def string(value: str) -> bytes:
    data = value.encode()
    return int16(len(data)) + data


def nullable_string(value: str | None) -> bytes:
    return int16(-1) if value is None else string(value)


def byte_string(value: bytes) -> bytes:
    return int32(len(value)) + value


def array(items: Iterable[bytes]) -> bytes:
    encoded = list(items)
    return int32(len(encoded)) + b"".join(encoded)


def compact_string(value: str) -> bytes:
    data = value.encode()
    return uvarint(len(data) + 1) + data


def compact_array(items: Iterable[bytes]) -> bytes:
    encoded = list(items)
    return uvarint(len(encoded) + 1) + b"".join(encoded)


def tagged_fields(fields: Mapping[int, bytes]) -> bytes:
    """The end of a flexible structure: fields that a reader may skip, in the order of their tags."""
    return uvarint(len(fields)) + b"".join(
        uvarint(tag) + uvarint(len(value)) + value for tag, value in sorted(fields.items())
    )


class Reader:
    """Reads primitive types from bytes, one after another.

    Raises InvalidRecord where the bytes end too early or a length makes no sense.
    """

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._at

    def raw(self, length: int) -> bytes:
        if not 0 <= length <= self.remaining:
            raise InvalidRecord(f"a field of {length} bytes at byte {self._at} of {len(self._data)}: the record is cut")
        self._at += length
        return self._data[self._at - length : self._at]

    def int8(self) -> int:
        return int(_INT8.unpack(self.raw(1))[0])

    def int16(self) -> int:
        return int(_INT16.unpack(self.raw(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.raw(4))[0])

    def int64(self) -> int:
        return int(_INT64.unpack(self.raw(8))[0])

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise InvalidRecord(f"a varint of more than ten bytes before byte {self._at}: the record is damaged")

    def varint(self) -> int:
        value = self.uvarint()
        return (value >> 1) ^ -(value & 1)

    def string(self) -> str:
        return self._text(self.int16())

    def nullable_string(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._text(length)

    def byte_string(self) -> bytes:
        return self.raw(self.int32())

    def array(self, item: Callable[[], T]) -> list[T]:
        return self._items(self.int32(), item)

    def nullable_array(self, item: Callable[[], T]) -> list[T]:
        """A null array reads as an empty one: none of the coordinators' records tells them apart."""
        length = self.int32()
        return [] if length < 0 else self._items(length, item)

    def compact_string(self) -> str:
        return self._text(self.uvarint() - 1)

    def compact_nullable_string(self) -> str | None:
        length = self.uvarint() - 1
        return None if length < 0 else self._text(length)

    def compact_byte_string(self) -> bytes:
        return self.raw(self.uvarint() - 1)

    def compact_array(self, item: Callable[[], T]) -> list[T]:
        return self._items(self.uvarint() - 1, item)

    def compact_nullable_array(self, item: Callable[[], T]) -> list[T]:
        length = self.uvarint() - 1
        return [] if length < 0 else self._items(length, item)

    def tagged_fields(self) -> dict[int, bytes]:
        return {self.uvarint(): self.raw(self.uvarint()) for _ in range(self.uvarint())}

    def _text(self, length: int) -> str:
        try:
            return self.raw(length).decode()
        except UnicodeDecodeError as failure:
            raise InvalidRecord(f"a string before byte {self._at} is not UTF-8: the record is damaged") from failure

    def _items(self, length: int, item: Callable[[], T]) -> list[T]:
        # Every item of these records takes a byte at least: no length can ask for more memory than the record has.
        if not 0 <= length <= self.remaining:
            raise InvalidRecord(
                f"an array of {length} items at byte {self._at} of {len(self._data)}: the record is cut"
            )
        return [item() for _ in range(length)]
