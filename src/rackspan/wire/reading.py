"""Reads the values of messages/ from bytes: structs, tuples, ints, strings, UUIDs; records as views, not copied.

Whatever the bytes are, reading ends, takes memory in proportion to their size, and raises nothing but MalformedRequest.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from rackspan.errors import MalformedRequest
from rackspan.wire.compiled import FIXED, function, is_fixed, packed, runs
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.schema import FieldShape, StructShape

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
    """A reader of `shape.values`, compiled once. A field that this version lacks has its class's default."""
    lines = ["values = new(make)"]
    names: dict[str, Any] = {"new": object.__new__, "make": shape.values}
    for number, run in enumerate(runs(shape.fields)):
        if is_fixed(run[0]):
            layout = packed(run)
            names[f"unpack_{number}"] = layout.unpack_from
            targets = "".join(f"values.{field.name}, " for field in run)
            lines += [f"{targets}= unpack_{number}(cursor.data, cursor.at)", f"cursor.at += {layout.size}"]
        else:
            names[f"read_{number}"] = _field_reader(run[0], shape.flexible)
            lines.append(f"values.{run[0].name} = read_{number}(cursor)")
    defaults = shape.values()
    for name in set(shape.values.__slots__) - {field.name for field in shape.fields}:
        names[f"default_{name}"] = getattr(defaults, name)
        lines.append(f"values.{name} = default_{name}")
    if shape.flexible:
        names["tagged"] = {tag: (field.name, _field_reader(field, True, tagged=True)) for tag, field in shape.tagged}
        names["read_tags"] = _read_tags
        lines.append("read_tags(cursor, tagged, values)")
    return function("read(cursor)", [*lines, "return values"], names)


def skip_tags(cursor: Cursor) -> None:
    _read_tags(cursor, {}, None)


def _read_tags(cursor: Cursor, known: Mapping[int, tuple[str, Read]], values: WireStruct | None) -> None:
    """Set the known tagged fields of `values`; skip the others."""
    for _ in range(cursor.elements(cursor.unsigned_varint())):
        tag, size = cursor.unsigned_varint(), cursor.unsigned_varint()
        end = cursor.at + size
        if tag not in known:
            cursor.skip(size)
            continue
        name, read = known[tag]
        setattr(values, name, read(cursor))
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
    packed = struct.Struct(">" + layout)
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


_int8, _int16, _int32 = _fixed("b"), _fixed("h"), _fixed("i")
_TAKERS: Final[Mapping[str, Callable[[Cursor, int], Any]]] = {
    "string": _string,
    "bytes": Cursor.take,
    "records": Cursor.view,
}
_READERS: Final[Mapping[str, Read]] = {kind: _fixed(layout) for kind, layout in FIXED.items()} | {"uuid": _uuid}
