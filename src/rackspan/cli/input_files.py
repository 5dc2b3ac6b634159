"""Reads files that users name. An error begins with the name of the file."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rackspan.errors import RackspanError, UsageError
from rackspan.json_text import NotJson

T = TypeVar("T")


def read_file(file: Path, parse: Callable[[bytes], T], what: str) -> T:
    """The file as `parse` reads it; `what` is "reassignment file" and the like.

    Errors: those of `parse`, and UsageError for a file that cannot be read or is no JSON.
    """
    try:
        return parse(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}; name a {what}") from None
    except NotJson as error:
        raise UsageError(f"{file}: {error}") from None
    except RackspanError as error:
        raise type(error)(f"{file}: {error}") from None
