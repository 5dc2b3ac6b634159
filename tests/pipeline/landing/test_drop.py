"""What giving up a damaged file says and leaves; with hours and runs, by the command that is printed, in test_check.py and hours/test_again.py."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.pipeline import Warehouse, create_warehouse, rows
from rackspan.pipeline.landing.drop import drop_damaged, undo_drop, what_goes
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.schemas import LANDING
from tests.pipeline.examples import NOON, small


@pytest.mark.slow
def test_only_the_table_with_a_damaged_file_and_the_snapshots_in_it_are_named(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    for day in (0, 1):
        store_all([small(taken_at=NOON + timedelta(days=day))], warehouse)
    assert drop_damaged(warehouse) == []
    kept, lost = [row["snapshot_id"] for row in rows(warehouse, "snapshots")]
    [file] = Path(warehouse.table("partitions"), "day=2026-11-21").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:20])
    cluster = small().cluster_id
    assert drop_damaged(warehouse) == [
        "partitions: 1 damaged file dropped",
        f"snapshot {lost} of {cluster} was not whole, and is dropped",
    ]
    assert [row["snapshot_id"] for row in rows(warehouse, "snapshots")] == [kept]
    assert drop_damaged(warehouse) == []


def content(warehouse: Warehouse) -> Mapping[str, list[str]]:
    """What readers see of each landing table."""
    return {name: [str(row) for row in rows(warehouse, name)] for name in LANDING}


def ids(warehouse: Warehouse) -> set[str]:
    return {row["snapshot_id"] for row in rows(warehouse, "snapshots")}


@pytest.fixture
def three_days(tmp_path: Path) -> Warehouse:
    """Two snapshots of each of three days, which share a file of each table."""
    warehouse = create_warehouse(tmp_path / "warehouse")
    for day in range(3):
        store_all([small(taken_at=NOON + timedelta(days=day, hours=hour)) for hour in range(2)], warehouse)
    return warehouse


def file_of(warehouse: Warehouse, table: str, day: str) -> Path:
    [file] = Path(warehouse.table(table), f"day={day}").glob("*.parquet")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("table", ["partitions", "brokers", "snapshots"])
def test_what_was_dropped_is_back_once_its_file_is_copied_back(three_days: Warehouse, table: str) -> None:
    before, known = content(three_days), ids(three_days)
    file = file_of(three_days, table, "2026-11-21")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    maintain(three_days, now=lambda: datetime.now(UTC), give_up=lambda _line: None)
    later = small(taken_at=NOON + timedelta(days=1, hours=5))
    store_all([later], three_days)
    file.write_bytes(whole)
    maintain(three_days, now=lambda: datetime.now(UTC), undo=lambda _line: None)
    # As if nothing had been dropped, and with what was stored since then.
    after = content(three_days)
    [since] = ids(three_days) - known
    assert {name: [line for line in lines if since not in line] for name, lines in after.items()} == before
    assert len(after["partitions"]) == len(before["partitions"]) + len(later.partitions)
    assert undo_drop(three_days) == (["nothing that --drop-damaged has dropped can be brought back"], [])
    assert content(three_days) == after


@pytest.mark.slow
def test_a_snapshot_whose_file_is_still_damaged_does_not_come_back(three_days: Warehouse) -> None:
    file = file_of(three_days, "topics", "2026-11-21")
    file.write_bytes(file.read_bytes()[:-20])
    assert what_goes(three_days)[0] == f"topics: day=2026-11-21/{file.name} is damaged: 2 rows"
    named = {line.split()[1] for line in what_goes(three_days)[1:]}
    lost = {identity for identity in ids(three_days) if identity.startswith("20261121")}
    assert named == lost
    drop_damaged(three_days)
    left = content(three_days)
    _, not_back = undo_drop(three_days)
    assert {line.split()[1] for line in not_back} == lost
    assert content(three_days) == left


@pytest.mark.slow
def test_nothing_is_dropped_without_consent(three_days: Warehouse) -> None:
    file = file_of(three_days, "topics", "2026-11-21")
    damaged = file.read_bytes()[:-20]
    file.write_bytes(damaged)
    root = Path(three_days.root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def refuse() -> None:
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        maintain(three_days, now=lambda: NOON, give_up=lambda _line: None, agree=refuse)
    after = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert {path for path in after if path.name != ".lock"} == {path for path in before if path.name != ".lock"}
