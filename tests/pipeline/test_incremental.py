"""Everything a run does around Spark, with a build that needs none (plain_build.py)."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.model import ClusterSnapshot, Topic, TopicName
from rackspan.pipeline import RunReport, Warehouse, create_warehouse, incremental, rows, store
from rackspan.pipeline.incremental import Build, Work
from rackspan.pipeline.manifest import read_manifest
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.warehouse import Day
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, generated, small

POLICY = RackPolicy()
STRICT = RackPolicy(min_insync_racks=2)
DAY = timedelta(days=1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def refresh(warehouse: Warehouse, policy: RackPolicy = POLICY, build: Build = plain_build.build) -> RunReport:
    ticks = count()
    return incremental.refresh(warehouse, policy, build, now=lambda: datetime.now(UTC), seconds=lambda: next(ticks))


def inodes(warehouse: Warehouse) -> dict[str, tuple[int, int]]:
    """Every data file there is: which one it is and when it was written."""
    files = [file for file in warehouse.tables.rglob("*") if file.is_file()]
    return {str(file): (file.stat().st_ino, file.stat().st_mtime_ns) for file in files}


def days(report: RunReport) -> set[str]:
    return {day.day for _table, day in report.written}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_holds_every_snapshot_once_sorted_by_the_grain(warehouse: Warehouse, name: str) -> None:
    snapshots = generated(40)
    for snapshot in snapshots:
        store(snapshot, warehouse)
    report = refresh(warehouse, STRICT)
    wanted = expected.ordered(expected.table(name, snapshots, STRICT), TABLES[name].grain)
    assert list(rows(warehouse, name)) == wanted
    assert sum(one.rows for (table, _day), one in report.written.items() if table == name) == len(wanted)
    assert list(rows(warehouse, name, limit=7)) == wanted[:7]


def test_a_second_run_finds_nothing_to_do_and_touches_nothing(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    first = refresh(warehouse)
    before = inodes(warehouse)
    second = refresh(warehouse)
    assert (second.run, second.written, set(second.skipped)) == (None, {}, set(first.written))
    assert inodes(warehouse) == before


def test_only_the_days_with_new_snapshots_are_made_anew(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    store(small(taken_at=NOON + DAY), warehouse)
    refresh(warehouse)
    before = inodes(warehouse)
    store(small(taken_at=NOON + DAY + timedelta(hours=1)), warehouse)
    assert days(refresh(warehouse)) == {"2026-11-21"}
    untouched = {file: rows_read for file, rows_read in before.items() if "day=2026-11-20" in file}
    assert len(untouched) == 2 * len(TABLES) - 2, "two files a table, and nothing has changed before the first snapshot"
    assert untouched.items() <= inodes(warehouse).items()
    assert len(list(rows(warehouse, "partition_durability"))) == 6


def test_a_snapshot_that_comes_late_is_put_in_its_place(warehouse: Warehouse) -> None:
    for hours in (2, 26, 1):
        store(small(taken_at=NOON + timedelta(hours=hours)), warehouse)
        refresh(warehouse)
    timestamps = [row["taken_at"] for row in rows(warehouse, "partition_durability")]
    assert timestamps == sorted(timestamps)
    assert len(timestamps) == 6


def test_another_policy_makes_every_day_anew(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    assert days(refresh(warehouse, STRICT)) == {"2026-11-20"}
    assert {row["min_insync_racks"] for row in rows(warehouse, "partition_durability")} == {2}


def test_another_version_of_rackspan_judges_anew(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    monkeypatch.setattr("rackspan.__version__", "99.0.0")
    assert days(refresh(warehouse)) == {"2026-11-20"}


def test_a_data_file_that_somebody_removed_is_made_anew(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    next((warehouse.tables / "findings").rglob("*.parquet")).unlink()
    with pytest.raises(InvalidWarehouse, match=r"is gone"):
        list(rows(warehouse, "findings"))
    assert {table for table, _day in refresh(warehouse).written} == {"findings"}
    assert list(rows(warehouse, "findings"))


def test_days_whose_snapshots_are_gone_keep_their_rows(warehouse: Warehouse) -> None:
    folder = store(small(), warehouse).path
    refresh(warehouse)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    refresh(warehouse)
    assert len(list(rows(warehouse, "partition_durability"))) == 2


def test_what_was_in_force_one_run_ago_is_kept_for_its_readers_and_then_removed(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    generations = []
    for racks in (1, 2, 3):
        refresh(warehouse, RackPolicy(min_insync_racks=racks))
        generations.append(read_manifest(warehouse).files())
    there = {file.relative_to(warehouse.tables).as_posix() for file in warehouse.tables.rglob("*.parquet")}
    assert there == generations[1] | generations[2]


def test_a_build_that_fails_changes_nothing(warehouse: Warehouse) -> None:
    def broken(work: Mapping[str, list[Work]], policy: RackPolicy, staging: Path) -> None:
        plain_build.build(work, policy, staging)
        raise InvalidWarehouse("Spark stopped")

    store(small(), warehouse)
    refresh(warehouse)
    before = inodes(warehouse)
    with pytest.raises(InvalidWarehouse, match="Spark stopped"):
        refresh(warehouse, STRICT, broken)
    assert inodes(warehouse) == before
    assert [entry for entry in warehouse.staging.iterdir() if entry.is_dir()] == []


def test_files_of_others_below_the_tables_are_neither_read_nor_removed(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    day = warehouse.tables / "findings" / "cluster_id=one" / "day=2026-11-20"
    strangers = [day / "mine.parquet", warehouse.tables / "notes.txt"]
    for stranger in strangers:
        stranger.write_text("no parquet at all")
    refresh(warehouse, STRICT)
    assert list(rows(warehouse, "findings"))
    assert all(stranger.exists() for stranger in strangers)


def test_an_empty_warehouse_has_nothing_to_do(warehouse: Warehouse) -> None:
    assert refresh(warehouse).run is None
    with pytest.raises(InvalidWarehouse, match=r"has no table findings yet; run rackspan pipeline run"):
        rows(warehouse, "findings")


def test_a_cluster_without_topics_makes_days_without_rows(warehouse: Warehouse) -> None:
    [empty] = [one for one in generated(1) if not len(one.partitions)]
    store(empty, warehouse)
    assert refresh(warehouse).written
    assert list(rows(warehouse, "partition_durability")) == []
    assert refresh(warehouse).run is None


def rewrite_manifest(warehouse: Warehouse, **changes: object) -> None:
    file = warehouse.tables / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.mark.parametrize("version", [3, "1", None, 0, True])
def test_a_manifest_of_another_version_is_refused_and_kept(warehouse: Warehouse, version: object) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    rewrite_manifest(warehouse, version=version)
    before = inodes(warehouse)
    for act in (lambda: refresh(warehouse, STRICT), lambda: rows(warehouse, "findings")):
        with pytest.raises(InvalidWarehouse, match=rf"version is {version}, but this rackspan reads up to version 2"):
            act()
    assert inodes(warehouse) == before


def as_version_1(warehouse: Warehouse) -> None:
    """What a rackspan without drift and outage_impact wrote."""
    file = warehouse.tables / "manifest.json"
    document = json.loads(file.read_text())
    for table in ("drift", "outage_impact"):
        shutil.rmtree(warehouse.tables / table, ignore_errors=True)
        del document["tables"][table]
    for days in document["tables"].values():
        for day in days:
            del day["previous"]
    file.write_text(json.dumps({**document, "version": 1}))


def test_a_warehouse_of_manifest_version_1_is_read_and_gets_the_new_tables_alone(warehouse: Warehouse) -> None:
    for snapshot in (small(), small(leader=2, taken_at=NOON + DAY)):
        store(snapshot, warehouse)
    refresh(warehouse)
    now = {name: list(rows(warehouse, name)) for name in TABLES}
    as_version_1(warehouse)
    kept = inodes(warehouse)
    assert list(rows(warehouse, "findings")) == now["findings"]
    with pytest.raises(InvalidWarehouse, match=r"has no table drift yet; run rackspan pipeline run"):
        rows(warehouse, "drift")
    assert {table for table, _day in refresh(warehouse).written} == {"drift", "outage_impact"}
    assert {name: list(rows(warehouse, name)) for name in TABLES} == now
    assert {file for file in kept if file.endswith(".parquet")} <= set(inodes(warehouse))
    assert json.loads((warehouse.tables / "manifest.json").read_text())["version"] == 2


def drift(warehouse: Warehouse) -> list[tuple[str, str]]:
    return [(row["taken_at"][:13], row["change"]) for row in rows(warehouse, "drift")]


def at(hours: float, leader: int) -> ClusterSnapshot:
    return small(leader=leader, taken_at=NOON + timedelta(hours=hours))


def test_a_day_is_compared_with_the_last_snapshot_before_it_however_long_ago(warehouse: Warehouse) -> None:
    for snapshot in (at(0, 1), at(24 * 9, 2)):
        store(snapshot, warehouse)
        refresh(warehouse)
    [row] = rows(warehouse, "drift")
    assert (row["change"], row["before"], row["after"]) == ("leader-moved", "1", "2")
    assert row["previous_taken_at"] == "2026-11-20T12:00:00Z"


def test_a_late_snapshot_makes_anew_its_day_and_the_one_that_now_follows_it(warehouse: Warehouse) -> None:
    for hours in (0, 2, 24, 48):
        store(at(hours, 1), warehouse)
    refresh(warehouse)
    before = inodes(warehouse)
    store(at(1, 2), warehouse)
    assert {day.day for table, day in refresh(warehouse).written if table == "drift"} == {"2026-11-20"}
    assert drift(warehouse) == [("2026-11-20T13", "leader-moved"), ("2026-11-20T14", "leader-moved")]
    store(at(3, 3), warehouse)
    report = refresh(warehouse)
    assert {day.day for table, day in report.written if table == "drift"} == {"2026-11-20", "2026-11-21"}
    assert {day.day for table, day in report.written if table != "drift"} == {"2026-11-20"}
    assert drift(warehouse)[2:] == [("2026-11-20T15", "leader-moved"), ("2026-11-21T12", "leader-moved")]
    last = {file: rows_read for file, rows_read in before.items() if "day=2026-11-22" in file}
    assert last
    assert last.items() <= inodes(warehouse).items()


def test_a_duplicate_makes_nothing_anew(warehouse: Warehouse) -> None:
    for snapshot in (at(0, 1), at(1, 2)):
        store(snapshot, warehouse)
    refresh(warehouse)
    assert not store(at(0, 1), warehouse).new
    assert refresh(warehouse).run is None


def test_drift_stays_after_its_snapshot_is_deleted(warehouse: Warehouse) -> None:
    folders = [store(snapshot, warehouse).path for snapshot in (at(0, 1), at(24, 2), at(48, 1))]
    refresh(warehouse)
    rows_read = drift(warehouse)
    assert len(rows_read) == 2
    for folder in folders[:2]:
        shutil.rmtree(folder)
        assert refresh(warehouse).run is None
        assert drift(warehouse) == rows_read


def test_a_snapshot_taken_again_with_the_same_timestamp_is_compared_with_anew(warehouse: Warehouse) -> None:
    folder = store(at(0, 1), warehouse).path
    store(at(24, 2), warehouse)
    refresh(warehouse)
    shutil.rmtree(folder)
    store(replace(small(), topics=(Topic(TopicName("other")),)), warehouse)
    report = refresh(warehouse)
    assert ("drift", Day("one", "2026-11-21")) in report.written
    assert "topic-deleted" in {change for _taken_at, change in drift(warehouse)}


def test_clusters_of_one_warehouse_are_not_compared_with_each_other(warehouse: Warehouse) -> None:
    for number, cluster_id in enumerate(("a", "b", "c")):
        store(small(cluster_id, NOON + number * DAY, leader=1 + number % 2), warehouse)
    refresh(warehouse)
    assert drift(warehouse) == []
    store(small("b", NOON + 2 * DAY, leader=1), warehouse)
    written = refresh(warehouse).written
    assert {day.cluster_id for _table, day in written} == {"b"}
    assert [row["cluster_id"] for row in rows(warehouse, "drift")] == ["b"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "run": "x", "tables": [], "retired": []}']
)
def test_a_damaged_manifest_is_reported_in_one_line(warehouse: Warehouse, text: str) -> None:
    warehouse.tables.mkdir()
    (warehouse.tables / "manifest.json").write_text(text)
    with pytest.raises(InvalidWarehouse, match=r"manifest.json: .*run again$"):
        refresh(warehouse)


def test_a_table_of_another_schema_version_is_not_read_as_this_one(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    text = (warehouse.tables / "manifest.json").read_text()
    (warehouse.tables / "manifest.json").write_text(text.replace('"schema_version": 1', '"schema_version": 7'))
    with pytest.raises(
        InvalidWarehouse, match=r"findings of 2026-11-20 has schema version 7, but this rackspan reads 1; use"
    ):
        rows(warehouse, "findings")


def test_days_of_an_older_schema_version_are_made_anew_or_refused_where_their_snapshots_are_gone(
    warehouse: Warehouse,
) -> None:
    folder = store(small(), warehouse).path
    store(small(taken_at=NOON + DAY), warehouse)
    refresh(warehouse)
    text = (warehouse.tables / "manifest.json").read_text()
    # The inputs name the version too, so a day of another version has other inputs.
    text = text.replace('"schema_version": 1', '"schema_version": 0').replace('"inputs": "', '"inputs": "older ')
    (warehouse.tables / "manifest.json").write_text(text)
    with pytest.raises(InvalidWarehouse, match=r"has schema version 0, .* reads 1; run rackspan pipeline run"):
        rows(warehouse, "findings")
    shutil.rmtree(folder.parent)
    assert days(refresh(warehouse)) == {"2026-11-21"}
    with pytest.raises(
        InvalidWarehouse, match=r"findings of 2026-11-20 .* reads 1; the snapshots of one are gone, so put them back"
    ):
        rows(warehouse, "findings")
    store(small(), warehouse)
    refresh(warehouse)
    assert len(list(rows(warehouse, "partition_durability"))) == 4


def test_a_data_file_that_is_no_parquet_is_named(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    file = next((warehouse.tables / "findings").rglob("*.parquet"))
    os.truncate(file, 10)
    with pytest.raises(InvalidWarehouse, match=rf"{file.name}: cannot be read: .*; remove it"):
        list(rows(warehouse, "findings"))
