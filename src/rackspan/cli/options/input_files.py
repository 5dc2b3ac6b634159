"""Reads files that users name, and standard input for `-`. An error begins with the name of the file."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from rackspan.errors import RackspanError, UsageError
from rackspan.json_text import NotJson

T = TypeVar("T")

STANDARD_STREAM: Final = Path("-")
"""Standard input or standard output, in place of a file."""


def standard_input() -> bytes:
    return sys.stdin.buffer.read()


def read_file(file: Path, parse: Callable[[bytes], T], what: str) -> T:
    """The file as `parse` reads it; `what` is "reassignment file" and the like.

    Errors: those of `parse`, and UsageError for a file that cannot be read or is no JSON.
    """
    name = "standard input" if file == STANDARD_STREAM else str(file)
    try:
        return parse(standard_input() if file == STANDARD_STREAM else file.read_bytes())
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}; name a {what}") from None
    except NotJson as error:
        raise UsageError(f"{name}: {error}") from None
    except RackspanError as error:
        raise type(error)(f"{name}: {error}") from None
