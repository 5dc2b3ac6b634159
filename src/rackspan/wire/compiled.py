"""Reads and writes the values of messages/: structs, tuples, ints, strings, UUIDs; records as views, not copied.

The reader and the writer of a struct are compiled from source, without a loop over its fields: that takes half the time. Fields that a
version lacks are left out, so a handler builds one response for every version. Whatever the bytes are, reading ends, takes memory in
proportion to their size, and raises nothing but MalformedRequest.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from rackspan.errors import MalformedBytes, MalformedRequest
from rackspan.kafka_bytes import NO_TAGS, ByteReader, unsigned_varint
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.schema import FieldShape, Kind, StructShape

Read: TypeAlias = Callable[[ByteReader], Any]
ReadItems: TypeAlias = Callable[[ByteReader, int], tuple[Any, ...]]
Write: TypeAlias = Callable[[list[bytes], Any], None]

Records: TypeAlias = memoryview | Sequence[bytes | bytearray | memoryview]
"""Of a request, one view; of a response, the batches of a log."""

FIXED: Final[Mapping[str, str]] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""kio's types of fixed size, as the struct module writes them."""


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
    """Set the known tagged fields of `values`; skip the others. A tag is there once (KIP-482): of two, readers could choose either."""
    count = reader.elements(reader.unsigned_varint())
    if count == 0:
        return
    found: set[int] = set()
    for _ in range(count):
        tag, size = reader.unsigned_varint(), reader.unsigned_varint()
        if tag in found:
            raise MalformedRequest(f"tag {tag} is there twice")
        found.add(tag)
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


@cache
def struct_writer(shape: StructShape) -> Write:
    """A writer of `shape.values`, compiled once. Fields that this version lacks are left out."""
    lines: list[str] = []
    names: dict[str, Any] = {}
    for number, run in enumerate(runs(shape.fields)):
        if is_fixed(run[0]):
            names[f"pack_{number}"] = packed(run).pack
            lines.append(f"out.append(pack_{number}({', '.join(f'values.{field.name}' for field in run)}))")
        else:
            names[f"write_{number}"] = _field_writer(run[0], shape.flexible)
            lines.append(f"write_{number}(out, values.{run[0].name})")
    if shape.tagged:
        names["tagged"] = [(tag, field, _field_writer(field, True)) for tag, field in shape.tagged]
        names["tags"] = _tags
        lines.append("out.append(tags(tagged, values))")
    elif shape.flexible:
        lines.append(f"out.append({NO_TAGS!r})")
    return function("write(out, values)", lines, names)


@cache
def element_writer(shape: StructShape, name: str) -> Write:
    """A writer of the structs in the array `name` of this struct."""
    kinds = {field.name: field.kind for field in shape.fields if isinstance(field.kind, StructShape)}
    return struct_writer(kinds[name])


def _tags(tagged: Iterable[tuple[int, FieldShape, Write]], values: WireStruct) -> bytes:
    written: list[bytes] = []
    count = 0
    for tag, field, write in tagged:
        value = getattr(values, field.name)
        # As in Kafka, a tagged field with its default value is not sent.
        if value is None or value == field.default or value == ():
            continue
        parts: list[bytes] = []
        write(parts, value)
        data = b"".join(parts)
        written += (unsigned_varint(tag), unsigned_varint(len(data)), data)
        count += 1
    return unsigned_varint(count) + b"".join(written)


def _field_writer(field: FieldShape, flexible: bool) -> Write:
    write_item = _item_writer(field.kind, flexible, field.nullable and not field.array)
    if not field.array:
        return write_item
    return _array_writer(_or_encoded(write_item) if isinstance(field.kind, StructShape) else write_item, flexible)


def _or_encoded(write: Write) -> Write:
    """Accepts an element that is already encoded (codec.write_element)."""
    return lambda out, value: out.append(value) if isinstance(value, bytes) else write(out, value)


def _item_writer(kind: Kind, flexible: bool, nullable: bool) -> Write:
    if isinstance(kind, StructShape):
        return _nullable_struct(struct_writer(kind)) if nullable else struct_writer(kind)
    return _WRITERS.get(kind) or _sized_writer(kind, flexible)


def _nullable_struct(write: Write) -> Write:
    def write_struct(out: list[bytes], value: WireStruct | None) -> None:
        # -1 for null, else 1 and the struct (KIP-893).
        out.append(b"\xff" if value is None else b"\x01")
        if value is not None:
            write(out, value)

    return write_struct


def _array_writer(write_item: Write, flexible: bool) -> Write:
    length = _compact_length if flexible else _INT32.pack

    def write_array(out: list[bytes], values: Any) -> None:
        if values is None:
            out.append(length(-1))
            return
        out.append(length(len(values)))
        for value in values:
            write_item(out, value)

    return write_array


def _records_writer(flexible: bool) -> Write:
    length = _compact_length if flexible else _INT32.pack

    def write_records(out: list[bytes], records: Records | None) -> None:
        if records is None:
            out.append(length(-1))
            return
        batches = (records,) if isinstance(records, memoryview) else records
        out.append(length(sum(map(len, batches))))
        out += cast("Iterable[bytes]", batches)  # Joining takes any buffer.

    return write_records


def _sized_writer(kind: str, flexible: bool) -> Write:
    if kind == "records":
        return _records_writer(flexible)
    length = _compact_length if flexible else _INT16.pack if kind == "string" else _INT32.pack

    def write_sized(out: list[bytes], value: str | bytes | None) -> None:
        if value is None:
            out.append(length(-1))
            return
        data = value.encode() if isinstance(value, str) else value
        out += (length(len(data)), data)

    return write_sized


def _compact_length(length: int) -> bytes:
    return unsigned_varint(length + 1)


def _fixed(packed: Struct) -> Write:
    pack = packed.pack
    return lambda out, value: out.append(pack(value))


def _uuid(out: list[bytes], value: UUID | None) -> None:
    out.append(value.bytes if value is not None else _NO_UUID)


_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_NO_UUID: Final = bytes(16)
_WRITERS: Final[Mapping[str, Write]] = {kind: _fixed(Struct(">" + layout)) for kind, layout in FIXED.items()} | {
    "uuid": _uuid
}


def function(signature: str, lines: Iterable[str], names: Mapping[str, Any]) -> Callable[..., Any]:
    """The function with this signature, NAME(PARAMETERS), and these lines. `names` are its globals."""
    body = "".join(f"\n    {line}" for line in lines)
    namespace = dict(names)
    exec(f"def {signature}:{body or ' pass'}", namespace)  # noqa: S102  # Made of field names alone.
    made: Callable[..., Any] = namespace[signature.partition("(")[0]]
    return made


def runs(fields: Iterable[FieldShape]) -> list[list[FieldShape]]:
    """The fields in order: neighbours of fixed size in one run, to be read or written together; every other field alone."""
    grouped: list[list[FieldShape]] = []
    for field in fields:
        if grouped and is_fixed(field) and is_fixed(grouped[-1][-1]):
            grouped[-1].append(field)
        else:
            grouped.append([field])
    return grouped


def is_fixed(field: FieldShape) -> bool:
    return not field.array and field.kind in FIXED


def packed(run: Iterable[FieldShape]) -> Struct:
    """The layout of a run of fixed size."""
    return Struct(">" + "".join(FIXED[str(field.kind)] for field in run))
