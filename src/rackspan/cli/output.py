"""Writes documents to standard output and everything else to standard error."""

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table

from rackspan.cli.options import Output
from rackspan.model.json_format import ReadSnapshot

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

PIPED_WIDTH = 160
"""Columns where there is no terminal: wide enough that a table's lines stay whole."""


def open_standard_streams() -> None:
    """Make every output possible: discarded where a stream is closed, escaped where its encoding lacks a character."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def give_up_standard_output() -> None:
    """Discard all further output, what is buffered included: the pipe is closed or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_json(document: Any, indent: int | None = None) -> str:
    """Characters as they are where standard output can encode them all, else as JSON escapes."""
    return json.dumps(document, indent=indent, ensure_ascii=not _encodes_every_character())


def _encodes_every_character() -> bool:
    return sys.stdout.encoding.lower().startswith("utf")


def console() -> Console:
    """Standard output. Colours and width are the terminal's; piped, the same tables without colour."""
    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, emoji=False)


def stderr_console() -> Console:
    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def warn(lines: Iterable[str]) -> None:
    for line in lines:
        stderr_console().print(f"warning: {_one_line(line)}", style="yellow", markup=False)


def warn_of(read: ReadSnapshot) -> None:
    """The warnings of a snapshot and what it lacks, which decisions made on it lack too."""
    warn([*read.warnings, *read.snapshot.partial])


def fail(line: str) -> None:
    stderr_console().print(f"rackspan: {_one_line(line)}", style="red", markup=False)


def note(line: str) -> None:
    """Progress, on standard error."""
    stderr_console().print(line, style="dim", markup=False)


def write(document: Any, output: Output, human: RenderableType) -> None:
    """One document, in the requested format."""
    match output:
        case Output.JSON:
            sys.stdout.write(as_json(document, indent=1) + "\n")
        case Output.YAML:
            import yaml

            yaml.safe_dump(document, sys.stdout, sort_keys=False, allow_unicode=_encodes_every_character())
        case Output.HUMAN:
            # Tables fit themselves to the width; a line that is to be copied or cut apart by a script stays whole.
            console().print(human, crop=False)


def flush() -> None:
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> Table:
    """A plain table: numbers to the right, words to the left, no lines drawn."""
    drawn = Table(box=None, title=title, title_justify="left", title_style="bold", header_style="bold", pad_edge=False)
    cells = [[cell if cell is not None else "" for cell in row] for row in rows]
    for index, name in enumerate(columns):
        numbers = bool(cells) and all(isinstance(row[index], int) for row in cells)
        drawn.add_column(name, justify="right" if numbers else "left", overflow="fold", no_wrap=numbers)
    for row in cells:
        drawn.add_row(*(cell if hasattr(cell, "__rich_console__") else _plain(cell) for cell in row))
    return drawn


def page(*parts: RenderableType) -> Group:
    return Group(*parts)


def _one_line(text: str) -> str:
    """Escape line breaks and terminal control sequences that a message may quote."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def _plain(cell: object) -> Any:
    from rich.text import Text

    # Text, not markup: a topic or rack may hold brackets.
    return cell if isinstance(cell, Text) else Text(str(cell))
