"""A run over a long backlog, which is judged in parts from the earliest snapshot on."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, create_warehouse, incremental, rows, store
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import TABLES
from rackspan.text import utc_text
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, small
from tests.pipeline.plain_build import refresh

pytestmark = pytest.mark.slow


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def at(hours: float, leader: int = 1, cluster_id: str = "one") -> ClusterSnapshot:
    return small(cluster_id, NOON + timedelta(hours=hours), leader)


def check(warehouse: Warehouse, snapshots: list[ClusterSnapshot]) -> None:
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, RackPolicy()), table.grain)
        assert expected.judged_columns(rows(warehouse, name)) == wanted, name


def in_parts(warehouse: Warehouse, partitions_max: int) -> Iterator[incremental.RunReport]:
    """The parts of a run."""
    build, ticks, left = plain_build.PlainBuild(plain_build.build_for(warehouse), warehouse), count(), 1
    while left:
        part = incremental.refresh(
            warehouse, RackPolicy(), build, now=lambda: NOON, seconds=lambda: next(ticks), partitions_max=partitions_max
        )
        left = part.left
        yield part


@pytest.mark.parametrize(("partitions_max", "runs_made"), [(1, 6), (4, 3), (12, 1)])
def test_a_backlog_is_judged_in_parts_from_the_earliest_on(
    warehouse: Warehouse, partitions_max: int, runs_made: int
) -> None:
    """Snapshots of two partitions each, of two clusters; every part is in force before the next one begins."""
    snapshots = [at(n, 1 + n % 3, cluster) for n in range(3) for cluster in ("a", "b")]
    store_all(snapshots, warehouse)
    reports: list[incremental.RunReport] = []
    for part in in_parts(warehouse, partitions_max):
        reports.append(part)
        done = sum(report.snapshots for report in reports)
        hours = [row["taken_at"] for row in rows(warehouse, "judged")]
        assert sorted(hours) == sorted(utc_text(one.taken_at) for one in snapshots[:done] if one.taken_at)
        assert (part.up_to_date, part.left) == (done - part.snapshots, len(snapshots) - done)
    assert len(reports) == runs_made
    check(warehouse, snapshots)
    whole = reports[0]
    for following in reports[1:]:
        whole = whole.with_next(following)
    assert (whole.snapshots, whole.up_to_date, whole.left) == (6, 0, 0)
    # Of each cluster both partitions, then twice the one whose leader changes.
    assert whole.rows["partition_durability"] == 2 * (2 + 1 + 1)


def test_a_snapshot_that_was_quarantined_is_judged_once_in_a_run_of_parts(warehouse: Warehouse, tmp_path: Path) -> None:
    first, last = at(0), at(50)
    store(first, warehouse)
    before = set(DeltaTable(warehouse.table("partitions")).file_uris())
    store(last, warehouse)
    (damaged,) = (Path(path) for path in {*DeltaTable(warehouse.table("partitions")).file_uris()} - before)
    away = shutil.move(damaged, tmp_path / "away")
    assert len(refresh(warehouse).quarantined) == 1
    shutil.move(away, damaged)
    between = [at(25), at(26, leader=2)]
    store_all(between, warehouse)
    assert [part.snapshots for part in in_parts(warehouse, 1)] == [1, 1, 1]
    check(warehouse, [first, *between, last])


def test_between_two_parts_a_judged_snapshot_differs_from_the_last_one_that_has_rows(warehouse: Warehouse) -> None:
    """Rows are true until the next of their key, so readers in SQL would take those of a late part for the later snapshot's."""
    early, late = at(0), at(3)
    store_all([early, late], warehouse)
    refresh(warehouse)
    store_all([at(1, leader=2), at(2)], warehouse)
    bases = []
    for _ in in_parts(warehouse, 1):
        judged = {row["taken_at"][11:13]: row for row in rows(warehouse, "judged")}
        named = {row["snapshot_id"]: hour for hour, row in judged.items()}
        bases.append({hour: named.get(row["base_id"]) for hour, row in sorted(judged.items())})
    assert bases == [{"12": None, "13": "12", "15": "13"}, {"12": None, "13": "12", "14": "13", "15": "14"}]
