"""Declared documents: users' JSON, parsed already, becomes a typed value, or is refused in one line that says which key and why.

A document that is read is declared as `msgspec.Struct` classes, one that is written as `TypedDict` classes: mypy checks what
the builders make, `cli/schemas/` prints their JSON Schema. A class may have SHOWN, how a message names one of its objects by that
object's keys and those of the objects around it: "client {process_id}"; {key} is its own key in a dictionary. Ranges are `Annotated[int, msgspec.Meta(ge=…, le=…)]`. Reads no file.
"""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from rackspan.errors import UsageError
from rackspan.json_text import shown

Document = TypeVar("Document")

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
DecimalKey: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^\d+$")]
"""A key of an object that is a number: a broker id, a partition."""
UtcTime: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]

_WORDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "Path": "the name of a file",
}


class RangeDocument(TypedDict):
    """The fewest and the most of something."""

    min: Count
    max: Count


KEYS_SHOWN: Final = 20

FIX: Final = "fix it in the file"

_ADD: Final = "add it and run again"


class InvalidDocument(ValueError):
    """One line: which key, why, what next. Packages raise an error of their own in its place."""


def convert(document: object, declared: type[Document], name: str, remedy: str = FIX) -> Document:
    """The value of a document. `name` is what messages call it, "" nothing; `remedy` how they end. Errors: InvalidDocument."""
    try:
        return msgspec.convert(document, declared)
    except msgspec.ValidationError as error:
        raise InvalidDocument(_line(str(error), document, declared, name, remedy)) from None


