"""The tables of hours of a warehouse: equal to the rows of all readings at once, whatever order they come in."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.check import check as check_warehouse
from rackspan.pipeline.delta.table import open_table
from rackspan.pipeline.hours.rows import hour_rows
from rackspan.pipeline.hours.work import HOUR, hour_of
from rackspan.pipeline.incremental import RunReport
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import DERIVED, HISTORY, HOURLY, LANDING, Table
from rackspan.pipeline.schemas.hours import OF_STATES
from rackspan.pipeline.table import in_order
from rackspan.pipeline.warehouse import FilesRead, Warehouse, existing_table
from rackspan.traffic import ClusterReading, PriceFile
from tests.depth import at_depth
from tests.pipeline import plain_build
from tests.pipeline.examples import NOON, zeros_in_column
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.readings import history, moved, store_readings

pytestmark = pytest.mark.slow

NOT_COMPARED = ("run_id", "hour_id", "day", "schema_version")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return pipeline.create_warehouse(tmp_path / "warehouse")


def refresh(warehouse: Warehouse, prices: PriceFile | None = PRICES, **options: Any) -> RunReport:
    return plain_build.refresh(warehouse, RackPolicy(), prices=prices, **options)


def stored_rows(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row.items() if key not in NOT_COMPARED} for row in pipeline.rows(warehouse, name)
    ]


def expected_rows(readings: list[ClusterReading], prices: PriceFile | None = PRICES) -> dict[str, list[dict[str, Any]]]:
    """Of each table the rows of the pure functions, over all readings of each cluster in order of time."""
    by_cluster: dict[str, dict[datetime, ClusterReading]] = {}
    for reading in readings:
        assert reading.snapshot.cluster_id is not None
        by_cluster.setdefault(reading.snapshot.cluster_id, {})[reading.read_at] = reading
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in HOURLY}
    for cluster_id, of_cluster in by_cluster.items():
        ordered = [reading for _, reading in sorted(of_cluster.items())]
        hours, hour = [], hour_of(ordered[0].read_at)
        while hour <= ordered[-1].read_at:
            hours.append(hour)
            hour += HOUR
        for name, row in hour_rows(ordered, hours, prices):
            rows[name].append({"cluster_id": cluster_id, **row})
    return {name: typed_rows(HOURLY[name], of_table) for name, of_table in rows.items()}


def typed_rows(table: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As they are read: in order, and in the types of their columns."""
    schema = pa.schema([field for field in table.schema if field.name not in NOT_COMPARED])
    typed = in_order(pa.Table.from_pylist(rows, schema), table.grain).to_pylist()
    return [{key: printed(value) for key, value in row.items()} for row in typed]


def printed(value: Any) -> Any:
    from rackspan.pipeline.table import _json_value

    return _json_value(value)


def check(warehouse: Warehouse, readings: list[ClusterReading], prices: PriceFile | None = PRICES) -> None:
    expected = expected_rows(readings, prices)
    for name in HOURLY.keys() - OF_STATES:
        assert stored_rows(warehouse, name) == expected[name], name


@pytest.mark.parametrize("seed", range(at_depth(test=1, soak=400)))
def test_rows_are_those_of_all_readings_whatever_order_they_come_in(tmp_path: Path, seed: int) -> None:
    """Late, doubled, by two collectors, of two clusters; runs in between, of all snapshots or of a batch of the stream."""
    rng = Random(seed)
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    readings = [*history(rng, rng.randint(3, 9)), *history(rng, rng.randint(2, 4), "two", period=1200)]
    if rng.random() < 0.5:
        readings.sort(key=lambda one: one.read_at)
    bases, left = [Bases(), Bases()], list(readings)
    ids: list[str] = []
    while left:
        some = [
            left.pop(rng.randrange(len(left)) if rng.random() < 0.3 else 0)
            for _ in range(min(len(left), rng.randint(1, 4)))
        ]
        if rng.random() < 0.2:
            some += some[:1]
        ids += [identity for identity in store_readings(warehouse, some, rng.choice(bases)) if identity]
        if rng.random() < 0.7:
            refresh(warehouse, only=ids if rng.random() < 0.5 else None)
            ids = []
        if rng.random() < 0.1:
            store_readings(warehouse, readings[:1])
    refresh(warehouse)
    check(warehouse, readings)
    at_once = pipeline.create_warehouse(tmp_path / "at once")
    store_readings(at_once, readings)
    refresh(at_once)
    for name in HOURLY:
        assert stored_rows(warehouse, name) == stored_rows(at_once, name), name
    assert refresh(warehouse).run is None


