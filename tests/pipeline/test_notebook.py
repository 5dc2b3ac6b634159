"""What engineers read with: every engine the same rows from the same path, and the examples of the how-to as they stand."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from operator import itemgetter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.audit.outage import STATES as HARM
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot, columns
from rackspan.pipeline import Warehouse, notebook, table
from rackspan.pipeline.changes import views
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import DERIVED, HISTORY, LANDING, TABLES, table_named
from rackspan.pipeline.spark import build, executors
from tests.depth import at_depth, one_in
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, generated, small
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.readings import history, store_readings

pytestmark = pytest.mark.slow

EVERY = (*DERIVED, *LANDING, *HISTORY)
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
    store_readings(warehouse, history(Random(1), 6, "read"))
    plain_build.refresh(warehouse, OTHER, prices=PRICES)
    for name in EVERY:
        files = table.table_files(warehouse, table_named(name), last_run(warehouse))
        stored = rows_of(pa.Table.from_batches(files.stored(files.table.schema), files.table.schema))
        assert stored, name
        with duckdb.connect() as connection:
            connection.register("stored", DeltaTable(warehouse.table(name)).to_pyarrow_dataset())
            assert rows_of(connection.sql("select * from stored").to_arrow_table()) == stored, name
        assert rows_of(pl.read_delta(warehouse.table(name)).to_arrow()) == stored, name


def test_a_filter_on_any_column_of_any_table_finds_its_rows(warehouse: Warehouse) -> None:
    """Files are chosen by their statistics (tests/pipeline/delta/test_table.py)."""
    store_readings(warehouse, history(Random(1), 6, "read"))
    plain_build.refresh(warehouse, OTHER, prices=PRICES)
    for name in EVERY:
        dataset = DeltaTable(warehouse.table(name)).to_pyarrow_dataset()
        every = dataset.to_table()
        for field in dataset.schema:
            if pa.types.is_nested(field.type):
                continue
            values = every[field.name].to_pylist()
            for value in (values[0], values[-1]):
                where = pc.field(field.name).is_null() if value is None else pc.field(field.name) == value
                found = dataset.count_rows(filter=where)
                assert found == sum(one == value for one in values), (name, field.name, value)


AS_CHANGES = [name for name, of in TABLES.items() if of.as_changes]


def shown(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows in no order, whatever they come from; times to the microsecond."""
    return sorted(json.dumps([plain(row[name]) for name in sorted(row)]) for row in rows)


def of_table(warehouse: Warehouse, name: str, at: datetime | None = None) -> list[str]:
    """What `pipeline table` prints."""
    return shown(rows_of_table(warehouse, name, at))


def rows_of_table(warehouse: Warehouse, name: str, at: datetime | None = None) -> list[dict[str, Any]]:
    files = table.table_files(warehouse, table_named(name), last_run(warehouse))
    parts = table.sorted_batches(warehouse, files) if at is None else table.as_of(warehouse, files, at)
    return [row for part in parts for row in part.to_pylist()]


@pytest.fixture
def connection(warehouse: Warehouse) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.sql("set timezone = 'UTC'")
        for name in (*AS_CHANGES, "judged"):
            opened.register(name, DeltaTable(warehouse.table(name)).to_pyarrow_dataset())
        yield opened


TIMES = (
    NOON - timedelta(days=9),
    NOON,
    NOON + timedelta(minutes=30),
    NOON + timedelta(hours=13),
    NOON + timedelta(days=9),
)


@pytest.mark.parametrize("name", one_in(2, AS_CHANGES))
def test_polars_shows_the_rows_at_each_snapshot_and_as_of_a_timestamp(warehouse: Warehouse, name: str) -> None:
    tables = {one: pl.scan_delta(warehouse.table(one)) for one in (name, "judged")}

    def run(query: str) -> list[str]:
        return shown(pl.SQLContext(tables, eager=True).execute(query).to_arrow().to_pylist())

    of = table_named(name)
    assert run(views.at_each_snapshot(of, views.POLARS, name)) == of_table(warehouse, name)
    assert {at: run(views.as_of(of, views.POLARS, name, at)) for at in TIMES} == {
        at: of_table(warehouse, name, at) for at in TIMES
    }


