"""Strict parsing of users' JSON, and short quotations of it for messages. The formats are in other packages.

Python's json accepts three things that are refused here: NaN and Infinity, which are no JSON; a key given twice, of which
it keeps the last; and half of a surrogate pair, which is no character and cannot be written again.
"""

import gc
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn

_SHOWN_LENGTH: Final = 40

_ESCAPES: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    r"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\."  # an escaped backslash too, so that the next character is not read as an escape
)


class NotJson(ValueError):
    """One line: what is wrong with the text and what to do. Packages raise an error of their own in its place."""


def parse(content: str | bytes, *, allow_nan: bool = False) -> Any:
    """The document, in UTF-8 (or UTF-16 or -32, as some editors save), with or without a byte order mark.

    `allow_nan`: NaN and the infinities, which some tools write, are null. Errors: NotJson.
    """
    text = decoded(content)
    constant = _no_value if allow_nan else _no_number
    try:
        document = json.loads(text, object_pairs_hook=_keys_once, parse_constant=constant)
    except RecursionError:
        raise NotJson("brackets nested too deep; write the file again") from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            where = f"line {error.lineno} column {error.colno}"
            raise NotJson(
                f"not one JSON document: more text follows it at {where}; keep the document that is meant"
            ) from None
        raise NotJson(f"not JSON: {error}; is the file complete?") from None
    except NotJson:
        raise
    except ValueError:
        # Python's guard against numbers that take minutes to read.
        raise NotJson("a number has more than 4,300 digits; fix it in the file") from None
    _refuse_halves(text)
    return document


def shown(value: object) -> str:
    """A value of a document for a message, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        text = "[" * _SHOWN_LENGTH + "…"
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 3]}..."


@contextmanager
def collector_paused() -> Iterator[None]:
    """In the block Python's collector of cycles does not run. A large document is a tree, which it would walk again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def decoded(content: str | bytes) -> str:
    """The text of a file. Errors: NotJson."""
    try:
        if isinstance(content, str):
            content.encode()
            return content
        return content.decode(_encoding(content))
    except UnicodeError as error:
        raise NotJson(f"not JSON: no UTF-8 text ({error.reason}); is it the right file?") from None  # type: ignore[attr-defined]  # UnicodeError's two classes have it.


def _encoding(content: bytes) -> str:
    encoding = json.detect_encoding(content)
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _keys_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise NotJson(f"key {shown(twice)} occurs twice in one object; leave one of them out")
    return document


def _no_value(_name: str) -> None:
    return None


def _no_number(name: str) -> NoReturn:
    raise NotJson(f"{name} is not a JSON number; fix it in the file")


def _refuse_halves(text: str) -> None:
    for escape in _ESCAPES.finditer(text):
        if escape["half"]:
            before = text[: escape.start()]
            line, column = before.count("\n") + 1, escape.start() - before.rfind("\n")
            raise NotJson(
                f"{escape['half']} at line {line} column {column} is half of a surrogate pair and not a character; fix it in the file"
            )
