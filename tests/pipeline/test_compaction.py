"""Months that are over are one file each, and hold exactly the rows that days did."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, compaction, create_warehouse, incremental, rows, store
from rackspan.pipeline.manifest import read_manifest
from rackspan.pipeline.schemas import TABLES
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import small

POLICY = RackPolicy()
OCTOBER = datetime(2026, 10, 5, tzinfo=UTC)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def at(days: int, cluster_id: str = "one", hours: float = 0) -> ClusterSnapshot:
    taken_at = OCTOBER + timedelta(days=days, hours=hours)
    return small(cluster_id, taken_at, leader=1 + (days + round(hours)) % 3)


def kept(warehouse: Warehouse, snapshots: list[ClusterSnapshot]) -> list[ClusterSnapshot]:
    for one in snapshots:
        store(one, warehouse)
    incremental.refresh(warehouse, POLICY, plain_build.build, now=lambda: datetime.now(UTC), seconds=lambda: 0.0)
    return snapshots


def files(warehouse: Warehouse, month: str) -> dict[str, set[str]]:
    """The files in force for a month of each table."""
    return {
        name: {file for day, one in days.items() if day.day.startswith(month) for file in one.files}
        for name, days in read_manifest(warehouse).tables.items()
    }


def check(warehouse: Warehouse, snapshots: list[ClusterSnapshot]) -> None:
    """Every reader's way to the rows gives each of them once."""
    manifest = read_manifest(warehouse)
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, POLICY), table.grain)
        assert list(rows(warehouse, name)) == wanted
        assert list(rows(warehouse, name, limit=3)) == wanted[:3]
        of_table = {file for one in manifest.tables[name].values() for file in one.files}
        assert sum(pq.read_metadata(warehouse.tables / file).num_rows for file in of_table) == len(wanted)
        assert sum(one.rows for one in manifest.tables[name].values()) == len(wanted)


def test_a_month_that_is_over_is_one_file_and_the_latest_is_left_as_it_is(warehouse: Warehouse) -> None:
    snapshots = kept(warehouse, [at(day) for day in (0, 1, 2, 9, 30, 31)])
    october, november = files(warehouse, "2026-10"), files(warehouse, "2026-11")
    assert {len(of_table) for of_table in october.values()} == {1}
    assert all("month=2026-10" in file for of_table in october.values() for file in of_table)
    assert len(november["findings"]) == 4
    check(warehouse, snapshots)


def test_clusters_are_compacted_each_by_its_own_calendar(warehouse: Warehouse) -> None:
    snapshots = kept(warehouse, [at(0, "a"), at(1, "a"), at(40, "a"), at(0, "b"), at(1, "b")])
    assert sum("month=" in file for file in files(warehouse, "2026-10")["findings"]) == 1
    check(warehouse, snapshots)


def test_a_late_snapshot_makes_its_month_anew_and_no_other(warehouse: Warehouse) -> None:
    snapshots = kept(warehouse, [at(day) for day in (0, 1, 2, 30, 31, 61)])
    before = files(warehouse, "2026-11")
    snapshots += kept(warehouse, [at(1, hours=5)])
    assert all(len(of_table) == 1 for of_table in files(warehouse, "2026-10").values())
    assert files(warehouse, "2026-11") == before
    check(warehouse, snapshots)


def test_days_whose_snapshots_are_gone_are_copied_when_their_month_is_made_anew(warehouse: Warehouse) -> None:
    snapshots = kept(warehouse, [at(day) for day in (0, 1, 2, 40)])
    shutil.rmtree(warehouse.snapshots / "cluster_id=one" / "day=2026-10-05")
    snapshots += kept(warehouse, [at(2, hours=1)])
    check(warehouse, snapshots)


def test_a_day_that_came_to_have_no_rows_leaves_none_in_the_file_of_its_month(warehouse: Warehouse) -> None:
    same = [small("one", OCTOBER + timedelta(days=day), leader=2 if day == 1 else 1) for day in (0, 1, 2, 40)]
    kept(warehouse, same)
    shutil.rmtree(warehouse.snapshots / "cluster_id=one" / "day=2026-10-06")
    calm = small("one", OCTOBER + timedelta(days=1), leader=1)
    kept(warehouse, [calm])
    check(warehouse, [same[0], calm, *same[2:]])


def test_large_months_stay_as_they_are(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MONTH_BYTES_MAX", 10)
    snapshots = kept(warehouse, [at(day) for day in (0, 1, 40)])
    assert all("month=" not in file for of_table in files(warehouse, "2026-10").values() for file in of_table)
    check(warehouse, snapshots)


def test_what_was_compacted_is_not_touched_again(warehouse: Warehouse) -> None:
    kept(warehouse, [at(day) for day in (0, 1, 40)])
    before = files(warehouse, "2026-10")
    kept(warehouse, [at(41)])
    assert files(warehouse, "2026-10") == before
