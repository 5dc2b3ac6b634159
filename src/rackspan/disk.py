"""Files as rackspan writes them: whole or not at all, and on the disk when it says so."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rackspan.errors import UsageError


def to_disk(path: Path) -> None:
    """Return once a file's bytes, or a folder's names, would outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, text: str, errors: str = "strict") -> None:
    """Write a text file in UTF-8, replacing an older one in a single step. Errors: OSError, and nothing is left behind.

    `errors` says what becomes of characters that UTF-8 cannot hold, as in `str.encode`.
    """
    if path.exists() and not path.is_file():
        # A device such as /dev/stdout: a rename would put a file in its place.
        raise OSError(errno.EINVAL, "Is no regular file", str(path))
    staging = staged(path)
    try:
        staging.write_text(text, encoding="utf-8", errors=errors)
        to_disk(staging)
        staging.replace(path)
    except BaseException:
        # Where the folder itself is wrong there is nothing to remove, and that is no second error.
        with suppress(OSError):
            staging.unlink()
        raise


def append_line(file: BinaryIO, line: str) -> None:
    """Add a line in UTF-8 and return once it is on the disk; a kill in between leaves part of it, without its line feed."""
    file.write(line.encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def staged(path: Path) -> Path:
    """The name beside `path` under which this process prepares it: hidden, and no other process's."""
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


@contextmanager
def writing_output(path: Path, flag: str = "--out") -> Iterator[None]:
    """Tell a user's wrong --out, or other `flag`, in one line. Errors: UsageError, naming the path."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; choose another {flag}") from None
