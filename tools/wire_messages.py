"""Writes src/rackspan/wire/messages: modules by subject, with a class for each request, response and struct.

    python tools/wire_messages.py

A class is the union over the versions in src/rackspan/wire/apis.py of kio's classes, one of which kio has per version.
Run it after a change of that table or of kio's version; a test compares the files with what it would write.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # So that the file also runs by its own name.
    sys.path.insert(0, str(ROOT))

from rackspan.wire.apis import VERSIONS, ApiKey, message_module  # noqa: E402
from rackspan.wire.kio_schemas import load_request_schema, load_response_schema  # noqa: E402
from rackspan.wire.schema import NO_DEFAULT, field_type, plain_default  # noqa: E402

FOLDER: Final = ROOT / "src" / "rackspan" / "wire" / "messages"
LINE: Final = 120

PREFIXED: Final = frozenset(
    {
        "AbortedTransaction",
        "ConfigResource",
        "Coordinator",
        "DescribedGroup",
        "ListedGroup",
        "Listener",
        "Node",
        "ReassignablePartition",
    }
)
"""kio's names of structs that other packages use too. These, like names of more than one message, get their message's name in front."""

PYTHON_TYPES: Final[Mapping[str, str]] = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "UUID | None",
}
"""By kio's name of a primitive type. All others are integers."""

RECORDS: Final[Mapping[str, str]] = {"Request": "memoryview", "Response": "Sequence[bytes | bytearray | memoryview]"}
"""A request's records are a view of where they were received; a response's are batches of a log. Neither is copied."""

EMPTY: Final[Mapping[str, str]] = {
    "bool": "False",
    "float64": "0.0",
    "string": '""',
    "bytes": 'b""',
    "records": "()",
    "uuid": "None",
}


@dataclass(slots=True)
class FieldUnion:
    """One field over all versions."""

    name: str
    kind: str
    """kio's name of a primitive type, or of a struct."""

    struct: bool
    array: bool
    nullable: bool = False
    tagged: bool = False
    default: Any = NO_DEFAULT


@dataclass(slots=True)
class StructUnion:
    """One struct over all versions. `orders` are the field names of each version."""

    message: str
    name: str
    fields: dict[str, FieldUnion] = field(default_factory=dict)
    orders: list[list[str]] = field(default_factory=list)

    def ordered(self) -> list[FieldUnion]:
        """In an order that agrees with that of every version."""
        left = dict(self.fields)
        ordered: list[FieldUnion] = []
        while left:
            name = next(name for name in left if not self._has_before(name, left))
            ordered.append(left.pop(name))
        return ordered

    def _has_before(self, name: str, left: Iterable[str]) -> bool:
        before = {other for order in self.orders if name in order for other in order[: order.index(name)]}
        return not before.isdisjoint(left)


def main() -> None:
    for path, text in sources().items():
        path.write_text(text, encoding="utf-8")


def sources() -> dict[Path, str]:
    """The text of every generated module."""
    structs = {key: _structs(key) for key in ApiKey}
    names = Counter(struct.name for unions in structs.values() for struct in unions)
    modules: dict[str, list[ApiKey]] = {}
    for key in ApiKey:
        modules.setdefault(message_module(key), []).append(key)
    return {FOLDER / f"{name}.py": _module(keys, structs, names) for name, keys in modules.items()}


def _structs(key: ApiKey) -> list[StructUnion]:
    """Of the request and the response: each struct before those that hold it."""
    found: dict[tuple[str, str], StructUnion] = {}
    for load in (load_request_schema, load_response_schema):
        for version in VERSIONS[key]:
            entity: Any = load(key, version)
            _add(entity.__name__, entity, found)
    # Struct classes that arrive in a later version are found after those that hold them.
    ordered: dict[tuple[str, str], StructUnion] = {}
    for root in [key for key in found if key[0] == key[1]]:
        _add_with_inner(root, found, ordered)
    return list(ordered.values())


