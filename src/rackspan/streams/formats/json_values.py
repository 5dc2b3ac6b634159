"""Parsed JSON read strictly: each value by its place, each refusal one line that names it."""

from collections.abc import Mapping
from typing import Any, NoReturn

from rackspan.errors import InvalidProblem
from rackspan.json_text import shown


def refuse(place: str, why: str) -> NoReturn:
    raise InvalidProblem(f"{place}: {why}")


def an_object(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        refuse(place, f"is {shown(value)}, not an object; correct it and run again")
    return value


def a_list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(place, f"is {shown(value)}, not a list; correct it and run again")
    return value


def a_string(value: object, place: str) -> str:
    if not isinstance(value, str):
        refuse(place, f"is {shown(value)}, not a string; correct it and run again")
    return value


def strings(value: object, place: str) -> list[str]:
    """A list of strings; null is an empty one."""
    items = [] if value is None else a_list(value, place)
    for item in items:
        if not isinstance(item, str):
            refuse(place, f"names {shown(item)}, not a string; correct it and run again")
    return items


def a_number(value: object, place: str) -> int:
    # type(), not isinstance: JSON's true is no number, though Python's True is an int.
    if type(value) is not int:
        refuse(place, f"is {shown(value)}, not a whole number; correct it and run again")
    return value


def a_boolean(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        refuse(place, f"is {shown(value)}, not true or false; correct it and run again")
    return value


def required(document: Mapping[str, Any], key: str, place: str) -> Any:
    if document.get(key) is None:
        refuse(place, f"{key} is missing; add it and run again")
    return document[key]


def unknown_keys(document: Mapping[str, Any], known: frozenset[str], place: str) -> list[str]:
    """A warning for each key that nobody reads."""
    return [f"{place}: unknown key {key!r} ignored" for key in sorted(document.keys() - known)]


def once(items: list[str], place: str) -> list[str]:
    if len(set(items)) < len(items):
        twice = next(item for index, item in enumerate(items) if item in items[:index])
        refuse(place, f"names {twice} twice; leave one of them out")
    return items
