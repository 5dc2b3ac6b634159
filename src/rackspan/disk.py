"""Durable writes: a file is replaced in one step, and is on the disk when the function returns."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rackspan.errors import UsageError


def to_disk(path: Path) -> None:
    """Flush a file's bytes, or a folder's names, so that they survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(path: Path) -> None:
    """Make a folder and those above it that are missing; they survive a power loss. Errors: OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        to_disk(folder.parent)


def rename_folder(staging: Path, path: Path) -> None:
    """Give a folder whose files are on the disk its name, in one step. Errors: OSError."""
    staging.rename(path)
    to_disk(path.parent)


def replace_file(path: Path, text: str, errors: str = "strict") -> None:
    """Write a text file in UTF-8, replacing an older one in a single step. Errors: OSError, and nothing is left behind.

    `errors` is the handling of characters that UTF-8 cannot encode, as in `str.encode`.
    """
    if path.exists() and not path.is_file():
        # A device such as /dev/stdout: a rename would put a file in its place.
        raise OSError(errno.EINVAL, "Is not a regular file", str(path))
    staging = staged(path)
    try:
        staging.write_text(text, encoding="utf-8", errors=errors)
        to_disk(staging)
        staging.replace(path)
        to_disk(path.parent)
    except BaseException:
        # If the folder itself is wrong there is no file to remove, and the first error is the one to raise.
        with suppress(OSError):
            staging.unlink()
        raise


def append_line(file: BinaryIO, line: str) -> None:
    """Append a line in UTF-8 and flush it to the disk. A kill meanwhile leaves a part of it, without its line feed."""
    left = memoryview(line.encode() + b"\n")
    while left:
        # A disk that is nearly full takes a part without an error.
        left = left[file.write(left) :]
    file.flush()
    os.fsync(file.fileno())


def staged(path: Path) -> Path:
    """The hidden name beside `path` under which this process writes it; other processes use other names."""
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


@contextmanager
def writing_output(path: Path, flag: str = "--out") -> Iterator[None]:
    """Turn an OSError of a wrong --out, or of another `flag`, into one line. Errors: UsageError, naming the path."""
    if path == Path("-"):
        raise UsageError(f"{flag} -: standard output has the page; use -o json there, or name a file")
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; choose another {flag}") from None
