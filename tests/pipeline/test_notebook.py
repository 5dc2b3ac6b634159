"""What engineers read with: every engine the same rows from the same path, and the examples of the how-to as they stand."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, notebook, table
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import HISTORY, LANDING, TABLES, table_named
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, generated, small

pytestmark = pytest.mark.slow

EVERY = (*TABLES, *LANDING, *HISTORY)
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "pipeline.md"
OTHER = RackPolicy(min_insync_racks=2)


@cache
def snapshots_to_store() -> list[ClusterSnapshot]:
    return [*generated(12), *(small(taken_at=NOON + timedelta(hours=n), leader=1 + n) for n in range(2))]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = pipeline.create_warehouse(tmp_path / "w")
    store_all(snapshots_to_store(), made)
    plain_build.refresh(made)
    return made


def plain(value: Any) -> Any:
    """A value as every engine has it: times in UTC, and maps, which Polars lacks, as lists of pairs."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return [plain(one) for one in value.values()]
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def rows_of(read: pa.Table) -> list[str]:
    return sorted(json.dumps([plain(row[name]) for name in sorted(row)]) for row in read.to_pylist())


def test_duckdb_and_polars_read_the_rows_of_every_table_from_its_path(warehouse: Warehouse) -> None:
    for name in EVERY:
        opened = table.table_in_force(warehouse, table_named(name))
        wanted = rows_of(
            pa.concat_tables(table.sorted_batches(warehouse, table.table_files(warehouse, table_named(name), opened)))
        )
        assert wanted, name
        with duckdb.connect() as connection:
            connection.register("stored", DeltaTable(warehouse.table(name)).to_pyarrow_dataset())
            assert rows_of(connection.sql("select * from stored").to_arrow_table()) == wanted, name
        assert rows_of(pl.read_delta(warehouse.table(name)).to_arrow()) == wanted, name


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_for_other_engines_runs_as_it_stands(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = [one for one in examples() if "duckdb" in one]
    monkeypatch.chdir(Path(warehouse.root).parent)
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102
    assert names["findings"].count_rows() == len(expected.table("findings", snapshots_to_store(), RackPolicy()))
    assert "constraint" in capsys.readouterr().out


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A schema in the catalog, below the test's folder."""
    spark.sql(f"CREATE SCHEMA `fleet_1` LOCATION '{tmp_path}/catalog'")
    yield "fleet_1"
    spark.sql("DROP SCHEMA `fleet_1` CASCADE")


@pytest.mark.spark
def test_the_example_for_a_notebook_runs_as_it_stands_and_every_table_is_a_dataframe(
    spark: SparkSession, warehouse: Warehouse, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = [one for one in examples() if "notebook" in one]
    monkeypatch.chdir(Path(warehouse.root).parent)
    ids = [row["snapshot_id"] for row in pipeline.rows(warehouse, "snapshots")]
    names: dict[str, Any] = {"spark": spark, "ids": ids, "policy": OTHER}
    exec(example.replace('"rackspan")', f'"{catalog}")'), names)  # noqa: S102
    for name in EVERY:
        count = len(list(pipeline.rows(warehouse, name)))
        assert notebook.read(spark, warehouse, name).count() == count
        assert spark.read.format("delta").load(warehouse.spark_path(name)).count() == count
        assert spark.table(f"`{catalog}`.{name}").count() == count


@pytest.mark.spark
def test_a_table_of_some_snapshots_is_judged_under_another_policy_and_not_written(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    before = {name: DeltaTable(warehouse.table(name)).version() for name in EVERY}
    ids = [row["snapshot_id"] for row in pipeline.rows(warehouse, "snapshots") if row["cluster_id"] == "one"]
    for name, one in TABLES.items():
        judged = notebook.judge(spark, warehouse, name, ids, OTHER)
        wanted = expected.table(name, snapshots_to_store()[-2:], OTHER)
        assert judged.columns == one.schema.names
        assert judged.count() == len(wanted) > 0
    assert {name: DeltaTable(warehouse.table(name)).version() for name in EVERY} == before
    with pytest.raises(UsageError, match=r"table 'runs': not one that is derived; choose one of partition_durability"):
        notebook.judge(spark, warehouse, "runs", ids)
    with pytest.raises(UsageError, match=r"no snapshot nothing; the table snapshots lists them"):
        notebook.judge(spark, warehouse, "findings", ["nothing"])
