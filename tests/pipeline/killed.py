"""Work that is killed at a chosen point: SIGKILL just before or after the Nth step that changes files of the warehouse.

A victim is forked from a server (this file as a program) that has imported everything, for imports would take a hundred
times as long as the work. delta-rs starts its threads with the first call, so the server makes none.
"""

import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow.parquet as pq
from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.pipeline import collect, create_warehouse, from_folder, open_warehouse, repaired_warehouse
from rackspan.pipeline.delta import append as append_module
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.schemas import HISTORY, TABLES
from tests.pipeline import plain_build
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.readings import history, store_readings
from tests.processes import running

KillPoint: TypeAlias = int
"""The number of a step."""

READ_EVERY = 0.25
"""Seconds between two reads beside a victim: often enough to meet a switch, and the victim still gets the processor."""


@dataclass(frozen=True, slots=True)
class Victims:
    """A server that forks a victim a request."""

    server: "subprocess.Popen[str]"

    def killed_at(self, kill_point: KillPoint, work: Callable[..., None], root: Path, *more: Any) -> bool:
        """Do `work(root, *more)` and kill it at its Nth touch. False where it was done before that."""
        self._send_request(kill_point, work, root, *more)
        return self._ended() != 0

    def killed_while(
        self, reading: Callable[[], None], kill_point: KillPoint, work: Callable[..., None], root: Path, *more: Any
    ) -> bool:
        """As killed_at, and go on reading until the victim has ended."""
        responses = self.server.stdout
        assert responses is not None
        self._send_request(kill_point, work, root, *more)
        while not select.select([responses], [], [], READ_EVERY)[0]:
            reading()
        return self._ended() != 0

    @contextmanager
    def at_work(self, work: Callable[..., None], root: Path, *more: Any) -> Iterator[Callable[[], bool]]:
        """Do `work(root, *more)` beside the block, which is given a function that returns whether it is done."""
        responses = self.server.stdout
        assert responses is not None
        self._send_request(-1, work, root, *more)
        yield lambda: bool(select.select([responses], [], [], 0)[0])
        assert self._ended() == 0

    def _send_request(self, kill_point: KillPoint, work: Callable[..., None], root: Path, *more: Any) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps([kill_point, work.__name__, str(root), *more], default=str) + "\n")
        self.server.stdin.flush()

    def _ended(self) -> int:
        assert self.server.stdout is not None
        ended = int(self.server.stdout.readline())
        assert ended in (0, -signal.SIGKILL), f"neither done nor killed: {ended}"
        return ended


@contextmanager
def victims(*imported: str) -> Iterator[Victims]:
    """Victims that find these modules imported already."""
    command = [sys.executable, "-m", __name__, *imported]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        yield Victims(server)


def collected(root: Path, given: str | Path) -> None:
    """`pipeline collect --from-snapshots`."""
    errors = [one.error for one in collect(from_folder(Path(given)), create_warehouse(root)) if one.error]
    assert not errors, errors


def refreshed(root: Path, min_insync_racks: int) -> None:
    """`pipeline run`, without Spark."""
    plain_build.refresh(open_warehouse(root), RackPolicy(min_insync_racks=min_insync_racks))


def read_and_stored(root: Path, seed: int) -> None:
    """`pipeline collect --traffic-every`, of readings that are drawn."""
    store_readings(create_warehouse(root), history(Random(seed), 3))


def hours_made(root: Path) -> None:
    """`pipeline run --prices`, without Spark."""
    plain_build.refresh(open_warehouse(root), prices=PRICES)


def maintained(root: Path, now: str) -> None:
    """`pipeline maintain --keep-days 1` at a time."""
    maintain(open_warehouse(root), now=lambda: datetime.fromisoformat(now), keep_days=1)


def repaired(root: Path) -> None:
    """What `pipeline collect` does first."""
    create_warehouse(root)


def rebuilt(root: Path, *tables: str) -> None:
    """`pipeline rebuild`, without Spark."""
    plain_build.refresh(repaired_warehouse(root), rebuild=tables or (*TABLES, *HISTORY))


def given_up(root: Path) -> None:
    """`pipeline maintain --drop-damaged`, and the run after it."""
    maintain(repaired_warehouse(root), now=lambda: datetime.now(UTC), give_up=lambda _line: None)
    plain_build.refresh(open_warehouse(root))


def kill_myself_at(kill_point: int, root: Path) -> None:
    """From here on count the steps of commits, and die before the one of that number. Counted from 0.

    A step is a call that changes files: a file that is opened for writing, renamed or flushed, a folder that is made, and
    every call into delta-rs that commits. Between two steps nothing reaches the disk, except within one call of delta-rs, where
    no kill of these tests falls.
    """
    touches = 0
    log = os.open(root.parent / "last-touch", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def step(what: str) -> None:
        nonlocal touches
        if touches == kill_point:
            os.pwrite(log, what.encode(), 0)
            os.kill(os.getpid(), signal.SIGKILL)
        touches += 1

    for owner, name in STEPS:
        _counted(owner, name, step)


def _counted(owner: Any, name: str, step: Callable[[str], None]) -> None:
    """Replace a function by one that counts a step before and after it."""
    original = getattr(owner, name)

    def around(*words: Any, **options: Any) -> Any:
        step(f"before {name}")
        result = original(*words, **options)
        step(f"after {name}")
        return result

    setattr(owner, name, around)


STEPS: Sequence[tuple[Any, str]] = (
    (DeltaTable, "create"),
    (DeltaTable, "create_write_transaction"),
    (DeltaTable, "create_checkpoint"),
    (DeltaTable, "restore"),
    (DeltaTable, "vacuum"),
    (DeltaTable, "cleanup_metadata"),
    (pq, "write_table"),
    (pq.ParquetWriter, "write_table"),
    (append_module, "flush_file"),
    (append_module, "flush_log"),
    (Path, "rename"),
    (shutil, "rmtree"),
)


def last_touch(root: Path) -> str:
    """What the last victim was about to do, or had just done."""
    return (root.parent / "last-touch").read_text(encoding="utf-8")


def without_fsync() -> None:
    """A SIGKILL takes nothing that was written, flushed to the disk or not; a thousand flushes take minutes."""
    os.fsync = _unflushed  # type: ignore[assignment]


def _unflushed(_descriptor: int) -> None:
    return None


WORK = {
    work.__name__: work
    for work in (collected, read_and_stored, refreshed, hours_made, maintained, repaired, rebuilt, given_up)
}


def serve() -> None:
    """Read requests, each a line of JSON, and write the exit code of a victim forked for each."""
    without_fsync()
    # Arrow imports pandas with its first table: here once instead of in every victim.
    for name in ("pandas", *sys.argv[1:]):
        importlib.import_module(name)
    for line in sys.stdin:
        kill_point, work, root, *more = json.loads(line)
        victim = os.fork()
        if not victim:
            _die_or_work(kill_point, WORK[work], Path(root), more)
        print(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]), flush=True)


def _die_or_work(kill_point: KillPoint, work: Callable[..., None], root: Path, more: list[Any]) -> None:
    try:
        kill_myself_at(kill_point, root)
        work(root, *more)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    serve()
