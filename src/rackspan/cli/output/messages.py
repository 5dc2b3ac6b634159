"""Warnings, errors and progress, on standard error: one line each, never wrapped."""

import io
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

    from rackspan.model.snapshot import ReadSnapshot

CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Line breaks and what a terminal obeys. Half of a surrogate pair cannot be written at all."""


def open_standard_streams() -> None:
    """Make every output possible: discarded where a stream is closed, escaped where its encoding lacks a character."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - as above
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def discard_standard_output() -> None:
    """Discard all further output, what is buffered included: the pipe is closed or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stderr_console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def warn(lines: Iterable[str]) -> None:
    for line in lines:
        stderr_console().print(f"warning: {_one_line(line)}", style="yellow", markup=False)


def warn_of(read: "ReadSnapshot") -> None:
    """The warnings of a snapshot and what it lacks, which decisions made on it lack too."""
    warn([*read.warnings, *read.snapshot.partial])


def fail(line: str) -> None:
    stderr_console().print(f"rackspan: {_one_line(line)}", style="red", markup=False)


def note(line: str) -> None:
    """Progress."""
    stderr_console().print(line, style="dim", markup=False)


def _one_line(text: str) -> str:
    """Escape line breaks and terminal control sequences that a message may quote."""
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