def test_a_late_reading_makes_the_hours_around_it_again_and_no_others(warehouse: Warehouse) -> None:
    readings = history(Random(7), 14)
    late = readings.pop(7)
    store_readings(warehouse, readings)
    refresh(warehouse)
    before = {row["hour_id"]: row["run_id"] for row in pipeline.rows(warehouse, "traffic")}
    store_readings(warehouse, [late])
    report = refresh(warehouse)
    check(warehouse, [*readings, late])
    made = {row["hour"] for row in pipeline.rows(warehouse, "traffic") if row["run_id"] == report.run}
    first, last = hour_of(readings[6].read_at), hour_of(readings[7].read_at)
    assert made
    assert all(first <= datetime.fromisoformat(hour) <= last for hour in made)
    assert any(row["run_id"] in before.values() for row in pipeline.rows(warehouse, "traffic"))


def test_other_prices_make_every_hour_of_the_bill_again_and_none_leave_it_empty(warehouse: Warehouse) -> None:
    readings = history(Random(3), 6)
    store_readings(warehouse, readings)
    refresh(warehouse, None)
    assert stored_rows(warehouse, "bill") == []
    refresh(warehouse)
    check(warehouse, readings)
    assert refresh(warehouse).run is None
    run = last_run(warehouse)
    assert run is not None
    assert run.prices is not None
    refresh(warehouse, None)
    check(warehouse, readings, None)


def test_a_rebuild_of_a_table_of_hours_makes_its_lost_rows_again(warehouse: Warehouse) -> None:
    readings = history(Random(4), 6)
    store_readings(warehouse, readings)
    refresh(warehouse)
    folder = warehouse.table_folder("traffic")
    assert folder is not None
    for file in folder.rglob("*.parquet"):
        file.write_bytes(b"")
    with pytest.raises(InvalidWarehouse):
        stored_rows(warehouse, "traffic")
    refresh(warehouse, rebuild={"traffic"})
    check(warehouse, readings)


def test_a_rebuild_without_prices_makes_the_bill_by_those_of_the_newest_run(warehouse: Warehouse) -> None:
    readings = history(Random(4), 6)
    store_readings(warehouse, readings)
    refresh(warehouse)
    before = stored_rows(warehouse, "bill")
    assert before
    assert refresh(warehouse, None, rebuild={"bill"}).run is not None
    assert stored_rows(warehouse, "bill") == before
    assert refresh(warehouse).run is None, "the same prices are no others"


@pytest.mark.parametrize("column", [None, "end_offset"])
def test_a_damaged_reading_is_left_out_and_named_and_made_up_for_when_it_is_whole(
    warehouse: Warehouse, column: str | None
) -> None:
    """Also where only the rows that hours are made of show it, and not the ids."""
    readings = history(Random(5), 5)
    for reading in readings:
        store_readings(warehouse, [reading])
    refresh(warehouse)
    folder = warehouse.table_folder("logs")
    assert folder is not None
    file = sorted(folder.rglob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)[-1]
    content = file.read_bytes()
    if column is None:
        file.write_bytes(b"PAR1")
    else:
        zeros_in_column(file, column)
    later = moved(readings[-1], 60)
    store_readings(warehouse, [later])
    report = refresh(warehouse)
    assert len(report.quarantined) == 1
    check(warehouse, [*readings[:-1], later])
    file.write_bytes(content)
    assert refresh(warehouse).quarantined == {}
    check(warehouse, [*readings, later])


