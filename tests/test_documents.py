"""Declared documents: every kind of mistake is one line with the object, the key and the value that was found."""

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from msgspec import Meta, Struct, defstruct

from rackspan.documents import InvalidDocument, convert, convert_toml, dotted_keys, unknown_keys
from rackspan.errors import UsageError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Part(Struct):
    SHOWN: ClassVar[str] = "part {name}"

    name: str
    size: Annotated[int, Meta(ge=0, le=9)] | None = None
    colour: Colour | None = None


class Closed(Struct, forbid_unknown_fields=True):
    id: int
    on: bool = False


class Whole(Struct):
    parts: list[Part]
    labels: dict[str, str] = {}
    racks: dict[str, list[str | None]] = {}
    closed: list[Closed] | None = None
    numbers: Annotated[list[int], Meta(min_length=1)] | None = None


class Table(Struct, forbid_unknown_fields=True, rename=lambda name: name.replace("_", ".")):
    SHOWN: ClassVar[str] = "[tables.{key}]"

    min_racks: Annotated[int, Meta(ge=1, le=9)] = 1
    min_racks_mode: Literal["on", "off"] = "on"


class File(Struct, forbid_unknown_fields=True, rename=lambda name: name.replace("_", ".")):
    listen_host: Annotated[str, Meta(pattern=r"\S")] = "h"
    listen_file: Path | None = None
    min: Table | None = None
    tables: dict[str, Table] = {}


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (1, "a.toml: is 1, not a table; see the page"),
        ({"listen.host": 3}, "a.toml: listen.host is 3, not a string; see the page"),
        ({"listen.host": " "}, "a.toml: listen.host is empty; see the page"),
        ({"listen.file": "x"}, 'a.toml: listen.file is "x", not the name of a file; see the page'),
        ({"listen": 1}, 'a.toml: there is no key "listen"; there are listen.host, listen.file, min, tables'),
        ({"min": {"min.racks": 0}}, "a.toml: min: min.racks is 0, outside 1 to 9; see the page"),
        (
            {"tables": {"a": {}, "b": {"min.racks.mode": "of"}}},
            'a.toml: [tables.b]: min.racks.mode is "of", expected on or off; see the page',
        ),
        (
            {"tables": {"a": {"min.rack": 1}}},
            'a.toml: [tables.a]: there is no key "min.rack"; there are min.racks, min.racks.mode',
        ),
    ],
)
def test_a_mistake_in_a_toml_file_names_file_table_and_key(document: object, line: str) -> None:
    with pytest.raises(UsageError) as refused:
        convert_toml(document, File, "a.toml", "see the page")
    assert str(refused.value) == line


def test_of_many_keys_the_nearest_one_is_named() -> None:
    many = defstruct("many", [(f"key_{at:02}", int, 0) for at in range(30)], forbid_unknown_fields=True)
    for key, line in (("key_7", 'there is no key "key_7"; did you mean key_27?'), ("x", 'there is no key "x"; see')):
        with pytest.raises(InvalidDocument) as refused:
            convert({key: 1}, many, "", "see")
        assert str(refused.value) == line


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([], "file: is [], not an object; fix it in the file"),
        ({}, "file: parts is missing; add it and run again"),
        ({"parts": None}, "file: parts is null, not a list; fix it in the file"),
        ({"parts": [3]}, "file: parts[0] is 3, not an object; fix it in the file"),
        ({"parts": [{}]}, "parts[0]: name is missing; add it and run again"),
        ({"parts": [{"name": "a", "size": "1"}]}, 'part a: size is "1", not a whole number; fix it in the file'),
        ({"parts": [{"name": "a", "size": True}]}, "part a: size is true, not a whole number; fix it in the file"),
        ({"parts": [{"name": "a", "size": 1.0}]}, "part a: size is 1.0, not a whole number; fix it in the file"),
        ({"parts": [{"name": "a", "size": 10}]}, "part a: size is 10, outside 0 to 9; fix it in the file"),
        ({"parts": [{"name": "a", "size": -1}]}, "part a: size is -1, outside 0 to 9; fix it in the file"),
        (
            {"parts": [{"name": "a", "colour": "green"}]},
            'part a: colour is "green", expected red or blue; fix it in the file',
        ),
        ({"parts": [{"name": 7}]}, "part 7: name is 7, not a string; fix it in the file"),
        ({"parts": [], "labels": {"a": "b", "c": 1}}, "file: labels: c is 1, not a string; fix it in the file"),
        (
            {"parts": [], "racks": {"a": ["r"], "b": [None, 2]}},
            "file: racks: b[1] is 2, not a string; fix it in the file",
        ),
        ({"parts": [], "closed": [{"id": 1, "no": 2}]}, 'closed[0]: there is no key "no"; there are id, on'),
        (
            {"parts": [], "closed": [{"id": 1, "on": 0}]},
            "closed[0]: on is 0, not true or false; fix it in the file",
        ),
        ({"parts": [], "numbers": []}, "file: numbers is empty; list at least one"),
        ({"parts": [], "numbers": [1, 2**80, "x"]}, 'file: numbers[2] is "x", not a whole number; fix it in the file'),
    ],
)
def test_a_mistake_is_refused_in_one_line(document: Any, line: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        convert(document, Whole, "file")
    assert str(refused.value) == line


def test_a_document_becomes_a_value() -> None:
    whole = convert({"parts": [{"name": "a", "size": 9, "colour": "red"}], "labels": {"x": "y"}}, Whole, "file")
    assert whole == Whole([Part("a", 9, Colour.RED)], {"x": "y"})


def test_keys_that_are_not_declared_are_named_with_their_object() -> None:
    document = {"parts": [{"name": "a", "odd": 1}, {"name": "b"}], "closed": None, "more": [], "labels": {"free": "1"}}
    assert list(unknown_keys(document, Whole, "file")) == [("file", "more"), ("part a", "odd")]


def test_nested_tables_are_kafkas_dotted_keys() -> None:
    table = tomllib.loads('min.insync.racks = 2\nmin.insync.replicas = 1\nplain = "x"\n[a.b]\nc = []\n')
    assert dict(dotted_keys(table)) == {"min.insync.racks": 2, "min.insync.replicas": 1, "plain": "x", "a.b.c": []}
