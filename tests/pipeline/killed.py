"""Work that is killed at a chosen moment: SIGKILL just before the Nth time it touches a file of the warehouse.

Python tells of every open, mkdir, rename and unlink beforehand (audit events), so that each of them can be the last
thing a process did not do. A victim is forked from a server (this file as a program) that has imported everything, for
imports would take a hundred times as long as the work.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rackspan.audit import RackPolicy
from rackspan.pipeline import collect, from_folder, incremental, open_warehouse
from tests.pipeline import plain_build

TOUCHES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate")


@dataclass(frozen=True, slots=True)
class Victims:
    """A server that forks a victim a request."""

    server: "subprocess.Popen[str]"

    def killed_at(self, moment: int, work: Callable[..., None], root: Path, *more: Any) -> bool:
        """Do `work(root, *more)` and kill it at its Nth touch. False where it was done before that."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        request = [moment, work.__name__, str(root), *more]
        self.server.stdin.write(json.dumps(request, default=str) + "\n")
        self.server.stdin.flush()
        ended = int(self.server.stdout.readline())
        assert ended in (0, -signal.SIGKILL), f"neither done nor killed: {ended}"
        return ended != 0


@contextmanager
def victims() -> Iterator[Victims]:
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield Victims(server)


def collected(root: Path, given: str | Path) -> None:
    """`pipeline collect --from-snapshots`."""
    errors = [one.error for one in collect(from_folder(Path(given)), open_warehouse(root)) if one.error]
    assert not errors, errors


def refreshed(root: Path, min_insync_racks: int) -> None:
    """`pipeline run`, without Spark."""
    policy = RackPolicy(min_insync_racks=min_insync_racks)
    incremental.refresh(
        open_warehouse(root), policy, plain_build.build, now=lambda: datetime.now(UTC), seconds=lambda: 0.0
    )


def last_touch(root: Path) -> str:
    """What the last victim was about to do."""
    return (root.parent / "last-touch").read_text(encoding="utf-8")


def kill_myself_at(moment: int, root: Path) -> None:
    """From here on count the touches below `root`, and die before the one of that number. Counted from 0."""
    left = moment
    log = os.open(root.parent / "last-touch", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def watch(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        if event in TOUCHES and isinstance(args[0], str | Path) and str(args[0]).startswith(str(root)):
            if left == 0:
                os.pwrite(log, f"{event} {Path(str(args[0])).relative_to(root)}".encode(), 0)
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(watch)


def without_fsync() -> None:
    """A SIGKILL takes nothing that was written, flushed to the disk or not; a thousand flushes take minutes."""
    os.fsync = lambda fd: None


WORK = {work.__name__: work for work in (collected, refreshed)}


def serve() -> None:
    """Answer each request, a line of JSON, with the exit code of a forked victim."""
    without_fsync()
    for line in sys.stdin:
        moment, work, root, *more = json.loads(line)
        victim = os.fork()
        if not victim:
            _die_or_work(moment, WORK[work], Path(root), more)
        print(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]), flush=True)


def _die_or_work(moment: int, work: Callable[..., None], root: Path, more: list[Any]) -> None:
    try:
        kill_myself_at(moment, root)
        work(root, *more)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    serve()
