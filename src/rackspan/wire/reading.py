"""From bytes to plain values: dicts of kio's field names, tuples, ints, strings, UUIDs; records as views, not copied.

Whatever the bytes say, reading ends, takes memory in proportion to them, and raises nothing but MalformedRequest.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from rackspan.errors import MalformedRequest
from rackspan.wire.schema import NO_DEFAULT, FieldShape, StructShape

MAX_ELEMENTS: Final = 2_000_000
"""Elements of all arrays of one request together: a byte of a request can cost a hundred bytes of ours."""


class Cursor:
    """Bytes and how far they have been read."""

    __slots__ = ("at", "data", "elements_left")

    def __init__(self, data: bytes | bytearray | memoryview, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.elements_left = MAX_ELEMENTS

    def take(self, size: int) -> bytes:
        at = self.at
        self.skip(size)
        return bytes(self.data[at : self.at])

    def view(self, size: int) -> memoryview:
        at = self.at
        self.skip(size)
        return memoryview(self.data)[at : self.at]

    def skip(self, size: int) -> None:
        if size < 0 or self.at + size > len(self.data):
            raise MalformedRequest(f"{size} bytes wanted at {self.at}, of {len(self.data)} in all")
        self.at += size

    def unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 28:
                raise MalformedRequest(f"a varint at {self.at} that does not end")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def elements(self, count: int) -> int:
        """An array's length, believed as far as bytes are left: each element takes one at least."""
        if not 0 <= count <= min(len(self.data) - self.at, self.elements_left):
            raise MalformedRequest(f"an array of {count} elements at {self.at}, of {len(self.data)} bytes in all")
        self.elements_left -= count
        return count


Read: TypeAlias = Callable[[Cursor], Any]


def read_value(read: Read, cursor: Cursor) -> Any:
    """One value. What follows it is left alone, as Kafka does: librdkafka ends Metadata requests with tags too many.

    Errors: MalformedRequest.
    """
    try:
        return read(cursor)
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedRequest(f"at {cursor.at} of {len(cursor.data)} bytes: {error}") from error


@cache
def struct_reader(shape: StructShape) -> Read:
    """A reader of dicts of this shape, made once."""
    fields = [(field.name, _field_reader(field, shape.flexible)) for field in shape.fields]
    if not shape.flexible:
        return lambda cursor: {name: read(cursor) for name, read in fields}
    tagged = {tag: (field.name, _field_reader(field, True, tagged=True)) for tag, field in shape.tagged}
    defaults = {field.name: None if field.default is NO_DEFAULT else field.default for _, field in shape.tagged}

    def read_flexible(cursor: Cursor) -> dict[str, Any]:
        values = {name: read(cursor) for name, read in fields}
        values.update(defaults)
        _read_tags(cursor, tagged, values)
        return values

    return read_flexible


def skip_tags(cursor: Cursor) -> None:
    _read_tags(cursor, {}, {})


def _read_tags(cursor: Cursor, known: Mapping[int, tuple[str, Read]], values: dict[str, Any]) -> None:
    for _ in range(cursor.elements(cursor.unsigned_varint())):
        tag, size = cursor.unsigned_varint(), cursor.unsigned_varint()
        end = cursor.at + size
        if tag not in known:
            cursor.skip(size)
            continue
        name, read = known[tag]
        values[name] = read(cursor)
        if cursor.at != end:
            raise MalformedRequest(f"tag {tag} said {size} bytes and had {cursor.at - end + size}")


def _field_reader(field: FieldShape, flexible: bool, *, tagged: bool = False) -> Read:
    if isinstance(field.kind, StructShape):
        one = struct_reader(field.kind)
        if field.nullable and not field.array:
            return lambda cursor: None if _int8(cursor) < 0 else one(cursor)
    else:
        nullable = field.nullable and not field.array
        one = _READERS.get(field.kind) or _sized_reader(field.kind, flexible, nullable)
    return _array_reader(one, flexible, field.nullable or tagged) if field.array else one


def _array_reader(one: Read, flexible: bool, nullable: bool) -> Read:
    length = _compact_length if flexible else _int32

    def read_array(cursor: Cursor) -> tuple[Any, ...] | None:
        count = length(cursor)
        if count == -1:
            if nullable:
                return None
            raise MalformedRequest(f"null at {cursor.at}, where an array must be")
        return tuple([one(cursor) for _ in range(cursor.elements(count))])

    return read_array


def _sized_reader(kind: str, flexible: bool, nullable: bool) -> Read:
    """Strings, bytes, records."""
    length = _compact_length if flexible else _int16 if kind == "string" else _int32

    take = _TAKERS[kind]

    def read_sized(cursor: Cursor) -> bytes | str | memoryview | None:
        size = length(cursor)
        return None if size == -1 and nullable else take(cursor, size)

    return read_sized


def _compact_length(cursor: Cursor) -> int:
    return cursor.unsigned_varint() - 1


def _fixed(layout: str) -> Read:
    packed = struct.Struct(layout)
    unpack, size = packed.unpack_from, packed.size

    def read_fixed(cursor: Cursor) -> Any:
        (value,) = unpack(cursor.data, cursor.at)
        cursor.at += size
        return value

    return read_fixed


def _string(cursor: Cursor, size: int) -> str:
    return cursor.take(size).decode()


def _uuid(cursor: Cursor) -> UUID | None:
    taken = cursor.take(16)
    return UUID(bytes=taken) if any(taken) else None


_int8, _int16, _int32, _int64 = _fixed(">b"), _fixed(">h"), _fixed(">i"), _fixed(">q")
_TAKERS: Final[Mapping[str, Callable[[Cursor, int], Any]]] = {
    "string": _string,
    "bytes": Cursor.take,
    "records": Cursor.view,
}
_READERS: Final[Mapping[str, Read]] = {
    "bool": _fixed(">?"),
    "int8": _int8,
    "int16": _int16,
    "uint16": _fixed(">H"),
    "int32": _int32,
    "int64": _int64,
    "float64": _fixed(">d"),
    "error_code": _int16,
    "timedelta_i32": _int32,
    "timedelta_i64": _int64,
    "datetime_i64": _int64,
    "uuid": _uuid,
}