def _add_with_inner(
    key: tuple[str, str], found: Mapping[tuple[str, str], StructUnion], ordered: dict[tuple[str, str], StructUnion]
) -> None:
    for one in found[key].ordered():
        if one.struct:
            _add_with_inner((key[0], one.kind), found, ordered)
    ordered.setdefault(key, found[key])


def _add(message: str, entity: Any, found: dict[tuple[str, str], StructUnion]) -> None:
    types = {one.name: field_type(one) for one in fields(entity)}
    for type_ in types.values():
        if type_.struct is not None:
            _add(message, type_.struct, found)
    union = found.setdefault((message, entity.__name__), StructUnion(message, entity.__name__))
    union.orders.append(list(types))
    for one in fields(entity):
        type_ = types[one.name]
        kind = one.metadata["kafka_type"] if type_.struct is None else type_.struct.__name__
        fresh = FieldUnion(one.name, kind, type_.struct is not None, type_.array)
        merged = union.fields.setdefault(one.name, fresh)
        assert (merged.kind, merged.array) == (kind, type_.array), f"{message}: {one.name} changes its type"
        merged.nullable |= type_.nullable
        merged.tagged |= "tag" in one.metadata
        if plain_default(one) is not NO_DEFAULT:
            merged.default = plain_default(one)


def _module(keys: Sequence[ApiKey], structs: Mapping[ApiKey, Sequence[StructUnion]], names: Mapping[str, int]) -> str:
    text = "\n\n\n".join(_class(struct, names) for key in keys for struct in structs[key])
    apis = "; ".join(_described(key, structs[key][-1].message) for key in keys)
    subject = message_module(keys[0]).replace("_", " ")
    first_line = (
        f"Requests and responses: {subject}. Generated from kio's schemas by tools/wire_messages.py: do not edit."
    )
    return "\n".join([f'"""{first_line}', "", *wrap(f"{apis}.", LINE), '"""', "", *_imports(text), "", "", text, ""])


def _described(key: ApiKey, response: str) -> str:
    versions = VERSIONS[key]
    spoken = f"versions {versions[0]}-{versions[-1]}" if len(versions) > 1 else f"version {versions[0]}"
    return f"{response.removesuffix('Response')} (key {key.value}), {spoken}"


def _imports(text: str) -> Iterator[str]:
    if "Sequence[" in text:
        yield "from collections.abc import Sequence"
    if "UUID" in text:
        yield "from uuid import UUID"
    if "Sequence[" in text or "UUID" in text:
        yield ""
    yield "from rackspan.wire.messages.base import WireStruct"


def _class(struct: StructUnion, names: Mapping[str, int]) -> str:
    lines = [f"    {one.name}: {_type(struct, one, names)} = {_default(one)}" for one in struct.ordered()]
    return "\n".join([f"class {_name(struct.message, struct.name, names)}(WireStruct):", *(lines or ["    pass"])])


def _name(message: str, struct: str, names: Mapping[str, int]) -> str:
    if struct == message:
        return f"{message}Data"
    api = message.removesuffix("Request").removesuffix("Response")
    ambiguous = names[struct] > 1 or struct in PREFIXED
    return message + struct if ambiguous and not struct.startswith(api) else struct


def _type(struct: StructUnion, one: FieldUnion, names: Mapping[str, int]) -> str:
    if one.struct:
        inner = _name(struct.message, one.kind, names)
    elif one.kind == "records":
        inner = next(type_ for side, type_ in RECORDS.items() if struct.message.endswith(side))
    else:
        inner = PYTHON_TYPES.get(one.kind, "int")
    inner = f"Sequence[{inner}]" if one.array else inner
    absent = _default(one) == "None" and not inner.endswith("| None")
    return f"{inner} | None" if one.nullable or absent else inner


def _default(one: FieldUnion) -> str:
    """The schema's default, else null where it may be, else what is empty or zero."""
    if one.default is not NO_DEFAULT:
        literal = repr(one.default).replace("'", '"')
        assert ast.literal_eval(literal) == one.default
        return literal
    if one.array:
        return "None" if one.nullable else "()"
    if one.nullable or one.struct:
        return "None"
    return EMPTY.get(one.kind, "0")


if __name__ == "__main__":
    main()
