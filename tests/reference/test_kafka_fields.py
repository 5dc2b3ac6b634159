"""docs/kafka-fields.md has every field of the responses that are parsed, and where each is read."""

import ast
import importlib
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rackspan
from rackspan.wire.messages.base import WireStruct
from tests.reference.pages import codes, rows, text

PAGE = "kafka-fields.md"
SOURCE = Path(rackspan.__file__).parent
PARSING = ("client", "sources")
"""The packages that send requests and parse their responses."""


def page() -> Iterator[tuple[str, tuple[list[str], str]]]:
    for field, read_in, *why in rows(text(PAGE)):
        if "." in field:
            yield codes(field)[0], (codes(read_in), "".join(why))


ROWS = dict(page())
"""By field, where it is read, or why it is not."""


def parsing_files() -> Iterator[Path]:
    return (file for package in PARSING for file in sorted((SOURCE / package).rglob("*.py")))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def responses() -> set[type[WireStruct]]:
    """The response classes that the parsing packages import."""
    imported = (
        (node.module or "", alias.name)
        for file in parsing_files()
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rackspan.wire.messages.")
        for alias in node.names
    )
    return {
        getattr(importlib.import_module(module), name) for module, name in imported if name.endswith("ResponseData")
    }


def structs_in(annotation: object) -> Iterator[type[WireStruct]]:
    if isinstance(annotation, type) and issubclass(annotation, WireStruct):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from structs_in(inner)


def fields() -> set[str]:
    """Every field of these classes and of all structs in them, as `Class.field`."""
    found, left = set[str](), list(responses())
    while left:
        struct = left.pop()
        if new := {f"{struct.__name__}.{field}" for field in struct.DEFAULTS} - found:
            found |= new
            hints = typing.get_type_hints(struct)
            left += [inner for field in struct.DEFAULTS for inner in structs_in(hints[field])]
    return found


def read_in(node: ast.AST) -> Iterator[str]:
    """The names of attributes that code reads, by a dot or by getattr."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            yield inner.attr
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "getattr":
            yield from (str(argument.value) for argument in inner.args if isinstance(argument, ast.Constant))


def function(place: str) -> ast.AST:
    """The function that is named as FILE:FUNCTION."""
    file, _, name = place.partition(":")
    (found,) = (
        node
        for node in ast.walk(tree(SOURCE / file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    return found


def test_the_page_has_every_field_of_every_response_that_is_parsed_and_no_other() -> None:
    assert set(ROWS) == fields()


@pytest.mark.parametrize("field", [field for field, (places, _) in ROWS.items() if places])
def test_a_field_is_read_where_the_page_says(field: str) -> None:
    _, _, name = field.partition(".")
    for place in ROWS[field][0]:
        assert name in set(read_in(function(place))), place


def test_a_field_that_is_not_read_has_a_reason_and_is_read_nowhere() -> None:
    unread = {field: why for field, (places, why) in ROWS.items() if not places}
    assert all(unread.values())
    # Of a name that several structs have, code may read another one's.
    read = {name for file in parsing_files() for name in read_in(tree(file))}
    elsewhere = {field.partition(".")[2] for field, (places, _) in ROWS.items() if places} | OF_OTHER_VALUES
    assert {field for field in unread if field.partition(".")[2] in read - elsewhere} == set()


OF_OTHER_VALUES = {"metadata", "timestamp", "topic_configs"}
"""Names that values of our own have too."""
