"""Pages on terminals of 60, 80 and 160 columns, and piped: nothing is cut, no word, flag or command is broken."""

import fcntl
import io
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from rackspan.cli import command_tree, output
from rackspan.cli.commands import leaf_commands
from rackspan.cli.output import documents, tables
from rackspan.cli.output.tables import table
from tests.cli.conftest import GOOD, Ran
from tests.processes import running

Cli = Callable[..., Ran]

WIDTHS = (60, 80, 160)
PIPED_WIDTH = documents.PIPED_WIDTH

TOPIC = "payments.settlement.europe-west.completed-transactions.v12"
"""As long as names get in practice."""

SNAPSHOT = json.loads(json.dumps(GOOD))
SNAPSHOT["topics"].append(
    {
        "name": TOPIC,
        "config": {"min.insync.replicas": "2"},
        "partitions": [
            {"partition": at, "leader": 1, "replicas": [1, 4, 2][:2], "isr": [1], "size_bytes": 10_000_000_000}
            for at in range(3)
        ],
    }
)
SOURCE = ("--snapshot", "moment.json")
PAGES: dict[str, tuple[str, ...]] = {
    "audit": ("audit", *SOURCE),
    "outage": ("outage", *SOURCE),
    "outage of pairs": ("outage", "--pairs", *SOURCE),
    "place create": ("place", "create", "--topic", "new", "--partitions", "3", "--replication-factor", "3", "--seed", "1", *SOURCE),
    "reassign plan": ("reassign", "plan", *SOURCE),
    "reassign lint": ("reassign", "lint", "--plan", "plan.json", *SOURCE),
    "reassign verify": ("reassign", "verify", "--plan", "plan.json", *SOURCE),
    "acks harden": ("acks", "harden", "--min-insync-racks", "3", *SOURCE),
    "restart safe": ("restart", "safe", "--rack", "r1", *SOURCE),
    "restart plan": ("restart", "plan", *SOURCE),
}  # fmt: skip
LABEL = "(fix with|do|topic|first)"
COMMAND_LINE = re.compile(
    rf"\s*({LABEL} {{2,}})?(rackspan (reassign|acks|restart|place) [a-z]+|kafka-[a-z-]+\.sh)( --[a-z-]+( [^-\s]\S*)?)*[,;]?\s*"
)
PLAN = {"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [1, 4]}]}


@pytest.fixture
def page(
    cli: Cli, write: Callable[[object], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """The lines of a page, at a width or piped (None)."""
    write(SNAPSHOT)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))

    def shown(name: str, width: int | None) -> list[str]:
        monkeypatch.setattr(documents, "PIPED_WIDTH", width or 1_000_000)
        ran = cli(*PAGES[name])
        assert ran.code in (0, 1, 2)
        assert ran.out, ran.err
        return ran.out.splitlines()

    return shown


def words(lines: list[str]) -> list[str]:
    return sorted(word for line in lines for word in line.split())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_every_word_whole_at_every_width(page: Callable[..., list[str]], name: str, width: int) -> None:
    piped, narrow = page(name, None), page(name, width)
    # A block repeats the header of its table; everything else is there just as often.
    assert not set(words(piped)) - set(words(narrow)), "a word is cut or missing"
    assert not set(words(narrow)) - set(words(piped)), "a word is broken"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_only_what_has_to_be_copied_is_wider_than_the_terminal(
    page: Callable[..., list[str]], name: str, width: int
) -> None:
    for line in page(name, width):
        one_word = re.fullmatch(rf"\s*({LABEL} {{2,}})?\S+", line)
        assert Text(line.rstrip()).cell_len <= width or one_word or COMMAND_LINE.fullmatch(line), line


def test_a_line_of_prose_that_names_a_command_is_no_command() -> None:
    assert COMMAND_LINE.fullmatch("fix with    rackspan reassign plan --balance --topic orders,")
    assert COMMAND_LINE.fullmatch("  kafka-configs.sh --bootstrap-server h:1 --alter")
    assert not COMMAND_LINE.fullmatch("do  set 3: rackspan reassign plan --topic orders")
    assert not COMMAND_LINE.fullmatch("rackspan does not plan by bytes")
    assert not COMMAND_LINE.fullmatch("rackspan audit says what repairs it")


@pytest.mark.parametrize("columns", ["60", ""])
def test_a_long_warning_is_wrapped_where_a_width_is_set_and_one_line_in_a_log(
    page: Callable[..., list[str]], cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    page("acks harden", None)
    monkeypatch.setenv("COLUMNS", columns)
    lines = cli(*PAGES["acks harden"]).err.splitlines()
    assert " ".join(lines).startswith("warning: topic orders, once the value is set: the loss of rack r1 or r2 or r3 ")
    assert (max(map(len, lines)) <= 60, len(lines) == 1) == (columns == "60", columns == "")


@pytest.mark.parametrize("name", PAGES)
def test_a_command_stands_on_one_line_at_every_width(page: Callable[..., list[str]], name: str) -> None:
    commands = {
        match.group().strip()
        for line in page(name, None)
        for match in re.finditer(r"rackspan [a-z]+( \S+)*? --topic \S+", line)
    }
    for width in WIDTHS:
        text = "\n".join(page(name, width))
        assert [one for one in commands if one not in text] == []


@pytest.mark.parametrize("name", PAGES)
def test_piped_output_is_fitted_to_columns_or_to_a_hundred(
    page: Callable[..., list[str]], name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns, width in (("", PIPED_WIDTH), ("none", PIPED_WIDTH), ("0", PIPED_WIDTH), ("70", 70)):
        monkeypatch.setattr(documents, "PIPED_WIDTH", PIPED_WIDTH)
        monkeypatch.setenv("COLUMNS", columns)
        piped = cli(*PAGES[name]).out.splitlines()
        monkeypatch.delenv("COLUMNS")
        assert piped == page(name, width)
    assert PIPED_WIDTH == 100


def at_60_columns(part: RenderableType) -> list[list[str]]:
    """The words of each line at 60 columns."""
    console = Console(width=60, file=io.StringIO())
    console.print(part, crop=False)
    assert isinstance(console.file, io.StringIO)
    return [line.split() for line in console.file.getvalue().splitlines()]


def drawn(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return at_60_columns(table(head, rows))


@pytest.mark.parametrize("sentence", [f"topic {'t' * 70} is whole", Text(f"topic {'t' * 70} is whole")])
def test_a_word_wider_than_the_terminal_is_whole_in_a_sentence(sentence: str | Text) -> None:
    assert at_60_columns(output.page(sentence)) == [["topic"], ["t" * 70], ["is", "whole"]]


def test_a_table_with_a_long_sentence_stays_a_table_at_60_columns() -> None:
    lines = drawn(("partition", "reason"), [("orders-3", " ".join(["word"] * 20)), ("orders-4", "few words")])
    assert lines[:2] == [["partition", "reason"], ["orders-3", *["word"] * 10]]
    assert lines[-1] == ["orders-4", "few", "words"]


def test_what_is_to_be_copied_is_whole_in_a_remedy() -> None:
    words = ["name", "them", "in", "rackspan.toml,", "a", "line", "each", "under"]
    command = "rackspan reassign plan --drain 4,5 --topic a-long-name-of-a-topic --replication-factor 3,"
    lines = drawn(("fix with",), [(" ".join([*words, '3000 = "RACK"']),), (f"wait, then {command} or lower it",)])
    assert lines == [
        *(["fix", "with", *words], ["3000", "=", '"RACK"'], []),
        *(["fix", "with", "wait,", "then"], command.split(), ["or", "lower", "it"]),
    ]


def test_what_a_terminal_would_obey_is_shown() -> None:
    """Every client of a cluster may join a group of such a name, with such an id."""
    name, escaped = "pay\x1b[2J\x9b1m\x07", r"pay\x1b[2J\x9b1m"
    styled = Text.assemble(("no ", "red"), (name, "bold"), " end\nsecond line")
    console = Console(file=io.StringIO(), width=80)
    console.print(
        tables.page(name, styled, tables.whole(name), table(("group", "reason"), [(name, Text(name)), ("other", None)]))
    )
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert not set(shown) & {"\x1b", "\x9b", "\x07"}
    assert shown.count(escaped) == 5
    assert f"no {escaped} end\nsecond line\n" in shown


def test_a_long_table_of_figures_stays_a_table_at_60_columns() -> None:
    head = ("broker", "rack", "replicas", "leaders", "bytes in", "bytes out")
    rows = [
        (str(broker), "use1-az1-rack-07", "1250 → 1251", "420 → 417", "1023.9 MiB", "17.2 GiB") for broker in range(8)
    ]
    lines = drawn(head, rows)
    assert lines[0] == ["broker", "rack", "replicas", "leaders", "bytes", "in"]
    assert lines[1] == ["0", "use1-az1-rack-07", "1250", "→", "1251", "420", "→", "417", "1023.9", "MiB"]
    assert lines[9:12] == [[], ["broker", "bytes", "out"], ["0", "17.2", "GiB"]]


def test_numbers_are_at_the_right_of_their_column_in_each_part_of_a_table() -> None:
    head = ("broker", *(f"{name}-of-each-day-of-it" for name in ("seconds", "bytes", "records")))
    console = Console(file=io.StringIO(), width=60)
    console.print(table(head, [(10**at,) * 4 for at in range(8)]))
    assert isinstance(console.file, io.StringIO)
    parts = console.file.getvalue().split("\n\n")
    assert len(parts) > 1
    for part in parts:
        _, *rows = part.rstrip("\n").split("\n")
        assert len({len(row.rstrip()) for row in rows}) == 1, part


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 160])
def test_no_flag_is_cut_in_any_help(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name, command in leaf_commands(command_tree()):
        shown = cli(*name.split(), "--help").out
        found = set(re.findall(r"--[a-z][a-z-]*|RACKSPAN_[A-Z_]+", shown))
        flags = {flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")}
        variables = {parameter.envvar for parameter in command.params if isinstance(parameter.envvar, str)}
        assert not (flags | variables) - found, name
        # Usage: [NAME]... and {RACK}... take several.
        assert "..." not in re.sub(r"(?<=[\]}])\.\.\.", "", shown), name
        assert all(len(line) <= columns for line in shown.splitlines()), name


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 160])
def test_a_real_terminal_shows_the_same(tmp_path: Path, columns: int) -> None:
    """In a pty of that width: the page is fitted to it, in colour, and every word is whole."""
    (tmp_path / "moment.json").write_text(json.dumps(SNAPSHOT))
    shown = in_terminal(["audit", *SOURCE], columns, tmp_path)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain != shown, "no colour"
    assert TOPIC in plain
    assert f"rackspan reassign plan --snapshot moment.json --topic {TOPIC}" in plain
    long = [
        line
        for line in plain.splitlines()
        if len(line.rstrip()) > columns and not COMMAND_LINE.fullmatch(line) and TOPIC not in line
    ]
    assert long == []


def in_terminal(arguments: list[str], columns: int, folder: Path) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
    environment |= {"TERM": "xterm-256color", "XDG_CONFIG_HOME": str(folder)}
    with running(
        [sys.executable, "-m", "rackspan", *arguments],
        cwd=folder,
        env=environment,
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
    ):
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65_536):
                parts.append(part)
        except OSError:
            # Linux reports the end of a terminal as EIO.
            pass
        os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")
