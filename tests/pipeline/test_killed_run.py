"""SIGKILL of a real `pipeline run`, Spark and all, while it starts, writes, stages and switches."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.pipeline import Warehouse, open_warehouse
from rackspan.pipeline.manifest import read_manifest
from rackspan.pipeline.schemas import TABLES
from tests.pipeline import expected
from tests.pipeline.conftest import QUICK_JAVA
from tests.pipeline.examples import generated
from tests.pipeline.killed import NEVER, KillPoint, Victims, last_touch, refreshed, run_on_spark, victims

pytestmark = pytest.mark.spark

STAGED_MANIFEST = ".manifest.json."

SNAPSHOTS = generated(20 if os.environ.get("RACKSPAN_SOAK") else 8)


def tables(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    return {name: list(pipeline.rows(warehouse, name)) for name in TABLES}


@cache
def wanted(racks: int) -> dict[str, list[Any]]:
    policy = RackPolicy(min_insync_racks=racks)
    return {
        name: expected.ordered(expected.table(name, SNAPSHOTS, policy), table.grain) for name, table in TABLES.items()
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A warehouse whose tables require one rack; runs below require two."""
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    for snapshot in SNAPSHOTS:
        pipeline.store(snapshot, warehouse)
    refreshed(warehouse.root, 1)
    return warehouse.root


@contextmanager
def running(root: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A run in a group of its own; nothing of the group is left when the block ends."""
    command = [sys.executable, "-m", "tests.pipeline.killed_run", str(root), "2"]
    environ = {**os.environ, **dict([QUICK_JAVA])}
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, env=environ) as run:
        try:
            yield run
        finally:
            run.kill()
            run.wait()
            wait_until(lambda: not alive(run.pid), 60)


def alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


def staged(root: Path, pattern: str) -> bool:
    try:
        return any((root / "staging").rglob(pattern))
    except FileNotFoundError:
        # Spark took away a folder while it was being listed; the next call lists what is left.
        return False


def check_and_repair(root: Path, *, on_spark: bool = True) -> None:
    """Readers find the old tables or the new ones, and the next run makes the new ones, of every row one."""
    warehouse = open_warehouse(root)
    assert tables(warehouse) in (wanted(1), wanted(2))
    if on_spark:
        pipeline.run(warehouse, RackPolicy(min_insync_racks=2))
    else:
        refreshed(root, 2)
    assert tables(warehouse) == wanted(2)
    assert [entry for entry in warehouse.staging.iterdir() if entry.is_dir()] == []


def test_a_run_killed_while_spark_writes_leaves_the_old_tables(root: Path, spark: SparkSession) -> None:
    with running(root) as run:
        wait_until(lambda: run.poll() is not None or staged(root, "*.parquet"), 120)
        assert run.poll() is None
        run.send_signal(signal.SIGKILL)
    assert tables(open_warehouse(root)) == wanted(1)
    check_and_repair(root)


@pytest.mark.soak
def test_a_run_killed_at_many_points_loses_and_doubles_nothing(root: Path, spark: SparkSession) -> None:
    """Without its JVM, which stays warm for the next victim, at most points; with its JVM, at three."""
    histogram: Counter[str] = Counter()
    touched: list[str] = []
    template = Path(shutil.copytree(root, root.parent / "template"))
    read: Counter[int] = Counter()

    def anew() -> None:
        shutil.rmtree(root)
        shutil.copytree(template, root)

    def reading() -> None:
        """What a reader finds at any time: all tables as they were, or all as they will be."""
        warehouse = open_warehouse(root)
        before, found, after = read_manifest(warehouse), tables(warehouse), read_manifest(warehouse)
        for name, rows in found.items():
            assert rows in (wanted(1)[name], wanted(2)[name])
        if before == after:
            # Each table is read by a manifest of its own, so only a switch between two of them may mix old and new.
            read[(wanted(1), wanted(2)).index(found)] += 1

    with victims("pyspark.sql", "rackspan.pipeline.jobs.build") as at_work:
        for number, (kill_point, staged_files) in enumerate(warm_kill_points(root, at_work, spark, anew)):
            anew()
            if at_work.killed_while(reading, kill_point, run_on_spark, root, 2, gateway(spark), staged_files):
                by_name = last_touch(root) if staged_files == NEVER else ""
                touched.append(by_name)
                histogram[by_touch(by_name) if by_name else "spark writes"] += 1
            let_spark_end(spark)
            # What the next run does depends on the staged files, not on what wrote them; with Spark it takes five times as long.
            check_and_repair(root, on_spark=number % 5 == 0)
    for where, reached in COLD.items():
        anew()
        with running(root) as run:
            wait_until(lambda reached=reached: run.poll() is not None or reached(root), 300)  # type: ignore[misc]
            assert run.poll() is None
        histogram[f"{where}, whole"] += 1
        check_and_repair(root)
    print(
        f"\nkilled {histogram.total()} times: {dict(histogram)}; read beside them {dict(read)} (0: old, 1: new tables)"
    )
    print(*filter(None, touched), sep="\n")
    assert histogram.total() >= 20
    assert any(STAGED_MANIFEST in one for one in touched), "no kill fell on the manifest that is about to be renamed"
    assert {"reading and staging", "moving into place", "switch", "spark writes"} <= set(histogram)


COLD: Mapping[str, Callable[[Path], bool]] = {
    "before spark writes": lambda root: staged(root, ".owner"),
    "spark writes": lambda root: staged(root, f"{list(TABLES)[1]}/**/*.parquet"),
    "all is staged": lambda root: staged(root, f"{list(TABLES)[-1]}/_SUCCESS"),
}


def warm_kill_points(
    root: Path, at_work: Victims, spark: SparkSession, anew: Callable[[], None]
) -> Iterator[tuple[KillPoint, int]]:
    """Pairs of a touch and a number of staged files to die at, spread over what a run that ends has of both."""
    anew()
    assert not at_work.killed_at(10**9, run_on_spark, root, 2, gateway(spark), NEVER)
    touches = int(last_touch(root))
    yield from ((touches * step // 12, NEVER) for step in range(12))
    # The switch is a few touches among hundreds, so none of twelve falls on it: before the new manifest is written, before
    # it is flushed, before it is renamed, and after that.
    yield from (((STAGED_MANIFEST, number), NEVER) for number in range(6))
    files = sum(len(one.files) for days in read_manifest(open_warehouse(root)).tables.values() for one in days.values())
    yield from ((10**9, 1 + files * step // 8) for step in range(8))


def gateway(spark: SparkSession) -> tuple[int, str]:
    found = spark.sparkContext._gateway
    assert found is not None
    return found.gateway_parameters.port, found.gateway_parameters.auth_token


def let_spark_end(spark: SparkSession) -> None:
    """Of a driver that died Spark does not know; its JVM would have died with it."""
    spark.sparkContext.cancelAllJobs()
    wait_until(lambda: not spark.sparkContext.statusTracker().getActiveStageIds(), 60)


def by_touch(touch: str) -> str:
    """Which part of the run the touch belongs to. Files are moved from below `staging`, so a move is named by that."""
    if "manifest.json" in touch:
        return "switch"
    return "moving into place" if touch.startswith("os.rename") or " tables/" in touch else "reading and staging"
