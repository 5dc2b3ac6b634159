"""Warnings, errors and progress, on standard error: one line each; the first two are wrapped on a terminal and where COLUMNS is set."""

import io
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rackspan.text import CONTROLS

if TYPE_CHECKING:
    from rich.console import Console

    from rackspan.model.snapshot import ReadSnapshot


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
        _write(f"warning: {_one_line(line)}", "yellow")


def warn_of(read: "ReadSnapshot") -> None:
    """The warnings of a snapshot and what it lacks, which decisions made on it lack too."""
    warn([*read.warnings, *read.snapshot.partial])


def fail(line: str) -> None:
    _write(f"rackspan: {_one_line(line)}", "red")


def note(line: str) -> None:
    """Progress, never wrapped: it names files, whose length decides nothing else."""
    stderr_console().print(line, style="dim", markup=False)


def _write(line: str, style: str) -> None:
    """A warning or an error. In a log it stays one line."""
    from rich.text import Text

    from rackspan.cli.output.tables import Paragraph

    console, text = stderr_console(), Text(line, style=style)
    console.print(Paragraph(text) if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal() else text)


def _one_line(text: str) -> str:
    """Escape line breaks and terminal control sequences that a message may quote."""
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
