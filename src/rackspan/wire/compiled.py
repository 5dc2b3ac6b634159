"""Compiles the reader and the writer of a struct from source, without a loop over its fields: that takes half the time."""

from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import Any, Final

from rackspan.wire.schema import FieldShape

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
