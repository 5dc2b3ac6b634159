"""Documents on standard output, in the format of --output."""

import csv
import html
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from rackspan.cli.options import Output
from rackspan.cli.output.printed_commands import runnable, runnable_document
from rackspan.cli.output.settings_in_force import settings_line, with_settings

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPED_WIDTH: Final = 100
"""Of output that goes to no terminal, unless COLUMNS has another: files are read by people, too."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The table of a document for `-o csv`. A row may lack a column, and what it has beyond the columns is left out."""

    columns: Sequence[str]
    rows: Iterable[Mapping[str, Any]]


def write(document: Any, output: Output, human: "RenderableType", rows: Rows) -> None:
    """One document, in the requested format, with the settings by which it was made."""
    match output:
        case Output.JSON:
            sys.stdout.write(as_json(runnable_document(with_settings(document)), indent=1) + "\n")
        case Output.YAML:
            import yaml

            # Of an enum only the value: yaml refuses its member.
            built = to_builtins(runnable_document(with_settings(document)))
            yaml.safe_dump(built, sys.stdout, sort_keys=False, allow_unicode=_encodes_every_character())
        case Output.CSV:
            _write_csv(replace(rows, rows=map(runnable_document, rows.rows)))
        case Output.HUMAN:
            _write_settings_line()
            # What is wider than the terminal, such as an address, stays whole: the terminal wraps it, and it can be copied.
            _console().print(human, crop=False)


def write_line(document: Mapping[str, Any], output: Output, human: str, *, first: bool) -> None:
    """One of a series of documents, at once: a line of JSON, an item of a YAML list, a row of CSV below the head of the `first`."""
    document = runnable_document(document)
    match output:
        case Output.JSON:
            sys.stdout.write(as_json(document) + "\n")
        case Output.YAML:
            import yaml

            yaml.safe_dump([document], sys.stdout, sort_keys=False, allow_unicode=_encodes_every_character())
        case Output.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            if first:
                writer.writerow(document)
            writer.writerow([_cell(value) for value in document.values()])
        case Output.HUMAN:
            _write_settings_line()
            sys.stdout.write(runnable(human) + "\n")
    sys.stdout.flush()


def write_text(text: str) -> None:
    """A JSON text as it is."""
    sys.stdout.write(text if _encodes_every_character() else as_json(json.loads(text), indent=1) + "\n")


def write_page(text: str) -> None:
    """A page for a browser, as UTF-8 whatever the encoding of standard output: the page names it. Half of a surrogate pair is a `?`."""
    content = runnable(text, html.escape).encode("utf-8", errors="replace")
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(content.decode("utf-8"))


def write_json_array(rows: Iterable[Mapping[str, object]]) -> None:
    """A JSON array, row by row: a table may be larger than memory."""
    before = "["
    for row in rows:
        sys.stdout.write(before + as_json(row))
        before = ",\n "
    sys.stdout.write("[]\n" if before == "[" else "]\n")


def _write_settings_line() -> None:
    line = settings_line()
    if line is not None:
        _console().print(line, style="dim", markup=False, soft_wrap=True)


def as_json(document: Any, indent: int | None = None) -> str:
    """Characters as they are where standard output can encode them all, else as JSON escapes."""
    return json.dumps(document, indent=indent, ensure_ascii=not _encodes_every_character())


def flush() -> None:
    sys.stdout.flush()


def _console() -> "Console":
    """Standard output. Colours and width are the terminal's; piped, the same tables without colour."""
    from rich.console import Console

    columns = os.environ.get("COLUMNS", "")
    piped = int(columns) if columns.isdecimal() and int(columns) else PIPED_WIDTH
    return Console(width=None if sys.stdout.isatty() else piped, highlight=False, emoji=False)


def _write_csv(table: Rows) -> None:
    """RFC 4180, with line feeds. Lists are joined by commas, objects are JSON, null is empty."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_cell(row.get(name)) for name in table.columns] for row in table.rows)


def _cell(value: object) -> object:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case dict():
            return as_json(value)
        case list() | tuple() if not any(isinstance(item, dict | list) for item in value):
            return ",".join(str(_cell(item)) for item in value)
        case list() | tuple():
            return as_json(value)
        case _:
            return value


def _encodes_every_character() -> bool:
    # None: a text stream that encodes nothing, such as the io.StringIO that a program puts in the place of standard output.
    return sys.stdout.encoding is None or sys.stdout.encoding.lower().startswith("utf")
