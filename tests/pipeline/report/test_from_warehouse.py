"""From snapshots in a warehouse to the page, through the pipeline's own tables."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import Warehouse, create_warehouse, draw_report, run, store
from rackspan.pipeline.manifest import read_manifest
from rackspan.pipeline.report import render, write_report
from rackspan.pipeline.report.from_warehouse import latest_known, report_data
from rackspan.pipeline.warehouse import stored_snapshots
from tests.pipeline.report import story
from tests.pipeline.report.story import report_by_hand
from tests.pipeline.report.test_summaries import to_the_microsecond

pytestmark = [pytest.mark.java, pytest.mark.spark]

SHOP = story.shop_history(14)
ODD_NAME = [replace(story.safe_cluster(), cluster_id="eu/west [a] 100%*")]
EMPTY = [story.empty_cluster("new")]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Warehouse:
    made = create_warehouse(tmp_path_factory.mktemp("warehouse"))
    for one in [*SHOP, *ODD_NAME, *EMPTY]:
        store(one, made)
    run(made, story.POLICY)
    return made


def test_the_report_on_a_warehouse_is_that_worked_out_by_hand(warehouse: Warehouse, tmp_path: Path) -> None:
    data = to_the_microsecond(report_data(warehouse, story.POLICY))
    write_report(data, tmp_path / "report.html")
    expected = to_the_microsecond(report_by_hand(SHOP, ODD_NAME, EMPTY))
    for mine, theirs in zip(data.clusters, expected.clusters, strict=True):
        for field in theirs.__slots__:
            assert getattr(mine, field) == getattr(theirs, field), (theirs.cluster_id, field)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(expected)


def test_a_snapshot_collected_since_the_last_run_waits_for_the_next(warehouse: Warehouse) -> None:
    late = replace(SHOP[-1], taken_at=story.NOON + timedelta(minutes=50))
    stored = store(late, warehouse)
    try:
        manifest = read_manifest(warehouse)
        shop = str(SHOP[-1].cluster_id)
        latest = {
            one.day.cluster_id: one.taken_at
            for one in latest_known(warehouse, manifest, story.POLICY, {shop: SHOP[-1].taken_at or story.NOON})
        }
        assert latest == {shop: SHOP[-1].taken_at, "eu/west [a] 100%*": story.NOON, "new": story.NOON}
    finally:
        for file in stored.path.iterdir():
            file.unlink()
        stored.path.rmdir()


def test_tables_of_another_policy_still_say_which_snapshots_they_know(warehouse: Warehouse) -> None:
    latest = latest_known(warehouse, read_manifest(warehouse), RackPolicy(min_insync_racks=2), {"new": story.NOON})
    assert [one.day.cluster_id for one in latest] == ["new"]


def test_a_report_on_a_warehouse_without_tables_names_the_command_that_makes_them(tmp_path: Path, spark: Any) -> None:
    fresh = create_warehouse(tmp_path / "fresh")
    store(SHOP[0], fresh)
    assert stored_snapshots(fresh)
    with pytest.raises(InvalidWarehouse, match="has no table partition_durability yet; run rackspan pipeline run"):
        draw_report(fresh, story.POLICY, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