def test_compaction_and_retention_keep_the_rows_of_the_days_that_are_kept(warehouse: Warehouse) -> None:
    readings = [*history(Random(6), 4), *(moved(one, 86_400) for one in history(Random(6), 4))]
    for reading in readings:
        store_readings(warehouse, [reading])
        refresh(warehouse)
    before = stored_rows(warehouse, "traffic")
    files = len(existing_table(warehouse, "traffic").file_uris())
    maintain(warehouse, now=lambda: NOON)
    assert stored_rows(warehouse, "traffic") == before
    assert len(existing_table(warehouse, "traffic").file_uris()) < files
    maintain(warehouse, now=lambda: readings[-1].read_at + timedelta(days=1), keep_days=1)
    assert {row["hour"][:10] for row in stored_rows(warehouse, "traffic")} == {str(readings[-1].read_at.date())}
    markers = read_markers(warehouse)
    assert {one.day for one in markers.of_days(markers.count_by_day())} == {readings[-1].read_at.date()}


def test_hours_are_the_same_however_many_tasks_and_parts_they_are_made_in(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = [reading for cluster_id in "ab" for reading in history(Random(2), 4, cluster_id)]
    store_readings(warehouse, readings)
    monkeypatch.setattr("rackspan.pipeline.hours.work.TASK_PARTITIONS", 1)
    monkeypatch.setattr("rackspan.pipeline.hours.task.OBJECTS_MAX", 2)
    refresh(warehouse)
    check(warehouse, readings)
    days = {reading.read_at.date() for reading in readings}
    assert len(existing_table(warehouse, "traffic").file_uris()) == 2 * len(days)


def test_other_engines_read_the_tables(warehouse: Warehouse) -> None:
    import duckdb
    import polars

    readings = history(Random(8), 8)
    store_readings(warehouse, readings)
    refresh(warehouse)
    rows = stored_rows(warehouse, "traffic")
    run = last_run(warehouse)
    assert run is not None
    delta = DeltaTable(warehouse.table("traffic"), version=run.versions["traffic"])
    dataset = delta.to_pyarrow_dataset()  # noqa: F841 - DuckDB reads it by its name
    with duckdb.connect() as connection:
        by_path = connection.execute("select path, sum(bytes) from dataset group by path order by path").fetchall()
    wanted = {path: sum(row["bytes"] or 0 for row in rows if row["path"] == path) for path, _ in by_path}
    assert {path: int(size or 0) for path, size in by_path} == wanted
    frame = polars.from_arrow(delta.to_pyarrow_table())
    assert isinstance(frame, polars.DataFrame)
    assert frame["bytes"].sum() == sum(row["bytes"] or 0 for row in rows)


def test_a_run_opens_each_table_once_and_so_does_the_next(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an object store each costs requests, one after the other. By the next run a table may have been replaced."""
    opened = Counter[str]()

    def counted(url: str, version: int | None = None) -> DeltaTable | None:
        opened[url.rsplit("/", 1)[-1]] += 1
        return open_table(url, version)

    readings, kept = history(Random(9), 6), replace(warehouse, read=FilesRead())
    store_readings(warehouse, readings[:3])
    refresh(kept)
    store_readings(warehouse, readings[3:])
    for module in ("delta.table", "warehouse", "runs", "check"):
        monkeypatch.setattr(f"rackspan.pipeline.{module}.open_table", counted)
    assert refresh(kept).run is not None
    assert opened == dict.fromkeys((*LANDING, *DERIVED, *HISTORY), 1)
    opened.clear()
    refresh(kept)
    assert opened == dict.fromkeys(("snapshots", *DERIVED, *HISTORY), 1)
    opened.clear()
    maintain(warehouse, now=lambda: NOON)
    # The newest row of `runs` is read before and behind the work.
    assert opened == {**dict.fromkeys((*LANDING, *DERIVED, *HISTORY), 1), "runs": 3}
    opened.clear()
    assert check_warehouse(warehouse, now=readings[-1].read_at, whole=True).problems == ()
    # Once with its log, once for its rows.
    assert max(opened.values()) == 2
