"""Reads Java's `.properties` files as java.util.Properties does: comments, continued lines, escapes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rackspan.errors import UsageError


def read_properties(path: Path) -> dict[str, str]:
    """The properties in the file of --command-config. Errors: UsageError when it cannot be read."""
    try:
        # Java's properties are ISO 8859-1, and Kafka's own tools read them so.
        return parse_properties(path.read_text(encoding="latin-1"))
    except OSError as error:
        raise UsageError(f"--command-config {path}: {error.strerror}; name a file that can be read") from None


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values; where a key is given twice, the last value counts."""
    return dict(_key_and_value(line) for line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank lines; one that ends in an odd number of backslashes continues in the next."""
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


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
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _MEANINGS.get(escape, escape)
