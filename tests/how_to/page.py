"""Reads and runs a page of docs/: its files, its commands, and what each command prints on a terminal of 80 columns.

    <!-- cluster 127.0.0.1:9092: racks=3 brokers=6 -->   a practice cluster of the page, and the address that the page writes
    <!-- also on: kafka -->                              the page holds on Apache Kafka too
    <!-- needs: spark -->                                kafka: the page holds on Apache Kafka alone
    <!-- ports: 19091 19093 -->                          ports that the page's own processes listen at: consecutive or not
    <!-- example: it runs until Ctrl-C -->               the code block that follows is not run, and why

    ```toml file=rackspan.toml                           a file, as the reader saves it
    ```console
    $ rackspan audit                                     a command; it continues on the next line after a backslash
    cluster … at …: 6 brokers                            its output; … is any text, and alone on a line any lines

A command of rackspan runs in this process, everything else in bash.
"""

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from rackspan.cli import main
from tests.waiting import WITHIN_SECONDS

WIDTH: Final = 80
DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = DOCS / "how-to"

_BLOCK: Final = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CLUSTER: Final = re.compile(r"<!-- cluster (\S+): (.*?) -->")
_SHELL: Final = re.compile(r"[|&;<>$`]")


@dataclass(frozen=True, slots=True)
class File:
    """A file that the reader saves."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and the lines that it prints."""

    line: str
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What a test needs of a page. `clusters` maps each address on the page to the arguments of its practice cluster."""

    path: Path
    clusters: Mapping[str, Mapping[str, int]]
    steps: tuple[File | Command, ...]
    also_on: str | None
    needs: str | None
    ports: tuple[str, ...] = ()
    """They are replaced by free ones, as addresses are; distances between them stay."""

    @property
    def name(self) -> str:
        return self.path.stem


def read(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    clusters = {
        match[1]: {key: int(value) for key, value in (word.split("=") for word in match[2].split())}
        for match in _CLUSTER.finditer(text)
    }
    ports = tuple((_note(text, "ports") or "").split())
    return Page(path, clusters, tuple(_steps(text)), _note(text, "also on"), _note(text, "needs"), ports)


def _note(text: str, name: str) -> str | None:
    match = re.search(rf"<!-- {name}: ([\w ]+) -->", text)
    return None if match is None else match[1]


def _steps(text: str) -> Iterator[File | Command]:
    for language, after, body in _BLOCK.findall(text):
        file = re.search(r"\bfile=(\S+)", after)
        if file is not None:
            yield File(file[1], body)
        elif language == "console":
            yield from _commands(body)


def _commands(block: str) -> Iterator[Command]:
    for typed, output in _parts(block):
        yield Command(" ".join(line.removesuffix("\\").strip() for line in typed), tuple(output))


def _parts(block: str) -> Iterator[tuple[list[str], list[str]]]:
    """The lines of each command, and the lines that it prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        last = next(at for at, line in enumerate(lines) if not line.endswith("\\"))
        yield lines[: last + 1], lines[last + 1 :]


def rewritten(text: str, outputs: Iterator[Sequence[str]]) -> str:
    """The text of a page with the outputs of its commands, in their order."""

    def block(match: re.Match[str]) -> str:
        if match[1] != "console" or "file=" in match[2]:
            return match[0]
        lines = [line for typed, _ in _parts(match[3]) for line in (f"$ {typed[0]}", *typed[1:], *next(outputs))]
        return "\n".join((f"```console{match[2]}", *lines, "```"))

    return _BLOCK.sub(block, text)


@dataclass
class Shell:
    """Runs the commands of one page in a folder. `addresses` replaces addresses of the page by those of its clusters."""

    folder: Path
    addresses: Mapping[str, str] = field(default_factory=dict)
    settle_seconds: float = 0
    """After a change: brokers of Apache Kafka learn of it one after another, faster than a reader types."""
    code: int = 0
    background: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def save(self, file: File) -> None:
        path = self.folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._real(file.text), encoding="utf-8")

    def run(self, line: str) -> list[str]:
        """The printed lines, without spaces at their ends; addresses are those of the page."""
        printed = self._print(self._real(line))
        for named, real in self.addresses.items():
            for one in (real, real.split(",", maxsplit=1)[0]):
                printed = printed.replace(one, named)
        return [line.rstrip() for line in printed.rstrip("\n").split("\n")] if printed.strip() else []

    def close(self) -> None:
        for process in self.background:
            process.kill()
            process.wait()

    def _real(self, text: str) -> str:
        for named, real in self.addresses.items():
            text = text.replace(named, real)
        return text

    def _print(self, line: str) -> str:
        if match := re.fullmatch(r"export (\w+)=(.*)", line):
            os.environ[match[1]] = match[2]
            return ""
        if match := re.fullmatch(r"kill %(\d+)", line):
            process = self.background[int(match[1]) - 1]
            process.send_signal(signal.SIGTERM)
            self.code = process.wait(WITHIN_SECONDS)
            return ""
        if line.endswith("&"):
            self.background.append(
                subprocess.Popen(["bash", "-c", f"exec {line[:-1]}"], cwd=self.folder, env=self._environment())
            )
            return ""
        if line.startswith("rackspan ") and not _SHELL.search(re.sub(r'"[^"]*"', "", line)):
            printed = self._rackspan(shlex.split(line, comments=True)[1:])
            if "--apply" in line:
                time.sleep(self.settle_seconds)
            return printed
        return self._bash(line)

    def _rackspan(self, words: list[str]) -> str:
        printed = io.StringIO()
        terminal = _Utf8(printed)
        with redirect_stdout(terminal), redirect_stderr(terminal):
            self.code = main(words)
        return printed.getvalue()

    def _bash(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {line}"],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        self.code = done.returncode
        return done.stdout

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


class _Utf8(io.TextIOBase):
    """A terminal that encodes every character, as `sys.stdout` and `sys.stderr` at once."""

    encoding = "utf-8"

    def __init__(self, kept: io.StringIO) -> None:
        self._kept = kept

    def write(self, text: str) -> int:
        return self._kept.write(text)

    def flush(self) -> None:
        """Nothing is buffered."""


def pattern(output: tuple[str, ...]) -> re.Pattern[str]:
    """What matches the printed lines joined by line feeds, each with one at its end."""
    return re.compile("".join(chain.from_iterable(map(_line_pattern, output))))


def _line_pattern(line: str) -> Iterator[str]:
    if line.strip() == "…":
        yield r"(?:[^\n]*\n)*"
        return
    yield "[^\n]*".join(map(re.escape, line.rstrip().split("…"))) + r"\n"
