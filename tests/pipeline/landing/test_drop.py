"""What giving up a damaged file says and leaves; with hours and runs, by the command that is printed, in test_check.py and hours/test_again.py."""

from datetime import timedelta
from pathlib import Path

import pytest

from rackspan.pipeline import create_warehouse, rows
from rackspan.pipeline.landing.drop import drop_damaged
from rackspan.pipeline.landing.store import store_all
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
