"""SIGKILL of `run` and `follow` on Spark, driver and JVM at once: every snapshot once, and no reader sees tables of two runs."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.pipeline import Warehouse, create_warehouse, rows
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.runs import Run, last_run
from rackspan.pipeline.schemas import TABLES
from tests.pipeline import expected
from tests.pipeline.conftest import QUICK_JAVA
from tests.pipeline.examples import NOON, small
from tests.processes import below
from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.spark

SOAK = bool(os.environ.get("RACKSPAN_SOAK"))
KILLS = 5 if SOAK else 1
"""Of each command in a part; each costs a start of Spark."""

PARTS = 20 if SOAK else 1


@contextmanager
def command(warehouse: Warehouse, *words: str) -> Iterator["subprocess.Popen[str]"]:
    line = [sys.executable, "-m", "rackspan", "pipeline", *words, "--warehouse", warehouse.root, "--master", "local[2]"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=os.environ | QUICK_JAVA) as process:
        try:
            yield process
        finally:
            kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    """SIGKILL the process and everything below it, the lowest first, so that no JVM ends its work alone."""
    if process.poll() is not None:
        return
    for pid in (*reversed(below(process.pid)), process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()


@contextmanager
def readers(warehouse: Warehouse) -> Iterator[list[int]]:
    """Beside the block, all tables are read at the versions of the newest run, again and again. Yields the runs that were read."""
    done, runs_read, failures = threading.Event(), list[int](), list[str]()

    def read() -> None:
        while not done.wait(0.2):
            run = last_run(warehouse)
            if run is None:
                continue
            judged = at_version(warehouse, run, "judged", "base_id")
            # A snapshot without a base has all of its rows; one that is equal to its base has none.
            whole = {identity for identity, base in judged.items() if base is None}
            for name in ("partition_durability", "outage_impact"):
                found = at_version(warehouse, run, name).keys()
                if not whole <= found <= judged.keys():
                    failures.append(f"run {run.run_id}: {name} has {len(found)} of {len(judged)}, {len(whole)} whole")
            runs_read.append(run.number)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield runs_read
    finally:
        done.set()
        thread.join()
    assert not failures


def at_version(warehouse: Warehouse, run: Run, name: str, column: str = "snapshot_id") -> dict[str, str | None]:
    """The snapshots in a table at the version that a run names, each with its value of a column."""
    read = DeltaTable(warehouse.table(name), version=run.versions[name]).to_pyarrow_table()
    return dict(zip(read["snapshot_id"].to_pylist(), read[column].to_pylist(), strict=True))


def wait_for_runs(warehouse: Warehouse, process: "subprocess.Popen[str]", number: int) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while (run := last_run(warehouse)) is None or run.number < number:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.soak
def test_snapshots_count_once_however_often_follow_and_run_are_killed(tmp_path: Path, part: int) -> None:
    rng = Random(7 + part)
    warehouse = create_warehouse(tmp_path / "warehouse")
    every = [small(cluster, NOON + timedelta(hours=5 * n), 1 + n % 3) for n in range(4 * KILLS + 4) for cluster in "ab"]
    rng.shuffle(every)
    waiting = iter([every[at : at + 4] for at in range(0, len(every), 4)])
    kills = 0
    with readers(warehouse) as runs_read:
        for _ in range(KILLS):
            with command(warehouse, "follow", "--every", "0.2") as process:
                store_all(next(waiting), warehouse)
                run = last_run(warehouse)
                wait_for_runs(warehouse, process, 1 if run is None else run.number + 1)
                # A batch has ended; the kill falls into the next one, or between the two.
                store_all(next(waiting), warehouse)
                time.sleep(rng.uniform(0, 3))
                assert process.poll() is None
                kills += 1
            with command(warehouse, "run") as process:
                time.sleep(rng.uniform(4, 12))
                kills += process.poll() is None
        for some in waiting:
            store_all(some, warehouse)
        with command(warehouse, "follow", "--available-now") as process:
            assert process.wait(WITHIN_SECONDS) == 0
    print(f"\n{kills} kills, {len(runs_read)} reads of {len(set(runs_read))} runs")
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, every, RackPolicy()), table.grain)
        assert expected.judged_columns(rows(warehouse, name)) == wanted, name
    judged = [row["snapshot_id"] for row in rows(warehouse, "judged")]
    assert len(judged) == len(set(judged)) == len(every)
