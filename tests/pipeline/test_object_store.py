"""A warehouse on S3, by a local server: what delta-rs does in `make test`, Spark in `make soak`."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse, UnreadableStore
from rackspan.model import ClusterSnapshot
from rackspan.model.snapshot import ReadSnapshot
from rackspan.pipeline.check import check
from rackspan.pipeline.collect import collect
from rackspan.pipeline.delta.table import data_files, filesystem_of
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.schemas import LANDING, TABLES
from rackspan.pipeline.warehouse import existing_table
from rackspan.sources.source import Source
from tests.pipeline import expected, object_store, plain_build
from tests.pipeline.examples import NOON, generated, small
from tests.pipeline.spark import standalone

pytestmark = pytest.mark.slow


@cache
def snapshots_to_store() -> list[ClusterSnapshot]:
    return [*generated(6), *(small(taken_at=NOON + timedelta(hours=n), leader=1 + n) for n in range(2))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    with object_store.s3_server(tmp_path_factory.mktemp("s3")) as variables:
        yield variables


@pytest.fixture
def s3(server: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    return server


def stored_new(root: str) -> int:
    """How many of the snapshots this process was the one to store."""
    stored = store_all(snapshots_to_store(), pipeline.create_warehouse(root))
    return sum(isinstance(one, pipeline.SnapshotLocation) and one.new for one in stored)


def rows_of(warehouse: pipeline.Warehouse) -> dict[str, list[dict[str, object]]]:
    return {
        name: [{key: value for key, value in row.items() if key != "run_id"} for row in pipeline.rows(warehouse, name)]
        for name in (*LANDING, *TABLES, "judged")
    }


@pytest.mark.parametrize("root", ["s3://fleet/one", pytest.param("s3a://fleet/folder/two/", marks=pytest.mark.soak)])
def test_collect_table_report_and_export_have_the_rows_of_a_local_warehouse(
    s3: Mapping[str, str], root: str, tmp_path: Path
) -> None:
    here, there = pipeline.create_warehouse(tmp_path / "w"), pipeline.create_warehouse(root)
    for warehouse in (here, there):
        sources = [Source("it", lambda one=one: ReadSnapshot(one, ())) for one in snapshots_to_store()]  # type: ignore[misc]
        assert all(one.stored for one in collect(sources, warehouse))
        plain_build.refresh(warehouse)
    there = pipeline.open_warehouse(root)
    assert rows_of(there) == rows_of(here)
    assert pipeline.draw_report(there, RackPolicy(), tmp_path / "page.html") == []
    assert (tmp_path / "page.html").read_text().count("<html") == 1
    (exported,) = pipeline.export(there, ["findings"], tmp_path)
    assert exported.rows == len(rows_of(here)["findings"])
    for secret in (object_store.KEY_ID, object_store.SECRET):
        assert all(secret not in str(rows) for rows in rows_of(there).values())
        assert secret not in str(list(pipeline.rows(there, "runs")))


@pytest.mark.soak
def test_two_collectors_at_once_store_each_snapshot_once(s3: Mapping[str, str]) -> None:
    root = "s3://fleet/raced"
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        counts = list(processes.map(stored_new, [root, root]))
    warehouse = pipeline.open_warehouse(root)
    assert len(list(pipeline.rows(warehouse, "snapshots"))) == len(snapshots_to_store())
    assert sum(counts) == len(snapshots_to_store())
    for name in LANDING:
        every = [
            tuple(sorted((key, str(value)) for key, value in row.items())) for row in pipeline.rows(warehouse, name)
        ]
        assert len(set(every)) == len(every)


def test_a_store_without_tls_is_refused_with_the_variable_that_allows_it(
    s3: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    for use in (pipeline.open_warehouse, pipeline.create_warehouse):
        with pytest.raises(UnreadableStore, match=r"; set AWS_ALLOW_HTTP=true for a store without TLS$"):
            use("s3://fleet/one")


def test_what_is_missing_is_reported_in_one_line_without_credentials(
    s3: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidWarehouse, match=r"^s3://fleet/none: not a warehouse \(it has no table snapshots\)"):
        pipeline.open_warehouse("s3://fleet/none")
    with pytest.raises(UnreadableStore, match=r"^s3://absent/w/tables/.*: .*404 Not Found") as caught:
        pipeline.open_warehouse("s3://absent/w")
    lines = [str(caught.value)]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{standalone.free_port()}")
    with pytest.raises(UnreadableStore, match=r"Connection refused") as caught:
        pipeline.open_warehouse("s3://fleet/one")
    lines.append(str(caught.value))
    for line in lines:
        assert "\n" not in line
        assert "\x1b" not in line
        assert object_store.SECRET not in line
        assert object_store.KEY_ID not in line


@pytest.mark.soak
def test_a_data_file_that_is_gone_is_found_and_each_remedy_leaves_a_clean_warehouse(s3: Mapping[str, str]) -> None:
    warehouse = pipeline.create_warehouse("s3://fleet/damaged")
    for snapshot in snapshots_to_store():
        pipeline.store(snapshot, warehouse)
    plain_build.refresh(warehouse)
    assert check(warehouse, now=datetime.now(UTC), whole=True).problems == ()
    for name in ("findings", "partitions"):
        opened = existing_table(warehouse, name)
        filesystem_of(opened).delete_file(data_files(opened)[0].path)
    first, *others = check(warehouse, now=datetime.now(UTC)).problems
    assert first.remedy == "rackspan pipeline rebuild findings --warehouse s3://fleet/damaged"
    assert others[0].remedy.startswith("rackspan pipeline maintain --drop-damaged --warehouse s3://fleet/damaged")
    plain_build.refresh(warehouse, rebuild=["findings"])
    maintain(warehouse, now=lambda: datetime.now(UTC), give_up=lambda _line: None)
    plain_build.refresh(warehouse)
    assert check(warehouse, now=datetime.now(UTC), whole=True).problems == ()


@pytest.mark.spark
@pytest.mark.soak
def test_run_and_follow_make_every_table_on_an_object_store(s3: Mapping[str, str], tmp_path: Path) -> None:
    """Hadoop's connector and its settings are those of the user's spark-defaults.conf; the credentials are the environment's."""
    warehouse = pipeline.create_warehouse("s3://fleet/spark")
    defaults = {
        "spark.jars": ",".join(map(str, object_store.hadoop_aws_jars())),
        "spark.hadoop.fs.s3a.endpoint": s3["AWS_ENDPOINT_URL"],
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    environment = standalone.environment(tmp_path, Path(sys.executable), defaults)
    printed = ""
    for some, words in (
        (snapshots_to_store()[:4], ("run",)),
        (snapshots_to_store()[4:], ("follow", "--available-now")),
    ):
        store_all(some, warehouse)
        done = subprocess.run(
            [sys.executable, "-m", "rackspan", "pipeline", *words, "--warehouse", warehouse.root],
            env={**environment, **s3},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        assert f"{len(some)} snapshots judged" in done.stderr
        printed += done.stdout + done.stderr
    assert {run["kind"] for run in pipeline.rows(warehouse, "runs")} == {"run", "follow"}
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots_to_store(), RackPolicy()), table.grain)
        assert expected.judged_columns(pipeline.rows(warehouse, name)) == wanted
        assert wanted
        assert DeltaTable(warehouse.table(name)).to_pyarrow_dataset().count_rows() == len(wanted)
    assert object_store.SECRET not in printed
