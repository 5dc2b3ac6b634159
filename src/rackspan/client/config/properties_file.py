"""Reads Java's `.properties` files as java.util.Properties does: comments, continued lines, escapes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.errors import UsageError


@dataclass(frozen=True, slots=True)
class Property:
    """A key with its value, and the number of the line where it begins."""

    line: int
    key: str
    value: str


def load_properties(path: Path) -> list[Property]:
    """The properties in the file of --command-config, in their order, variables unresolved. Errors: UsageError when it cannot be read."""
    try:
        # Java's properties are ISO 8859-1, and Kafka's own tools read them so.
        return list(property_lines(path.read_text(encoding="latin-1")))
    except OSError as error:
        raise UsageError(f"--command-config {path}: {error.strerror}; name a file that can be read") from None
    except ValueError as error:
        raise UsageError(f"--command-config {path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values; where a key is given twice, the last value counts. Errors: ValueError."""
    return {found.key: found.value for found in property_lines(text)}


def property_lines(text: str) -> Iterator[Property]:
    """Errors: ValueError for an escape that is none."""
    for number, line in _logical_lines(text):
        try:
            yield Property(number, *_key_and_value(line))
        except ValueError:
            raise ValueError(f"line {number}: \\u needs four hexadecimal digits; write \\\\ for a backslash") from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank lines; one that ends in an odd number of backslashes continues in the next."""
    pending, begin = "", 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(" \t\f")
        if not begin and (not line or line[0] in "#!"):
            continue
        begin = begin or number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending += line[:-1]
            continue
        yield begin, pending + line
        pending, begin = "", 0
    if pending:
        yield begin, pending


_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MEANINGS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _key_and_value(line: str) -> tuple[str, str]:
    match = _KEY.fullmatch(line)
    key, value = match.groups() if match else (line, "")
    return _unescaped(key), _unescaped(value)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _meaning(match.group(1)), text)


def _meaning(escape: str) -> str:
    """Errors: ValueError."""
    return chr(int(escape[1:], 16)) if escape[0] == "u" else _MEANINGS.get(escape, escape)
