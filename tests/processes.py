"""Processes that a test starts: they end with it, and whether they are gone. By their ids, never by name."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not: it only waits for a parent to read its status."""
    try:
        os.kill(pid, 0)
        return sys.platform != "linux" or "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def below(pid: int) -> list[int]:
    """The children of a process, each followed by its own."""
    children: list[int] = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            children.append(int(entry.parent.name))
    return [process for child in children for process in (child, *below(child))]


def gone_within(seconds: float, *pids: int) -> bool:
    until = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(alive, pids))


@contextmanager
def running(command: Sequence[str | Path], **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """A process whose output is text, killed after the block. `options` are those of Popen.

    Popen's own block waits for the process to end by itself, for ever where the block failed before it could end it.
    """
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
