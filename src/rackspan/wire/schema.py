"""The fields of each request and response at each version: kio's classes, converted once each.

kio's own reader is not used: an array length of two thousand million makes it abort the process. kio's classes,
generated from Kafka's schemas, and its names are used as they are: `throttle_time` is Kafka's `throttleTimeMs`.
Times stay whole milliseconds. Error codes are plain int16s, because kio's enum lacks ours.
"""

from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_origin

from rackspan.wire.apis import ApiKey, message_module
from rackspan.wire.kio_schemas import load_request_schema, load_response_schema
from rackspan.wire.messages.base import WireStruct

NO_DEFAULT: Final = object()

Kind: TypeAlias = "str | StructShape"
"""kio's name of a primitive type, or a struct."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldShape:
    """One field. `default` is a plain value, or NO_DEFAULT. `nullable` is about a whole array, not its elements."""

    name: str
    kind: Kind
    array: bool
    nullable: bool
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class StructShape:
    """One version of a struct: fields in wire order, then tagged fields in order of tag, and the class of its values.

    Made once for each of kio's classes and compared by identity: each request looks up a reader and a writer by it.
    """

    values: type[WireStruct]
    flexible: bool
    fields: tuple[FieldShape, ...]
    tagged: tuple[tuple[int, FieldShape], ...]


@cache
def is_flexible(api_key: int, version: int) -> bool:
    """Whether the version has compact lengths and tagged fields (KIP-482). Of any API. Errors: KioIndexError."""
    return bool(load_request_schema(api_key, version).__flexible__)


@cache
def request_shape(api_key: ApiKey, version: int) -> StructShape:
    """Errors: KioIndexError."""
    return _root(api_key, load_request_schema(api_key, version))


@cache
def response_shape(api_key: ApiKey, version: int) -> StructShape:
    """Errors: KioIndexError."""
    return _root(api_key, load_response_schema(api_key, version))


def _root(api_key: ApiKey, entity: Any) -> StructShape:
    module = import_module(f"rackspan.wire.messages.{message_module(api_key)}")
    return _struct(entity, getattr(module, f"{entity.__name__}Data"))


def _struct(entity: Any, values: type[WireStruct]) -> StructShape:
    shapes = [(field.metadata.get("tag"), _field(field, values)) for field in fields(entity)]
    return StructShape(
        values,
        entity.__flexible__,
        tuple(shape for tag, shape in shapes if tag is None),
        tuple(sorted(((tag, shape) for tag, shape in shapes if tag is not None), key=lambda tagged: tagged[0])),
    )


def _field(field: Field[Any], values: type[WireStruct]) -> FieldShape:
    type_ = field_type(field)
    kind = (
        field.metadata["kafka_type"] if type_.struct is None else _struct(type_.struct, values.struct_class(field.name))
    )
    return FieldShape(field.name, kind, type_.array, type_.nullable, plain_default(field))


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of one of kio's fields: its struct class, or None for a primitive, and what is around it."""

    struct: Any | None
    array: bool
    nullable: bool


def field_type(field: Field[Any]) -> FieldType:
    inner, nullable = _without_none(field.type)
    array = get_origin(inner) is tuple
    if array:
        inner, _ = _without_none(get_args(inner)[0])
    struct = inner if isinstance(inner, type) and is_dataclass(inner) else None
    # In kio's classes None is the all-zero id, which on the wire is not a null.
    nullable = nullable and (struct is not None or field.metadata["kafka_type"] not in ("uuid", "datetime_i64"))
    return FieldType(struct, array, nullable)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    alternatives = get_args(annotation) if get_origin(annotation) not in (None, tuple) else (annotation,)
    inner = [alternative for alternative in alternatives if alternative is not NoneType]
    return inner[0], len(inner) < len(alternatives)


def plain_default(field: Field[Any]) -> Any:
    """A number, string, tuple or None; NO_DEFAULT where the schema has none, and for a struct."""
    default = field.default
    if default is MISSING or is_dataclass(default):
        return NO_DEFAULT
    if isinstance(default, timedelta):
        return default // timedelta(milliseconds=1)
    if default is None and field.metadata.get("kafka_type") == "datetime_i64":
        return -1
    return default.value if isinstance(default, Enum) else default