@pytest.mark.parametrize("name", one_in(2, AS_CHANGES))
def test_duckdb_shows_the_rows_at_each_snapshot_and_as_of_a_timestamp(
    warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    def run(query: str) -> list[str]:
        return shown(connection.sql(query).to_arrow_table().to_pylist())

    of = table_named(name)
    assert run(views.at_each_snapshot(of, views.DUCKDB, name)) == of_table(warehouse, name)
    found = {at: run(views.as_of(of, views.DUCKDB, name, at)) for at in TIMES}
    assert found == {at: of_table(warehouse, name, at) for at in TIMES}
    assert len({len(rows) for rows in found.values()}) > 1


def risk_and_survival(warehouse: Warehouse) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """By plain loops over the losses at the newest snapshot of each cluster."""
    losses = [
        row
        for row in rows_of_table(warehouse, "outage_impact")
        if row["taken_at"] == newest(warehouse)[row["cluster_id"]]
    ]
    risks: dict[tuple[str, str], dict[str, Any]] = {}
    survived: dict[str, dict[str, Any]] = {}
    for loss in losses:
        cluster = {"cluster_id": loss["cluster_id"], "taken_at": loss["taken_at"]}
        if loss["topic"] is None:
            of_cluster = survived.setdefault(loss["cluster_id"], {**cluster, "racks": 0, "racks_survived": 0})
            of_cluster["racks"] += bool(loss["lost_racks"])
            of_cluster["racks_survived"] += bool(loss["lost_racks"]) and loss["survived"]
            continue
        none = {**cluster, "topic": loss["topic"], "racks": 0, **dict.fromkeys(HARM, 0), "harmed_already": False}
        risk = risks.setdefault((loss["cluster_id"], loss["topic"]), none)
        risk["racks"] += bool(loss["lost_racks"])
        risk["harmed_already"] |= not loss["lost_racks"]
        risk.update({name: max(risk[name], loss[name]) for name in HARM})
    return list(risks.values()), list(survived.values())


def newest(warehouse: Warehouse) -> dict[str, datetime]:
    return {
        row["cluster_id"]: row["taken_at"]
        for row in sorted(rows_of_table(warehouse, "judged"), key=itemgetter("taken_at"))
    }


@pytest.fixture
def two_racks(warehouse: Warehouse) -> Warehouse:
    """Beside the others a cluster of three racks with a topic in two of them."""
    replicas = [[1, 2], [2, 1]]
    partitions = columns(topic=[0, 0], partition=[0, 1], leader=[1, 2], replicas=replicas, isr=replicas)
    store_all([replace(small(cluster_id="two racks"), partitions=partitions)], warehouse)
    plain_build.refresh(warehouse)
    return warehouse


@pytest.mark.parametrize("dialect", [views.DUCKDB, views.POLARS], ids=["DuckDB", "Polars"])
def test_findings_risks_and_survived_racks_are_those_of_each_newest_snapshot(
    two_racks: Warehouse, connection: duckdb.DuckDBPyConnection, dialect: views.Dialect
) -> None:
    warehouse = two_racks
    tables = {one: pl.scan_delta(warehouse.table(one)) for one in ("findings", "outage_impact", "judged")}

    def run(query: str) -> list[str]:
        if dialect is views.POLARS:
            return shown(pl.SQLContext(tables, eager=True).execute(query).to_arrow().to_pylist())
        return shown(connection.sql(query).to_arrow_table().to_pylist())

    last = newest(warehouse)
    findings = [row for row in rows_of_table(warehouse, "findings") if row["taken_at"] == last[row["cluster_id"]]]
    risks, survived = risk_and_survival(warehouse)
    assert run(views.current_findings(dialect)) == shown(findings)
    assert run(views.risk_by_topic(dialect)) == shown(risks)
    assert run(views.racks_survived(dialect)) == shown(survived)
    assert 0 < len(findings) < len(rows_of_table(warehouse, "findings"))
    assert {risk["harmed_already"] for risk in risks} == {True, False}
    assert [(one["racks"], one["racks_survived"]) for one in survived if one["cluster_id"] == "two racks"] == [(3, 1)]
    assert {cluster["cluster_id"] for cluster in survived} == set(last)


def test_seconds_in_each_state_are_those_between_snapshots_and_a_gap_is_unknown(tmp_path: Path) -> None:
    """Minutes 0, 1, 2, then 22: of the last gap three minutes are known."""
    made = pipeline.create_warehouse(tmp_path / "w")
    for minute, leader in ((0, 1), (1, -1), (2, 1), (22, 1)):
        store_all([small(taken_at=NOON + timedelta(minutes=minute), leader=leader)], made)
    plain_build.refresh(made)
    with duckdb.connect() as opened:
        for name in ("partition_durability", "judged"):
            opened.register(name, DeltaTable(made.table(name)).to_pyarrow_dataset())
        rows = opened.sql(views.durability_time(views.DUCKDB)).fetchall()
    tables = {name: pl.scan_delta(made.table(name)) for name in ("partition_durability", "judged")}
    of_polars = pl.SQLContext(tables, eager=True).execute(views.durability_time(views.POLARS))
    assert sorted(of_polars.rows()) == sorted(rows)
    assert sorted(row[2:] for row in rows if row[2] == 0) == [
        (0, "offline", 60.0),
        (0, "ok", 60.0 + 180.0),
        (0, "unknown", 17 * 60.0),
    ]
    assert sum(row[4] for row in rows if row[2] == 1) == 22 * 60.0


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.parametrize("name", one_in(len(AS_CHANGES), AS_CHANGES))
def test_spark_shows_the_rows_at_each_snapshot_and_as_of_a_timestamp(
    spark: SparkSession, warehouse: Warehouse, name: str
) -> None:
    def rows(**options: Any) -> list[str]:
        return shown(notebook.read(spark, warehouse, name, **options).toArrow().to_pylist())

    assert rows() == of_table(warehouse, name)
    assert rows(at=TIMES[1]) == of_table(warehouse, name, TIMES[1])
    assert notebook.read(spark, warehouse, name, changes=True).columns[:2] == ["cluster_id", "valid_from"]


class Statements:
    """A session that shows what it is given: SQL with the frames in it, and a stored table as its path and version."""

    def __init__(self, registered: str | None = None) -> None:
        """`registered` is where the table `snapshots` of the schema is, if it has one."""
        self.run: list[str] = []
        self.version: int | None = None
        self._registered = registered

    @property
    def read(self) -> "Statements":
        return Statements()

    def format(self, name: str) -> "Statements":
        assert name == "delta"
        return self

    def option(self, name: str, value: int) -> "Statements":
        assert name == "versionAsOf"
        assert value is not None, "Spark would read no version of that name"
        self.version = value
        return self

    def load(self, path: str) -> Any:
        return path, self.version

    def sql(self, query: str, **frames: Any) -> Any:
        if query.startswith(("SHOW TABLES", "DESCRIBE DETAIL")):
            found = [] if self._registered is None else [{"tableName": "snapshots", "location": self._registered}]
            return SimpleNamespace(collect=lambda: found)
        self.run.append(query)
        return query, frames


def stored_in_force(warehouse: Warehouse, name: str) -> tuple[str, int | None]:
    run = last_run(warehouse)
    assert run is not None
    return warehouse.spark_path(name), run.versions.get(name)


def test_a_table_is_read_at_the_version_of_the_newest_run(warehouse: Warehouse) -> None:
    spark: Any = Statements()
    read: Callable[..., Any] = notebook.read
    judged = stored_in_force(warehouse, "judged")
    for name in EVERY:
        of = table_named(name)
        frames = {"rows": stored_in_force(warehouse, name), "judged": judged}
        assert read(spark, warehouse, name, changes=True) == frames["rows"]
        if name not in AS_CHANGES:
            assert read(spark, warehouse, name) == frames["rows"]
            with pytest.raises(
                UsageError,
                match=f"^table {name}: has no rows as of a time; those that have are {', '.join(AS_CHANGES)}$",
            ):
                read(spark, warehouse, name, at=NOON)
            continue
        query = views.at_each_snapshot(of, views.SPARK, "{rows}", "{judged}")
        assert read(spark, warehouse, name) == (query, frames)
        query = views.as_of(of, views.SPARK, "{rows}", NOON, "{judged}")
        assert read(spark, warehouse, name, at=NOON) == (query, frames)
    found: Any = notebook.incidents(spark, warehouse)
    query, frames = found
    assert frames == {
        name: stored_in_force(warehouse, name) for name in ("drift", "outage_impact", "brokers", "snapshots", "judged")
    }
    assert query == views.with_names(views.incidents(views.SPARK, *(f"{{{name}}}" for name in frames)), None)


def test_what_a_run_made_is_registered_at_its_version_and_the_rest_by_its_path(warehouse: Warehouse) -> None:
    spark: Any = Statements()
    shutil.rmtree(warehouse.table("refusals"))
    names = notebook.register(spark, warehouse, "my `fleet")
    there = [name for name in EVERY if name != "refusals"]
    queries = {
        "current_findings": ("findings", "judged"),
        "risk_by_topic": ("outage_impact", "judged"),
        "racks_survived": ("outage_impact", "judged"),
        "incidents": ("drift", "outage_impact", "brokers", "snapshots", "judged"),
    }
    assert names == [f"my `fleet.{name}" for name in (*there, *queries)]
    first, *made = spark.run
    assert first == "CREATE SCHEMA IF NOT EXISTS `my ``fleet`"
    for name, statement in zip(there, made, strict=False):
        path, version = stored_in_force(warehouse, name)
        full = f"`my ``fleet`.`{name}`"
        assert statement == (
            f"CREATE TABLE IF NOT EXISTS {full} USING DELTA LOCATION '{path}'"
            if version is None
            else f"CREATE OR REPLACE VIEW {full} AS SELECT * FROM delta.`{path}` VERSION AS OF {version}"  # noqa: S608
        )
    assert made[len(there) :] == [
        f"CREATE OR REPLACE VIEW `my ``fleet`.{name} AS "
        + views.with_names(getattr(views, name)(views.SPARK, *(f"`my ``fleet`.`{part}`" for part in parts)), None)
        for name, parts in queries.items()
    ]


def test_a_schema_of_another_warehouse_is_refused_before_anything_is_registered_in_it(warehouse: Warehouse) -> None:
    """Its landing tables would stay those of the other one, beside views of this one."""
    spark: Any = Statements(registered="file:/elsewhere/tables/snapshots")
    with pytest.raises(
        UsageError, match=r"its table snapshots is that of file:/elsewhere/tables/snapshots, and not of /.*/w; "
    ):
        notebook.register(spark, warehouse)
    assert spark.run == ["CREATE SCHEMA IF NOT EXISTS `rackspan`"]
    again: Any = Statements(registered=f"file:{warehouse.table('snapshots')}")
    assert len(notebook.register(again, warehouse)) == len(EVERY) + 4


def test_before_a_run_what_is_collected_is_registered(tmp_path: Path) -> None:
    warehouse = pipeline.create_warehouse(tmp_path / "it's")
    store_all(snapshots_to_store()[:1], warehouse)
    spark: Any = Statements()
    assert notebook.register(spark, warehouse) == [f"rackspan.{name}" for name in LANDING]
    assert all("/it\\'s/tables/" in statement for statement in spark.run[1:])


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_for_other_engines_runs_as_it_stands(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = [one for one in examples() if "import duckdb" in one]
    monkeypatch.chdir(Path(warehouse.root).parent)
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102
    assert names["findings"].count_rows() == len(list(pipeline.rows(warehouse, "findings", changes=True)))
    assert "constraint" in capsys.readouterr().out


def test_the_example_for_the_version_in_force_shows_what_the_newest_run_left(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_run = len(list(pipeline.rows(warehouse, "findings", changes=True)))
    DeltaTable(warehouse.table("findings")).delete()
    (example,) = [one for one in examples() if "versions =" in one]
    monkeypatch.chdir(Path(warehouse.root).parent)
    names: dict[str, Any] = {"DeltaTable": DeltaTable, "polars": pl}
    exec(example, names)  # noqa: S102
    assert names["findings"].count_rows() == names["rows"].height == of_run > 0


def test_the_examples_for_changes_run_as_they_stand(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(warehouse.root).parent)
    names: dict[str, Any] = {"timestamp": NOON, "day": NOON.date()}
    (queries,) = [one for one in examples() if "durability_time" in one]
    exec(queries, names)  # noqa: S102
    (of_polars,) = [one for one in examples() if "scan_delta" in one]
    exec(of_polars, names)  # noqa: S102
    found = names["newest"].filter(~pl.col("gone").fill_null(False)).collect()
    of_day = [row for row in pipeline.rows(warehouse, "partition_durability") if row["day"] == str(NOON.date())]
    last = {
        row["cluster_id"]: row["taken_at"]
        for row in pipeline.rows(warehouse, "judged")
        if row["day"] == str(NOON.date())
    }
    assert found.height == sum(row["taken_at"] == last[row["cluster_id"]] for row in of_day) > 0
    assert f"shape: ({found.height}, " in capsys.readouterr().out


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A schema in the catalog, below the test's folder."""
    spark.sql(f"CREATE SCHEMA `fleet_1` LOCATION '{tmp_path}/catalog'")
    yield "fleet_1"
    spark.sql("DROP SCHEMA `fleet_1` CASCADE")


@pytest.mark.rest
@pytest.mark.spark
def test_the_example_for_a_notebook_runs_as_it_stands_and_every_table_is_a_dataframe(
    spark: SparkSession, warehouse: Warehouse, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = [one for one in examples() if "notebook" in one]
    monkeypatch.chdir(Path(warehouse.root).parent)
    ids = [row["snapshot_id"] for row in pipeline.rows(warehouse, "snapshots")]
    names: dict[str, Any] = {"spark": spark, "ids": ids, "policy": OTHER, "timestamp": NOON}
    exec(example.replace('"rackspan")', f'"{catalog}")'), names)  # noqa: S102
    for name in EVERY[:: at_depth(test=4, soak=1)]:
        shown = len(list(pipeline.rows(warehouse, name)))
        count = len(list(pipeline.rows(warehouse, name, changes=True)))
        assert notebook.read(spark, warehouse, name).count() == (count if name in LANDING else shown)
        assert spark.read.format("delta").load(warehouse.spark_path(name)).count() == count
        assert spark.table(f"`{catalog}`.{name}").count() == count
    assert names["lost"].columns[:2] == ["cluster_id", "taken_at"]


@pytest.mark.rest
@pytest.mark.spark
def test_a_registered_table_shows_the_version_that_the_newest_run_names(
    spark: SparkSession, warehouse: Warehouse, catalog: str
) -> None:
    """Not the newest one of its log, which a run at work has written, or one that was killed."""
    of_run = len(list(pipeline.rows(warehouse, "findings", changes=True)))
    DeltaTable(warehouse.table("findings")).delete()
    assert notebook.register(spark, warehouse, catalog)[-1] == f"{catalog}.incidents"
    assert spark.table(f"{catalog}.findings").count() == of_run > 0
    described = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE {catalog}.findings").collect()}
    assert described["severity"] == next(
        one.meaning for one in table_named("findings").columns if one.name == "severity"
    )
    # A later run: its version is shown once the tables are registered again.
    store_all([small(cluster_id="later")], warehouse)
    plain_build.refresh(warehouse)
    now = len(list(pipeline.rows(warehouse, "findings", changes=True)))
    assert spark.table(f"{catalog}.findings").count() == of_run < now
    notebook.register(spark, warehouse, catalog)
    assert spark.table(f"{catalog}.findings").count() == now
    for name in ("current_findings", "risk_by_topic", "racks_survived", "incidents"):
        assert spark.table(f"{catalog}.{name}").columns[:2] == ["cluster_id", "taken_at"]
    risks, survived = risk_and_survival(warehouse)
    for name, rows in (("risk_by_topic", risks), ("racks_survived", survived)):
        without_a_name = ({**row, "cluster": None} for row in rows)
        assert shown(row.asDict() for row in spark.table(f"{catalog}.{name}").collect()) == shown(without_a_name)
    other = pipeline.create_warehouse(Path(warehouse.root).with_name("other é"))
    with pytest.raises(UsageError, match=r"its table snapshots is that of file:/.*/w/tables/snapshots, and not of"):
        notebook.register(spark, other, catalog)
    shutil.rmtree(warehouse.root)
    with pytest.raises(UsageError, match=r"its table snapshots is that of .*, and not of"):
        notebook.register(spark, other, catalog)
    spark.sql(f"DROP SCHEMA {catalog} CASCADE")
    for _ in range(2):
        assert notebook.register(spark, other, catalog) == [f"{catalog}.{name}" for name in LANDING]


def test_what_judges_is_sent_to_the_executors_before_they_are_given_the_snapshots(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of changes the snapshot before the first of them too, which is only compared."""
    done: list[Any] = []
    monkeypatch.setattr(executors, "send_code", done.append)
    monkeypatch.setattr(build, "judged_frame", lambda *given: done.append(given))
    first, second = [row["snapshot_id"] for row in pipeline.rows(warehouse, "snapshots") if row["cluster_id"] == "one"]
    spark: Any = "the session"
    for wrong, ids, line in (
        ("runs", [second], "table 'runs': not one of judged snapshots; choose one of partition_durability, "),
        ("findings", [first, "gone"], f"{warehouse.root}: no snapshot gone; the table snapshots lists them"),
    ):
        with pytest.raises(UsageError, match=f"^{re.escape(line)}"):
            notebook.judge(spark, warehouse, wrong, ids)
    assert done == []
    for name, judged, places in (
        ("findings", [second], (0,)),
        ("drift", [first, second], (0, 1)),
        ("drift", [second], (1,)),
    ):
        done.clear()
        notebook.judge(spark, warehouse, name, judged, OTHER)
        sent, (given_spark, given_warehouse, work, policies, table) = done
        assert (sent, given_spark, given_warehouse) == (spark, spark, warehouse)
        assert (policies, table, work.run_id, work.whole) == (OTHER, TABLES[name], "", True)
        assert work.tables[name].new == places
        assert [work.snapshots[place].snapshot_id for place in places] == judged


@pytest.mark.spark
def test_a_table_of_some_snapshots_is_judged_under_another_policy_and_not_written(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    before = {name: DeltaTable(warehouse.table(name)).version() for name in EVERY}
    ids = [row["snapshot_id"] for row in pipeline.rows(warehouse, "snapshots") if row["cluster_id"] == "one"]
    for name, one in TABLES.items():
        judged = notebook.judge(spark, warehouse, name, ids, OTHER)
        wanted = expected.table(name, snapshots_to_store()[-2:], OTHER)
        assert judged.columns == one.at_each_snapshot.schema.names
        assert judged.count() == len(wanted) > 0
    assert {name: DeltaTable(warehouse.table(name)).version() for name in EVERY} == before
    with pytest.raises(
        UsageError, match=r"table 'runs': not one of judged snapshots; choose one of partition_durability"
    ):
        notebook.judge(spark, warehouse, "runs", ids)
    with pytest.raises(UsageError, match=r"no snapshot nothing; the table snapshots lists them"):
        notebook.judge(spark, warehouse, "findings", ["nothing"])
