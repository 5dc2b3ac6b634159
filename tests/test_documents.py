"""Declared documents: every kind of mistake is one line with the object, the key and the value that was found."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import pytest
from msgspec import Meta, Struct

from rackspan.documents import InvalidDocument, convert, unknown_keys


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
