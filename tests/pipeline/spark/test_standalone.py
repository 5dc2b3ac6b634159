"""Every table on a real cluster: by --master, by spark-submit with the wheel, and through Spark Connect, always the same rows."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.spark import executors, session
from tests.pipeline import expected
from tests.pipeline.examples import NOON, generated, small
from tests.pipeline.spark import standalone
from tests.pipeline.spark.standalone import Standalone
from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
LATER = small(taken_at=NOON + timedelta(hours=2), leader=3)
POLICY = RackPolicy(min_insync_racks=2)
SOAK = bool(os.environ.get("RACKSPAN_SOAK"))


@cache
def snapshots_to_store() -> list[ClusterSnapshot]:
    return [*generated(5), small(taken_at=NOON), small(taken_at=NOON + timedelta(hours=1), leader=2)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone.standalone(tmp_path_factory.mktemp("standalone")) as started:
        yield started


@pytest.fixture(scope="module")
def remote(cluster: Standalone) -> Iterator[str]:
    with standalone.connect_server(cluster) as url:
        yield url


def filled(root: Path) -> Warehouse:
    warehouse = pipeline.create_warehouse(root)
    store_all(snapshots_to_store(), warehouse)
    return warehouse


def assert_every_table_equals_the_audit(warehouse: Warehouse, snapshots: list[ClusterSnapshot]) -> None:
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, POLICY), table.grain)
        assert expected.judged_columns(pipeline.rows(warehouse, name)) == wanted, name
        assert wanted


@pytest.mark.rest
def test_a_master_with_two_workers_makes_every_table(cluster: Standalone, tmp_path: Path) -> None:
    """Its executors import rackspan from what the driver sends."""
    warehouse = run_on_the_master(cluster, tmp_path / "w")
    assert_every_table_equals_the_audit(warehouse, snapshots_to_store())
    assert min(cluster.applications()) == 1


def run_on_the_master(cluster: Standalone, root: Path) -> Warehouse:
    warehouse = filled(root)
    printed = cluster.rackspan("pipeline", "run", *words_for(warehouse), "--master", cluster.master)
    assert f"{len(snapshots_to_store())} snapshots judged" in printed
    return warehouse


def words_for(warehouse: Warehouse) -> tuple[str, ...]:
    return ("--warehouse", warehouse.root, "--min-insync-racks", "2")


@pytest.mark.soak
def test_spark_submit_with_the_wheel_makes_the_next_rows(cluster: Standalone, tmp_path: Path) -> None:
    """Its executors run the Python in --archives; the stream of `follow` reads the marker table with the session that is there."""
    warehouse = run_on_the_master(cluster, tmp_path / "w")
    store_all([LATER], warehouse)
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("rackspan-*.whl")
    submit = tmp_path / "submit.py"
    submit.write_text("from rackspan.cli import run\n\nrun()\n")
    printed = cluster.run(
        *(standalone.SPARK_HOME / "bin" / "spark-submit", "--master", cluster.master, "--jars", standalone.jars()),
        *(word for name, value in session.DELTA.items() for word in ("--conf", f"{name}={value}")),
        *("--archives", f"{standalone.archive_of(cluster.python, tmp_path)}#environment"),
        *("--py-files", wheel, submit, "pipeline", "follow", "--available-now"),
        *words_for(warehouse),
        PYSPARK_PYTHON="environment/bin/python",
    )
    assert "1 snapshot judged" in printed
    assert_every_table_equals_the_audit(warehouse, [*snapshots_to_store(), LATER])


@pytest.mark.parametrize("trial", range(30 if SOAK else 1))
@pytest.mark.soak
def test_an_executor_killed_at_any_time_costs_no_row(cluster: Standalone, tmp_path: Path, trial: int) -> None:
    """Of one run all executors are killed as soon as there are any; of the next one a single executor, later."""
    warehouse, killed = filled(tmp_path / "w"), list[int]()
    killer = threading.Thread(target=kill_executors, args=(cluster, Random(trial), trial % 2 == 0, killed))
    killer.start()
    cluster.rackspan("pipeline", "run", *words_for(warehouse), "--master", cluster.master)
    killer.join()
    assert killed
    assert_every_table_equals_the_audit(warehouse, snapshots_to_store())
    judged = [row["snapshot_id"] for row in pipeline.rows(warehouse, "judged")]
    assert len(judged) == len(set(judged)) == len(snapshots_to_store())


def kill_executors(cluster: Standalone, rng: Random, every: bool, killed: list[int]) -> None:
    until = time.monotonic() + WITHIN_SECONDS
    while not cluster.executors() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0 if every else rng.uniform(0, 6))
    for pid in cluster.executors()[: None if every else 1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)


IN_A_NOTEBOOK = """
import json, sys
from pyspark.sql import SparkSession
from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.pipeline import notebook

remote, root = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
warehouse = pipeline.open_warehouse(root)
ids = [row.snapshot_id for row in notebook.read(spark, warehouse, "snapshots").collect()]
judged = notebook.judge(spark, warehouse, "findings", ids, RackPolicy(min_insync_racks=2))
names = notebook.register(spark, warehouse, "fleet")
print(json.dumps({
    "read": notebook.read(spark, warehouse, "findings").count(),
    "judged": judged.count(),
    "registered": {name: spark.table(name).count() for name in names if name.endswith(("findings", "snapshots"))},
}))
"""


@pytest.mark.soak
def test_spark_connect_makes_every_table_and_serves_a_notebook(
    cluster: Standalone, remote: str, tmp_path: Path
) -> None:
    warehouse = filled(tmp_path / "w")
    printed = cluster.rackspan("pipeline", "run", *words_for(warehouse), "--remote", remote)
    assert f"{len(snapshots_to_store())} snapshots judged" in printed
    assert_every_table_equals_the_audit(warehouse, snapshots_to_store())
    found = json.loads(cluster.run(sys.executable, "-c", IN_A_NOTEBOOK, remote, warehouse.root).splitlines()[0])
    findings = len(expected.table("findings", snapshots_to_store(), POLICY))
    stored = len(list(pipeline.rows(warehouse, "findings", changes=True)))
    assert found == {
        "read": findings,
        "judged": findings,
        "registered": {
            "fleet.findings": stored,
            "fleet.client_findings": 0,
            "fleet.snapshots": len(snapshots_to_store()),
        },
    }


@pytest.mark.rest
def test_executors_whose_python_lacks_something_are_reported_in_one_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = standalone.executors_python(tmp_path / "bare", "numpy")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(
        UsageError, match=r"^Python on the executors of here lacks pyarrow; set PYSPARK_PYTHON"
    ) as caught:
        executors._require_on_workers(spark, "here")
    assert "\n" not in str(caught.value)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match=r"^the executors of here cannot run Python: ") as caught:
        executors._require_on_workers(spark, "here")
    assert "\n" not in str(caught.value)


@pytest.mark.rest
def test_a_server_that_does_not_respond_is_reported_in_one_line(tmp_path: Path) -> None:
    url = f"sc://127.0.0.1:{standalone.free_port()}"
    with pytest.raises(UsageError, match=rf"^Spark Connect at {url}: .*; look at --remote") as caught:
        session.spark_session(remote=url).__enter__()
    assert "\n" not in str(caught.value)
