"""Plain Parquet: every row of every table, of one run, for engines that do not read Delta Lake."""

import shutil
from datetime import timedelta
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.pipeline import Warehouse, notebook, table
from rackspan.pipeline.changes import views
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import DERIVED, HISTORY, LANDING, VIEWS, table_named
from tests.pipeline import plain_build
from tests.pipeline.examples import NOON, generated, small
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.readings import history, store_readings

POLICY = RackPolicy(min_insync_racks=2)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = pipeline.create_warehouse(tmp_path_factory.mktemp("template") / "w")
    store_all([*generated(10), small(), small(taken_at=NOON + timedelta(minutes=40))], made)
    store_readings(made, history(Random(1), 6, "read"))
    plain_build.refresh(made, POLICY, prices=PRICES)
    return Path(made.root)


@pytest.fixture
def warehouse(template: Path, tmp_path: Path) -> Warehouse:
    """A copy of its own for each test."""
    return pipeline.open_warehouse(shutil.copytree(template, tmp_path / "w"))


@pytest.mark.slow
def test_each_file_has_the_rows_of_its_table_in_order(warehouse: Warehouse, tmp_path: Path) -> None:
    list(pipeline.export(warehouse, [], tmp_path / "files"))
    every = (*DERIVED, *LANDING, *HISTORY)
    assert sorted(file.name for file in (tmp_path / "files").iterdir()) == sorted(f"{name}.parquet" for name in every)
    for name in every:
        read = pq.read_table(tmp_path / "files" / f"{name}.parquet")
        assert read.schema.equals(table_named(name).at_each_snapshot.schema)
        assert read.equals(
            pa.concat_tables(
                table.sorted_batches(warehouse, table.table_files(warehouse, table_named(name), last_run(warehouse)))
            )
        )
        assert len(read) == len(list(pipeline.rows(warehouse, name))) > 0
    with duckdb.connect() as connection:
        ((count,),) = connection.execute(
            "select count(*) from read_parquet(?)", [str(tmp_path / "files" / "findings.parquet")]
        ).fetchall()
    assert count == len(list(pipeline.rows(warehouse, "findings")))


@pytest.mark.slow
def test_a_table_too_large_for_memory_is_written_in_parts_of_a_cluster_and_day(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = pipeline.export(warehouse, ["findings"], tmp_path / "whole")
    monkeypatch.setattr(table, "AT_ONCE", 1)
    (parts,) = pipeline.export(warehouse, ["findings"], tmp_path / "parts")
    assert pq.read_table(parts.file).equals(pq.read_table(whole.file))


@pytest.mark.slow
def test_all_tables_are_of_the_run_that_was_the_newest_at_first(warehouse: Warehouse, tmp_path: Path) -> None:
    exported = pipeline.export(warehouse, ["findings", "drift", "judged"], tmp_path / "files")
    before = {name: len(list(pipeline.rows(warehouse, name))) for name in ("findings", "drift", "judged")}
    first = next(exported)
    store_all([small(taken_at=NOON + timedelta(hours=1), leader=2)], warehouse)
    plain_build.refresh(warehouse, POLICY)
    rows = {one.file.stem: one.rows for one in (first, *exported)}
    assert rows == before
    assert len(list(pipeline.rows(warehouse, "drift"))) > before["drift"]


@pytest.mark.slow
def test_a_file_that_is_there_already_is_left_alone(warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "findings.parquet").write_text("mine")
    with pytest.raises(UsageError, match=r"findings\.parquet: exists already; name a new folder with --out"):
        list(pipeline.export(warehouse, ["drift", "findings"], tmp_path))
    assert (tmp_path / "findings.parquet").read_text() == "mine"
    assert not (tmp_path / "drift.parquet").exists()
    with pytest.raises(UsageError, match=r"findings\.parquet: cannot be written: .* exists"):
        list(pipeline.export(warehouse, ["drift"], tmp_path / "findings.parquet"))


def test_a_query_that_is_no_table_is_named_where_it_stands() -> None:
    # What a notebook registers beside the tables.
    assert tuple(notebook._QUERIES) == VIEWS
    for name in VIEWS:
        with pytest.raises(
            UsageError, match=rf"^table '{name}': a query and no table; rackspan\.pipeline\.changes\.views\.{name} "
        ):
            table_named(name)
        assert callable(getattr(views, name))


def test_before_the_first_run_one_line_says_what_to_do(tmp_path: Path) -> None:
    warehouse = pipeline.create_warehouse(tmp_path / "new")
    with pytest.raises(InvalidWarehouse, match=r"has no table findings yet; run rackspan pipeline run"):
        list(pipeline.export(warehouse, ["findings"], tmp_path / "out"))
    with pytest.raises(UsageError, match=r"table 'nothing': there is none of that name"):
        list(pipeline.export(warehouse, ["nothing"], tmp_path / "out"))
    assert not (tmp_path / "out").exists()
