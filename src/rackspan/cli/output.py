"""Writing answers: data to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from rich.console import Console, Group, RenderableType
from rich.table import Table

from rackspan.cli.options import Output

PIPED_WIDTH = 160
"""Columns where there is no terminal to ask: wide enough that a table's lines stay whole."""


def console() -> Console:
    """Standard output. Colours and width are the terminal's; piped, the same tables without colour."""
    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, emoji=False)


def stderr_console() -> Console:
    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def warn(lines: Iterable[str]) -> None:
    for line in lines:
        stderr_console().print(f"warning: {line}", style="yellow", markup=False)


def fail(line: str) -> None:
    stderr_console().print(f"rackspan: {line}", style="red", markup=False)


def note(line: str) -> None:
    """Progress, for people who wait."""
    stderr_console().print(line, style="dim", markup=False)


def write(document: Any, output: Output, human: RenderableType) -> None:
    """One answer, in the format asked for."""
    match output:
        case Output.JSON:
            sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        case Output.YAML:
            yaml.safe_dump(document, sys.stdout, sort_keys=False, allow_unicode=True)
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


def _plain(cell: object) -> Any:
    from rich.text import Text

    # Text, not markup: a topic or rack may hold brackets.
    return cell if isinstance(cell, Text) else Text(str(cell))
