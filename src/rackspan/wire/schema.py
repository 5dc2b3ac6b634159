"""What each request and response is made of, at each version: kio's classes, turned into plain shapes once each.

kio's own reader is not used: bytes that claim two thousand million elements make it abort the process, where they should
cost one connection. Its classes, generated from Kafka's schemas, are taken as they are; names are theirs, so that
`throttle_time` is `throttleTimeMs`. Times stay whole milliseconds, error codes plain int16s (ours are not in kio's enum).
"""

from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_origin

from rackspan.wire.kio_schemas import load_request_schema, load_response_schema

NO_DEFAULT: Final = object()

Kind: TypeAlias = "str | StructShape"
"""kio's name of a primitive type, or a struct."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldShape:
    """One field. `default` is a plain value, or NO_DEFAULT. Of an array, `nullable` speaks of the whole."""

    name: str
    kind: Kind
    array: bool
    nullable: bool
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class StructShape:
    """Fields in the order of the wire, and those that travel by tag, in order of tag.

    Made once for each of kio's classes and compared by identity: readers and writers are looked up by it at every request.
    """

    name: str
    flexible: bool
    fields: tuple[FieldShape, ...]
    tagged: tuple[tuple[int, FieldShape], ...]


@cache
def request_shape(api_key: int, version: int) -> StructShape:
    return _struct(load_request_schema(api_key, version))


@cache
def response_shape(api_key: int, version: int) -> StructShape:
    return _struct(load_response_schema(api_key, version))


@cache
def _struct(entity: Any) -> StructShape:
    shapes = [(field.metadata.get("tag"), _field(field)) for field in fields(entity)]
    return StructShape(
        entity.__name__,
        entity.__flexible__,
        tuple(shape for tag, shape in shapes if tag is None),
        tuple(sorted(((tag, shape) for tag, shape in shapes if tag is not None), key=lambda tagged: tagged[0])),
    )


def _field(field: Field[Any]) -> FieldShape:
    inner, nullable = _without_none(field.type)
    array = get_origin(inner) is tuple
    if array:
        inner, _ = _without_none(get_args(inner)[0])
    kind = _struct(inner) if isinstance(inner, type) and is_dataclass(inner) else field.metadata["kafka_type"]
    # No id is all zeroes on the wire, in kio's classes and here None: never a null.
    nullable = nullable and kind not in ("uuid", "datetime_i64")
    return FieldShape(field.name, kind, array, nullable, _plain(field.default, kind, array))


def _without_none(annotation: Any) -> tuple[Any, bool]:
    alternatives = get_args(annotation) if get_origin(annotation) not in (None, tuple) else (annotation,)
    inner = [alternative for alternative in alternatives if alternative is not NoneType]
    return inner[0], len(inner) < len(alternatives)


def _plain(default: Any, kind: Kind, array: bool) -> Any:
    if default is MISSING or (is_dataclass(default) and not array):
        return NO_DEFAULT
    if isinstance(default, timedelta):
        return default // timedelta(milliseconds=1)
    if default is None and kind == "datetime_i64":
        return -1
    return default.value if isinstance(default, Enum) else default
