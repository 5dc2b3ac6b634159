"""Reads the values of messages/ from bytes: structs, tuples, ints, strings, UUIDs; records as views, not copied.

Whatever the bytes are, reading ends, takes memory in proportion to their size, and raises nothing but MalformedRequest.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from rackspan.errors import MalformedBytes, MalformedRequest
from rackspan.kafka_bytes import ByteReader
from rackspan.wire.compiled import FIXED, function, is_fixed, packed, runs
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.schema import FieldShape, StructShape

Read: TypeAlias = Callable[[ByteReader], Any]
ReadItems: TypeAlias = Callable[[ByteReader, int], tuple[Any, ...]]


def read_value(read: Read, reader: ByteReader) -> Any:
    """One value. Bytes after it are ignored, as by Kafka: librdkafka appends an extra byte of tags to its Metadata requests.

    Errors: MalformedRequest.
    """
    try:
        return read(reader)
    except (MalformedBytes, struct.error) as error:
        raise MalformedRequest(f"at {reader.at} of {len(reader.data)} bytes: {error}") from error


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
            lines += [f"{targets}= unpack_{number}(reader.data, reader.at)", f"reader.at += {layout.size}"]
        else:
            names[f"read_{number}"] = _field_reader(run[0], shape.flexible)
            lines.append(f"values.{run[0].name} = read_{number}(reader)")
    defaults = shape.values.DEFAULTS
    for name in defaults.keys() - {field.name for field in shape.fields}:
        names[f"default_{name}"] = defaults[name]
        lines.append(f"values.{name} = default_{name}")
    if shape.flexible:
        names["tagged"] = {tag: (field.name, _field_reader(field, True, tagged=True)) for tag, field in shape.tagged}
        names["read_tags"] = _read_tags
        lines.append("read_tags(reader, tagged, values)")
    return function("read(reader)", [*lines, "return values"], names)


def skip_tags(reader: ByteReader) -> None:
    _read_tags(reader, {}, None)


def _read_tags(reader: ByteReader, known: Mapping[int, tuple[str, Read]], values: WireStruct | None) -> None:
    """Set the known tagged fields of `values`; skip the others."""
    for _ in range(reader.elements(reader.unsigned_varint())):
        tag, size = reader.unsigned_varint(), reader.unsigned_varint()
        end = reader.at + size
        if tag not in known:
            reader.skip(size)
            continue
        name, read = known[tag]
        setattr(values, name, read(reader))
        if reader.at != end:
            raise MalformedRequest(f"tag {tag} said {size} bytes and had {reader.at - end + size}")


def _field_reader(field: FieldShape, flexible: bool, *, tagged: bool = False) -> Read:
    if isinstance(field.kind, StructShape):
        read_item = struct_reader(field.kind)
        if field.nullable and not field.array:
            return lambda reader: None if reader.int8() < 0 else read_item(reader)
    else:
        nullable = field.nullable and not field.array
        read_item = _READERS.get(field.kind) or _sized_reader(field.kind, flexible, nullable)
    if not field.array:
        return read_item
    fixed = isinstance(field.kind, str) and field.kind in FIXED
    read_items = _fixed_items(FIXED[str(field.kind)]) if fixed else _items(read_item)
    return _array_reader(read_items, flexible, field.nullable or tagged)


def _items(read_item: Read) -> ReadItems:
    return lambda reader, count: tuple([read_item(reader) for _ in range(reader.elements(count))])


def _fixed_items(code: str) -> ReadItems:
    """Reads the ids of brokers and the like by one call: most of a Metadata response are such arrays."""
    size = struct.calcsize(f">{code}")

    def read_items(reader: ByteReader, count: int) -> tuple[Any, ...]:
        items = struct.unpack_from(f">{reader.elements(count, size)}{code}", reader.data, reader.at)
        reader.at += count * size
        return items

    return read_items


def _array_reader(read_items: ReadItems, flexible: bool, nullable: bool) -> Read:
    length = ByteReader.compact_length if flexible else ByteReader.int32

    def read_array(reader: ByteReader) -> tuple[Any, ...] | None:
        count = length(reader)
        if count == -1:
            if nullable:
                return None
            raise MalformedRequest(f"null at {reader.at}, where an array must be")
        return read_items(reader, count)

    return read_array


def _sized_reader(kind: str, flexible: bool, nullable: bool) -> Read:
    """Strings, bytes, records."""
    length = ByteReader.compact_length if flexible else ByteReader.int16 if kind == "string" else ByteReader.int32

    take = _TAKERS[kind]

    def read_sized(reader: ByteReader) -> bytes | str | memoryview | None:
        size = length(reader)
        return None if size == -1 and nullable else take(reader, size)

    return read_sized


_TAKERS: Final[Mapping[str, Callable[[ByteReader, int], Any]]] = {
    "string": ByteReader.text,
    "bytes": ByteReader.take,
    "records": ByteReader.view,
}
_FIXED: Final[Mapping[str, Read]] = {
    "?": ByteReader.boolean,
    "b": ByteReader.int8,
    "h": ByteReader.int16,
    "H": ByteReader.uint16,
    "i": ByteReader.int32,
    "q": ByteReader.int64,
    "d": ByteReader.float64,
}
_READERS: Final[Mapping[str, Read]] = {kind: _FIXED[code] for kind, code in FIXED.items()} | {"uuid": ByteReader.uuid}
