"""From plain values to bytes: the mirror of reading.py.

Records are given as their batches, none of which is copied before all of an answer is joined. A field that is left out takes its schema's default, or the empty value of its kind; a field that this version does not
have is left out here, so that an answer is built once for every version.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final, TypeAlias
from uuid import UUID

from rackspan.wire.schema import NO_DEFAULT, FieldShape, Kind, StructShape

Write: TypeAlias = Callable[[list[bytes], Any], None]


def unsigned_varint(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


@cache
def struct_writer(shape: StructShape) -> Write:
    """A writer of mappings of this shape, made once."""
    fields = [(field.name, _absent(field), _field_writer(field, shape.flexible)) for field in shape.fields]

    def write_fields(out: list[bytes], values: Mapping[str, Any]) -> None:
        for name, absent, write in fields:
            write(out, values.get(name, absent))

    if not shape.flexible:
        return write_fields
    tagged = [(tag, field, _field_writer(field, True)) for tag, field in shape.tagged]

    def write_flexible(out: list[bytes], values: Mapping[str, Any]) -> None:
        write_fields(out, values)
        out.append(_tags(tagged, values) if tagged else NO_TAGS)

    return write_flexible


@cache
def element_writer(shape: StructShape, name: str) -> Write:
    """Of the structs in an array of this shape."""
    kinds = {field.name: field.kind for field in shape.fields if isinstance(field.kind, StructShape)}
    return struct_writer(kinds[name])


def _tags(tagged: Iterable[tuple[int, FieldShape, Write]], values: Mapping[str, Any]) -> bytes:
    written: list[bytes] = []
    count = 0
    for tag, field, write in tagged:
        value = values.get(field.name)
        # As Kafka does: what the other side assumes anyway is not sent.
        if value is None or value == field.default or value == ():
            continue
        body: list[bytes] = []
        write(body, value)
        sent = b"".join(body)
        written += (unsigned_varint(tag), unsigned_varint(len(sent)), sent)
        count += 1
    return unsigned_varint(count) + b"".join(written)


def _absent(field: FieldShape) -> Any:
    if field.default is not NO_DEFAULT:
        return field.default
    if field.array:
        return None if field.nullable else ()
    if field.nullable:
        return None
    return {} if isinstance(field.kind, StructShape) else _EMPTY.get(field.kind, 0)


def _field_writer(field: FieldShape, flexible: bool) -> Write:
    one = _one_writer(field.kind, flexible, field.nullable and not field.array)
    if not field.array:
        return one
    return _array_writer(_or_written(one) if isinstance(field.kind, StructShape) else one, flexible)


def _or_written(write: Write) -> Write:
    """Takes an element's bytes in place of its fields (codec.write_element)."""
    return lambda out, value: out.append(value) if isinstance(value, bytes) else write(out, value)


def _one_writer(kind: Kind, flexible: bool, nullable: bool) -> Write:
    if isinstance(kind, StructShape):
        return _nullable_struct(struct_writer(kind)) if nullable else struct_writer(kind)
    return _WRITERS.get(kind) or _sized_writer(kind, flexible)


def _nullable_struct(write: Write) -> Write:
    def write_struct(out: list[bytes], value: Mapping[str, Any] | None) -> None:
        # A byte that says whether anything follows (KIP-893).
        out.append(b"\xff" if value is None else b"\x01")
        if value is not None:
            write(out, value)

    return write_struct


def _array_writer(one: Write, flexible: bool) -> Write:
    length = _compact_length if flexible else _INT32.pack

    def write_array(out: list[bytes], values: Any) -> None:
        if values is None:
            out.append(length(-1))
            return
        out.append(length(len(values)))
        for value in values:
            one(out, value)

    return write_array


def _records_writer(flexible: bool) -> Write:
    length = _compact_length if flexible else _INT32.pack

    def write_records(out: list[bytes], batches: Sequence[bytes] | None) -> None:
        if batches is None:
            out.append(length(-1))
            return
        out.append(length(sum(map(len, batches))))
        out += batches

    return write_records


def _sized_writer(kind: str, flexible: bool) -> Write:
    if kind == "records":
        return _records_writer(flexible)
    length = _compact_length if flexible else _INT16.pack if kind == "string" else _INT32.pack

    def write_sized(out: list[bytes], value: str | bytes | None) -> None:
        if value is None:
            out.append(length(-1))
            return
        sent = value.encode() if isinstance(value, str) else value
        out += (length(len(sent)), sent)

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
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))
_NO_UUID: Final = bytes(16)
NO_TAGS: Final = b"\x00"
_EMPTY: Final[Mapping[str, Any]] = {"string": "", "bytes": b"", "records": (), "uuid": None, "bool": False}
_INT64_WRITER: Final = _fixed(Struct(">q"))
_INT32_WRITER: Final = _fixed(_INT32)
_INT16_WRITER: Final = _fixed(_INT16)
_WRITERS: Final[Mapping[str, Write]] = {
    "bool": _fixed(Struct(">?")),
    "int8": _fixed(Struct(">b")),
    "int16": _INT16_WRITER,
    "uint16": _fixed(Struct(">H")),
    "int32": _INT32_WRITER,
    "int64": _INT64_WRITER,
    "float64": _fixed(Struct(">d")),
    "error_code": _INT16_WRITER,
    "timedelta_i32": _INT32_WRITER,
    "timedelta_i64": _INT64_WRITER,
    "datetime_i64": _INT64_WRITER,
    "uuid": _uuid,
}
