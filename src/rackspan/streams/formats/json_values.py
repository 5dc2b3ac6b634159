"""Strict checks of parsed JSON values. A wrong value is refused in one line that names its path."""

from collections.abc import Mapping
from typing import Any, NoReturn

from rackspan.errors import InvalidProblem
from rackspan.json_text import shown


def refuse(path: str, why: str) -> NoReturn:
    """Errors: InvalidProblem, always."""
    raise InvalidProblem(f"{path}: {why}")


def an_object(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        refuse(path, f"is {shown(value)}, not an object; fix it in the file")
    return value


def a_list(value: object, path: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(path, f"is {shown(value)}, not a list; fix it in the file")
    return value


def a_string(value: object, path: str) -> str:
    if not isinstance(value, str):
        refuse(path, f"is {shown(value)}, not a string; fix it in the file")
    return value


def strings(value: object, path: str) -> list[str]:
    """A list of strings; null is an empty one."""
    items = [] if value is None else a_list(value, path)
    for item in items:
        if not isinstance(item, str):
            refuse(path, f"names {shown(item)}, not a string; fix it in the file")
    return items


def a_number(value: object, path: str) -> int:
    # type(), not isinstance: JSON's true is no number, though Python's True is an int.
    if type(value) is not int:
        refuse(path, f"is {shown(value)}, not a whole number; fix it in the file")
    return value


def a_boolean(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        refuse(path, f"is {shown(value)}, not true or false; fix it in the file")
    return value


def required(document: Mapping[str, Any], key: str, path: str) -> Any:
    if document.get(key) is None:
        refuse(path, f"{key} is missing; add it and run again")
    return document[key]


def unknown_keys(document: Mapping[str, Any], known: frozenset[str], path: str) -> list[str]:
    """A warning for each key that is not `known`."""
    return [f"{path}: unknown key {key!r} ignored" for key in sorted(document.keys() - known)]


def without_duplicates(items: list[str], path: str) -> list[str]:
    """`items`, refused when one is listed twice."""
    if len(set(items)) < len(items):
        duplicate = next(item for index, item in enumerate(items) if item in items[:index])
        refuse(path, f"names {duplicate} twice; leave one of them out")
    return items