def dotted_keys(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Kafka's dotted keys of a TOML file, with their values; TOML reads `min.insync.racks = 2` as nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from dotted_keys(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def convert_toml(document: object, declared: type[Document], where: str, remedy: str = FIX) -> Document:
    """The value of a parsed TOML table. `where` names its file and place. Errors: UsageError."""
    try:
        return convert(document, declared, "", remedy)
    except InvalidDocument as error:
        raise UsageError(f"{where}: {str(error).replace(_WORDS['object'], 'a table')}") from None


def unknown_keys(document: Any, declared: Any, name: str) -> Iterator[tuple[str, str]]:
    """Name of the object and key, for each key that is not declared, once for each class: a million partitions may have it.

    For documents that `convert` has accepted.
    """
    found: dict[tuple[Any, str], str] = {}
    _find_unknown(document, _bare(declared), name, {}, found)
    return ((owner, key) for (_, key), owner in found.items())


def _find_unknown(
    value: Any, kind: Any, name: str, around: Mapping[str, Any], found: dict[tuple[Any, str], str]
) -> None:
    if not isinstance(value, list):
        objects = {"": value} if isinstance(value, Mapping) else {}
    elif value:
        kind = _bare(get_args(kind)[0])
        objects = {f"[{index}]": item for index, item in enumerate(value)}
    if not _is_struct(kind):
        return
    known, nested = _fields(kind).keys(), _nested(kind)
    for index, item in objects.items():
        if not item.keys() <= known:
            for key in sorted(item.keys() - known):
                found.setdefault((kind, key), _owner(item, kind, f"{name}{index}", around))
        for key, inner in nested.items():
            if key in item:
                _find_unknown(item[key], inner, key, {**around, **item}, found)


def _line(message: str, value: Any, declared: Any, name: str, remedy: str) -> str:
    """The message of msgspec in the words of this project, with the object by name and the value that was found."""
    what, _, path = message.partition(" - at `$")
    owner, inside, around = name, "", dict[str, Any]()
    rest = path.rstrip("`")
    while rest:
        kind = _bare(declared)
        if rest.startswith("."):
            # A key may have dots, as Kafka's have.
            key: Any = max((key for key in _fields(kind) if f"{rest}.".startswith((f".{key}.", f".{key}["))), key=len)
            declared, inside, rest = _fields(kind)[key], key, rest[1 + len(key) :]
            around |= value
        else:
            index, _, rest = rest[1:].partition("]")
            # Of `tuple[X, ...]` the last argument is the ellipsis.
            declared = next(argument for argument in reversed(get_args(kind)) if argument is not Ellipsis)
            key = _first_wrong(value, declared) if index == "..." else int(index)
            around["key"] = key
            inside = f"{inside}: {key}" if index == "..." else f"{inside}[{key}]"
        value = value[key]
        if _is_struct(_bare(declared)) and isinstance(value, Mapping):
            within = f"{owner}: {inside}" if owner != name and "[" not in owner else inside
            owner, inside = _owner(value, _bare(declared), within, around), ""
    why = _why(what, value, declared, inside, remedy)
    return f"{owner}: {why}" if owner else why


def _why(what: str, value: object, declared: Any, key: str, remedy: str) -> str:
    found = f"{key} is {shown(value)}" if key else f"is {shown(value)}"
    if missing := re.match(r"Object missing required field `(.*)`", what):
        return f"{missing[1]} is missing; {_ADD if remedy == FIX else remedy}"
    if unknown := re.match(r"Object contains unknown field `(.*)`", what):
        return f"there is no key {shown(unknown[1])}; {_instead(unknown[1], _fields(_bare(declared)), remedy)}"
    if choices := _choices(declared):
        return f"{found}, expected {' or '.join(choices)}; {remedy}"
    if "of length" in what or "matching regex" in what:
        return f"{key} is empty; {'list at least one' if remedy == FIX and isinstance(value, list) else remedy}"
    expected = re.match(r"Expected `(.*)`, got ", what)
    if expected is None:
        limits = _limits(declared)
        return f"{found}, outside {limits.ge} to {limits.le}; {remedy}"
    words = " or ".join(_WORDS[word] for word in expected[1].split(" | ") if word != "null")
    return f"{found}, not {words}; {remedy}"


def _instead(key: str, known: Collection[str], remedy: str) -> str:
    """The known keys, or if they are many the nearest one."""
    if len(known) <= KEYS_SHOWN:
        return f"there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
    alike = difflib.get_close_matches(key, known, 1)
    return f"did you mean {alike[0]}?" if alike else remedy


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _owner(value: Mapping[str, Any], kind: Any, otherwise: str, around: Mapping[str, Any]) -> str:
    """An object by its own keys and those of the objects around it, if its class has SHOWN and the keys are there."""
    pattern: str | None = getattr(kind, "SHOWN", None)
    if pattern is None:
        return otherwise
    try:
        return pattern.format_map({**around, **value})
    except KeyError:
        return otherwise


def _first_wrong(values: Mapping[str, Any], declared: Any) -> str:
    """The key of the first value that is not of the declared type: msgspec does not say which one it is."""
    return next(key for key, value in values.items() if not _is(value, declared))


def _is(value: object, declared: Any) -> bool:
    try:
        msgspec.convert(value, declared)
    except msgspec.ValidationError:
        return False
    return True


@cache
def _nested(kind: Any) -> dict[str, Any]:
    """The keys of a class that hold objects, or lists of them."""
    bare = {key: _bare(declared) for key, declared in _fields(kind).items()}
    return {
        key: kind for key, kind in bare.items() if _is_struct(kind) or _is_struct(_bare((*get_args(kind), None)[0]))
    }


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The declared types of a class by key."""
    hints = get_type_hints(kind, include_extras=True)
    return {key: hints[name] for name, key in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)}


def _bare(declared: Any) -> Any:
    """The type without null and limits."""
    if get_origin(declared) is Annotated:
        return _bare(get_args(declared)[0])
    if get_origin(declared) in (Union, UnionType):
        return _bare(next(kind for kind in get_args(declared) if kind is not NoneType))
    return declared


def _limits(declared: Any) -> msgspec.Meta:
    alternatives = [declared, *get_args(declared)]
    metadata: list[msgspec.Meta] = [
        constraint for found in alternatives for constraint in getattr(found, "__metadata__", ())
    ]
    return metadata[0]


def _choices(declared: Any) -> list[str]:
    kind = _bare(declared)
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [str(choice.value) for choice in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []
