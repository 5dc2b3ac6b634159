"""SIGKILL of a real `pipeline run`, Spark and all, while it starts, writes, stages and switches."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.pipeline import Warehouse, open_warehouse
from rackspan.pipeline.schemas import TABLES
from tests.pipeline import expected
from tests.pipeline.conftest import QUICK_JAVA
from tests.pipeline.examples import generated
from tests.pipeline.killed import last_touch, refreshed

pytestmark = pytest.mark.spark

SNAPSHOTS = generated(20 if os.environ.get("RACKSPAN_SOAK") else 8)
NEVER = "-1"


def tables(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    return {name: list(pipeline.rows(warehouse, name)) for name in TABLES}


def wanted(racks: int) -> dict[str, list[Any]]:
    policy = RackPolicy(min_insync_racks=racks)
    return {
        name: expected.ordered(expected.table(name, SNAPSHOTS, policy), table.grain) for name, table in TABLES.items()
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A warehouse whose tables ask for one rack; runs below ask for two."""
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    for snapshot in SNAPSHOTS:
        pipeline.store(snapshot, warehouse)
    refreshed(warehouse.root, 1)
    return warehouse.root


@contextmanager
def running(root: Path, moment: str = NEVER) -> Iterator["subprocess.Popen[bytes]"]:
    """A run in a group of its own; nothing of the group is left when the block ends."""
    command = [sys.executable, "-m", "tests.pipeline.killed_run", str(root), "2", moment]
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
    return any((root / "staging").rglob(pattern))


def check_and_repair(root: Path) -> None:
    """Readers find the old tables or the new ones, and the next run makes the new ones, of every row one."""
    warehouse = open_warehouse(root)
    assert tables(warehouse) in (wanted(1), wanted(2))
    pipeline.run(warehouse, RackPolicy(min_insync_racks=2))
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
def test_a_run_killed_at_many_moments_loses_and_doubles_nothing(root: Path, spark: SparkSession) -> None:
    histogram: Counter[str] = Counter()
    template = Path(shutil.copytree(root, root.parent / "template"))

    def anew() -> None:
        shutil.rmtree(root)
        shutil.copytree(template, root)

    for _ in range(2):  # The first run reads Spark from the disk, and takes far longer than those that follow.
        anew()
        began = time.monotonic()
        with running(root) as run:
            assert run.wait(300) == 0
        whole_run = time.monotonic() - began
    for twelfth in range(12):
        anew()
        with running(root) as run:
            time.sleep(whole_run * (twelfth + 0.5) / 12)
        if run.returncode == -signal.SIGKILL:
            histogram[by_staging(root)] += 1
        check_and_repair(root)
    died, moment = True, 0
    while died:
        anew()
        with running(root, str(moment)) as run:
            died = run.wait(300) == -signal.SIGKILL
        if died:
            histogram[by_touch(last_touch(root))] += 1
        check_and_repair(root)
        moment += 8
    print(f"\nkilled {histogram.total()} times: {dict(histogram)}")
    assert histogram.total() >= 20


def by_staging(root: Path) -> str:
    if staged(root, f"{list(TABLES)[-1]}/_SUCCESS"):
        return "staged"
    if staged(root, "*.parquet"):
        return "spark writes"
    return "before spark writes"


def by_touch(touch: str) -> str:
    return "switch" if "manifest.json" in touch else "moving into place" if " tables" in touch else "staging"
