"""Writes the values of messages/ as bytes: the inverse of reading.py.

Fields that a version lacks are left out, so a handler builds one response for every version. Record batches are
listed among the parts and not copied.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from rackspan.kafka_bytes.writer import NO_TAGS, unsigned_varint
from rackspan.wire.compiled import FIXED, function, is_fixed, packed, runs
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.schema import FieldShape, Kind, StructShape

Records: TypeAlias = memoryview | Sequence[bytes | bytearray | memoryview]
"""Of a request, one view; of a response, the batches of a log."""

Write: TypeAlias = Callable[[list[bytes], Any], None]


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
