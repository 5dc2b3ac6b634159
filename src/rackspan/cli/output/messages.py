"""Warnings, errors and progress, on standard error: one line each; the first two are wrapped on a terminal and where COLUMNS is set.

A command that runs for a fleet begins a log: then each line has its time and the cluster first, or is a JSON object, and is wrapped on a
terminal only.
"""

import io
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rackspan.cli.help import REPEATED
from rackspan.cli.log_format import LogFormat
from rackspan.text import CONTROLS, utc_text

if TYPE_CHECKING:
    from rich.console import Console

    from rackspan.model.snapshot import ReadSnapshot


GOES_ON_SECONDS: Final = 30.0
"""Between two lines of work that may take hours."""

_log: LogFormat | None = None
"""The format of the log that a command has begun, for the lines of all threads."""


def begin_log(log_format: LogFormat | None) -> None:
    """From here on each line is one of a log; None ends that."""
    global _log
    _log = log_format


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


def warn(lines: Iterable[str], cluster: str | None = None) -> None:
    for line in lines:
        _write("warning", line, cluster, "yellow")


def warn_of(read: "ReadSnapshot") -> None:
    """The warnings of a snapshot and what it lacks, which decisions made on it lack too."""
    warn([*read.warnings, *read.snapshot.partial])


def fail(line: str, cluster: str | None = None) -> None:
    _write("error" if cluster is not None else "rackspan", line, cluster, "red")


def note(line: str, cluster: str | None = None) -> None:
    """Progress, never wrapped: it names files, whose length decides nothing else."""
    log_format, line = _log, _runnable(line)
    if log_format is None:
        stderr_console().print(_of_cluster(cluster, line), style="dim", markup=False)
    elif log_format is LogFormat.JSON:
        _write_json("info", line, cluster)
    else:
        stderr_console().print(f"{_now()} {_of_cluster(cluster, _one_line(line))}", style="dim", markup=False)


@contextmanager
def going_on(what: str) -> Iterator[None]:
    """Show on standard error that work without a limit goes on, until it ends."""
    # Imported here: it brings asyncio, and other commands should start without.
    from rackspan.ends import joined_within

    ended, begun = threading.Event(), time.monotonic()

    def show() -> None:
        while not ended.wait(GOES_ON_SECONDS):
            note(f"{what} goes on, {time.monotonic() - begun:,.0f} s so far")

    thread = threading.Thread(target=show, name="going-on", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        joined_within("the lines of work that goes on", thread)


def _write(level: str, line: str, cluster: str | None, style: str) -> None:
    """A warning or an error. In a log it stays one line."""
    from rich.text import Text

    from rackspan.cli.output.tables import Paragraph

    log_format, line = _log, _runnable(line)
    if log_format is LogFormat.JSON:
        _write_json("error" if level == "rackspan" else level, line, cluster)
        return
    before = "" if log_format is None else f"{_now()} "
    console = stderr_console()
    text = Text(f"{before}{_of_cluster(cluster, f'{level}: {_one_line(line)}')}", style=style)
    wraps = console.is_terminal or (log_format is None and os.environ.get("COLUMNS", "").isdecimal())
    console.print(Paragraph(text) if wraps else text)


def _write_json(level: str, line: str, cluster: str | None) -> None:
    document = {"time": _now(), "level": level, "cluster": cluster, "message": line}
    print(json.dumps(document, ensure_ascii=False), file=sys.stderr, flush=True)


def _runnable(line: str) -> str:
    """The line with the flags of this command line in the commands that it names."""
    if not REPEATED:
        return line
    # Imported here: most lines have no command to be looked up.
    from rackspan.cli.output.printed_commands import runnable

    return runnable(line)


def _of_cluster(cluster: str | None, line: str) -> str:
    return line if cluster is None else f"{_one_line(cluster)}: {line}"


def _now() -> str:
    return utc_text(datetime.now(UTC).replace(microsecond=0))


def _one_line(text: str) -> str:
    """Escape line breaks and terminal control sequences that a message may quote."""
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
