"""Work that is killed at a chosen point: SIGKILL just before the Nth time it touches a file of the warehouse.

Python raises an audit event before every open, mkdir, rename and unlink, so that the process can be killed before any
of them. A victim is forked from a server (this file as a program) that has imported everything, for
imports would take a hundred times as long as the work.
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.pipeline import collect, from_folder, incremental, open_warehouse
from tests.pipeline import plain_build

NEVER = -1
KillPoint: TypeAlias = int | tuple[str, int]
"""The number of a touch, or that of one counted from the first touch of a file whose name has this in it."""

READ_EVERY = 0.25
"""Seconds between two reads beside a victim: often enough to meet a switch, and the victim still gets the processor."""

TOUCHES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.truncate")


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


def run_on_spark(root: Path, min_insync_racks: int, gateway: Sequence[Any], staged: int = NEVER) -> None:
    """`pipeline run` on a JVM that is warm, which another process started; dies when so many data files are staged.

    `gateway` is the port and the secret by which spark-submit, too, lets a Python in.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = map(str, gateway)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    java = launch_gateway()  # type: ignore[no-untyped-call]
    warm = java.jvm.org.apache.spark.api.java.JavaSparkContext(java.jvm.org.apache.spark.SparkContext.getOrCreate())
    SparkContext(gateway=java, jsc=warm, conf=SparkConf(_jconf=warm.getConf()))
    if staged != NEVER:
        threading.Thread(target=kill_myself_when, args=(root / "staging", staged), daemon=True).start()
    pipeline.run(open_warehouse(root), RackPolicy(min_insync_racks=min_insync_racks))


def kill_myself_when(staging: Path, staged: int) -> None:
    # Not rglob, which fails where Spark takes away a folder under its eyes.
    while sum(_data_files(names) for _, _, names in os.walk(staging)) < staged:
        time.sleep(0.002)
    os.kill(os.getpid(), signal.SIGKILL)


def _data_files(names: Iterable[str]) -> int:
    return sum(name.endswith(".parquet") and not name.startswith(".") for name in names)


def last_touch(root: Path) -> str:
    """What the last victim was about to do; where it was done first, how many touches that took."""
    return (root.parent / "last-touch").read_text(encoding="utf-8")


def kill_myself_at(kill_point: KillPoint, root: Path) -> None:
    """From here on count the touches below `root`, and die before the one of that number. Counted from 0."""
    name, left = ("", kill_point) if isinstance(kill_point, int) else kill_point
    touches = 0
    counting = not name
    log = os.open(root.parent / "last-touch", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def watch(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left, touches, counting
        if event in TOUCHES and isinstance(args[0], str | Path) and str(args[0]).startswith(str(root)):
            touches += 1
            counting = counting or name in str(args[0])
            if counting and left == 0:
                os.pwrite(log, f"{event} {Path(str(args[0])).relative_to(root)}".encode(), 0)
                os.kill(os.getpid(), signal.SIGKILL)
            left -= counting
            os.pwrite(log, str(touches).encode(), 0)

    sys.addaudithook(watch)


def without_fsync() -> None:
    """A SIGKILL takes nothing that was written, flushed to the disk or not; a thousand flushes take minutes."""
    os.fsync = _unflushed  # type: ignore[assignment]


def _unflushed(_descriptor: int) -> None:
    return None


WORK = {work.__name__: work for work in (collected, refreshed, run_on_spark)}


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
