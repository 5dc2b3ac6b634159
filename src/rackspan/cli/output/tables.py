"""Tables that fit the terminal, or become several, or blocks of `name  value` lines: no word, flag or command is ever broken."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rackspan.cli.output.printed_commands import OPTIONS, WORDS, runnable_text
from rackspan.text import CONTROLS

SENTENCES: Final = frozenset({"reason", "because", "why", "actual", "losses that stop writes", "fix with", "do"})
"""Headers of columns whose cells are sentences: they alone may be wrapped, at spaces outside commands."""

COMMAND: Final = re.compile(
    rf"(?<!\S)(?:rackspan {WORDS}|kafka-[a-z-]+\.sh(?: unregister)?){OPTIONS}"
    r'|(?<!\S)\S+ = "[^"]*"'
)
"""A command of rackspan or of Kafka with its options, or a line of rackspan.toml: it is there to be copied, and is never broken."""

SENTENCE_MIN: Final = 28
"""Columns that a wrapped sentence needs in a table; with fewer, the table becomes blocks."""

_BETWEEN: Final = 2


class FittedTable:
    """A table without lines: numbers to the right, words to the left.

    Rendered as it is where it fits; with its headers and sentences wrapped where those keep SENTENCE_MIN columns; else, if it has more
    rows than columns and no sentences, as several tables with the first column in each; else as blocks.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None) -> None:
        self._columns, self._title = columns, title
        self._numeric = [
            bool(rows) and all(isinstance(row[index], int) for row in rows) for index in range(len(columns))
        ]
        self._rows = [[_text(cell) for cell in row] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if self._title is not None:
            yield Text(self._title, style="bold")
        needed = self._needed_widths()
        if _total(self._natural_widths()) <= options.max_width:
            yield self._drawn([None] * len(needed))
        elif _total(needed) <= options.max_width:
            yield self._drawn(self._shared_out(needed, options.max_width - _total(needed)))
        elif len(self._rows) > len(self._columns) and (parts := self._parts(needed, options.max_width)):
            yield from self._divided(parts)
        else:
            yield from self._blocks(options.max_width)

    def _natural_widths(self) -> list[int]:
        cells = ([Text(name) for name in self._columns], *self._rows)
        return [max(_width(row[index]) for row in cells) for index in range(len(self._columns))]

    def _needed_widths(self) -> list[int]:
        """The least width of each column: its cells and the longest word of its header; of a sentence, SENTENCE_MIN."""
        widths = []
        for index, name in enumerate(self._columns):
            cells = [row[index] for row in self._rows]
            header = max(map(cell_len, name.split()), default=0)
            needed = max(map(_width, cells), default=0)
            if name in SENTENCES:
                longest = max((cell_len(unit.plain) for cell in cells for unit in _units(cell)), default=0)
                needed = min(needed, max(SENTENCE_MIN, longest))
            widths.append(max(header, needed))
        return widths

    def _shared_out(self, widths: list[int], left: int) -> list[int | None]:
        """The widths with `left` columns more: for sentences first, then for headers, from left to right."""
        natural = self._natural_widths()
        for index in sorted(range(len(widths)), key=lambda index: self._columns[index] not in SENTENCES):
            more = min(left, natural[index] - widths[index])
            widths[index] += more
            left -= more
        return [*widths]

    def _drawn(self, widths: Sequence[int | None]) -> Table:
        drawn = Table(box=None, header_style="bold", pad_edge=False)
        for name, numeric, width in zip(self._columns, self._numeric, widths, strict=True):
            drawn.add_column(name, justify="right" if numeric else "left", width=width, no_wrap=width is None)
        for row in self._rows:
            drawn.add_row(
                *(
                    Text("\n").join(_lines(cell, width)) if width and name in SENTENCES else cell
                    for name, width, cell in zip(self._columns, widths, row, strict=True)
                )
            )
        return drawn

    def _parts(self, widths: Sequence[int], width: int) -> list[list[int]]:
        """The columns after the first, in groups that fit beside it; empty where sentences are among them, or one fits nowhere."""
        parts: list[list[int]] = []
        for index, name in enumerate(self._columns[1:], 1):
            if name in SENTENCES or _total([widths[0], widths[index]]) > width:
                return []
            if parts and _total([widths[0], *(widths[other] for other in parts[-1]), widths[index]]) <= width:
                parts[-1].append(index)
            else:
                parts.append([index])
        return parts

    def _divided(self, parts: Sequence[Sequence[int]]) -> Iterator[RenderableType]:
        """A table for each group of columns, with the first column in each."""
        for number, part in enumerate(parts):
            if number:
                yield Text()
            kept = [0, *part]
            fitted = FittedTable(
                [self._columns[at] for at in kept], [[row[at] for at in kept] for row in self._rows], None
            )
            fitted._numeric = [self._numeric[at] for at in kept]
            yield fitted

    def _blocks(self, width: int) -> Iterator[Text]:
        """A block for each row: a line for each cell that is not empty, sentences wrapped below each other."""
        label = max(map(cell_len, self._columns)) + _BETWEEN
        for number, row in enumerate(self._rows):
            if number:
                yield Text()
            for name, cell in zip(self._columns, row, strict=True):
                if cell.plain.strip():
                    yield from _labelled(name.strip(), cell, label, width)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> RenderableType:
    """A table of cells: numbers, text, or rich's Text. None is an empty cell."""
    return FittedTable(columns, [list(row) for row in rows], title)


class Paragraph:
    """Text that is wrapped at spaces outside commands, each line as far in as it begins. Rich alone breaks a word that is wider than the terminal."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for line in self._text.split("\n", allow_blank=True):
            body = _stripped(line)
            indent = " " * (len(line) - len(body))
            for wrapped in _wrapped(body, max(options.max_width - len(indent), 1)):
                yield _whole(Text.assemble(indent, wrapped))


def cluster_line(name: str | None, cluster_id: str | None, words: str) -> Text:
    """The first line of a page about a cluster. `words` follow its name or id."""
    return Text.assemble(("cluster ", "bold"), (name or cluster_id or "without an id", "bold"), words)


def unread_lines(parts: Iterable[str]) -> list[Text]:
    """A line for each part of the cluster that could not be read."""
    return [Text(f"could not be read: {part}", style="yellow") for part in parts]


def page(*parts: RenderableType) -> Group:
    """The parts below each other; text is wrapped at spaces unless it is `whole`."""
    texts = (_text(part) if isinstance(part, str | Text) else part for part in parts)
    return Group(*(Paragraph(part) if isinstance(part, Text) and not part.no_wrap else part for part in texts))


def whole(line: str, style: str = "") -> Text:
    """A line that is never wrapped: a command or an address, to be copied."""
    return _whole(Text(line, style=style))


def _whole(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ignore"
    return text


def _labelled(name: str, cell: Text, label: int, width: int) -> Iterator[Text]:
    left = max(width - label, 1)
    cell = Text("\n").join(_stripped(line) for line in cell.split("\n"))
    lines = _lines(cell, left) if name in SENTENCES else list(cell.split("\n"))
    for number, line in enumerate(lines):
        before = name if number == 0 else ""
        yield _whole(Text.assemble((before + " " * (label - cell_len(before)), "bold"), line))


def _stripped(line: Text) -> Text:
    """Without the spaces that indent a cell in its table."""
    start = len(line.plain) - len(line.plain.lstrip())
    return line[start:] if start < len(line.plain) else line


def _lines(cell: Text, width: int) -> list[Text]:
    """The lines of a cell, each wrapped."""
    return [wrapped for line in cell.split("\n", allow_blank=True) for wrapped in _wrapped(line, width)]


def _units(line: Text) -> list[Text]:
    """Words and whole commands: the parts between spaces at which a line may be broken."""
    commands = {at for command in COMMAND.finditer(line.plain) for at in range(*command.span())}
    breaks = [at for at, letter in enumerate(line.plain) if letter in " \n" and at not in commands]
    return [line[start:end] for start, end in zip([0, *(at + 1 for at in breaks)], [*breaks, len(line)], strict=True)]


def _wrapped(line: Text, width: int) -> list[Text]:
    """Lines of at most `width`, broken at spaces; a longer word, or a longer command, has a line of its own."""
    lines: list[Text] = []
    for word in _units(line):
        if lines and cell_len(lines[-1].plain) + 1 + cell_len(word.plain) <= width:
            lines[-1] = Text(" ").join([lines[-1], word])
        else:
            lines.append(word)
    return lines


def _width(cell: Text) -> int:
    return max((cell_len(line) for line in cell.plain.split("\n")), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1)


def _text(cell: object) -> Text:
    # Text, not markup: a topic or rack may hold brackets.
    return runnable_text(_printable(cell if isinstance(cell, Text) else Text("" if cell is None else str(cell))))


def _printable(text: Text) -> Text:
    """The text without what a terminal obeys: clients choose the ids of groups and of themselves. Lines may end."""
    printable, start = text.blank_copy(), 0
    for found in CONTROLS.finditer(text.plain):
        if found[0] != "\n":
            printable.append_text(text[start : found.start()]).append(repr(found[0])[1:-1])
            start = found.end()
    return printable.append_text(text[start:]) if start else text.copy()
