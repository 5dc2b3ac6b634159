"""From snapshots in a warehouse to the page, through the pipeline's own tables."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import Warehouse, create_warehouse, draw_report, store
from rackspan.pipeline.report.from_warehouse import latest_snapshots, report_data
from rackspan.pipeline.runs import last_run
from rackspan.report import render, write_report
from tests.pipeline import plain_build
from tests.pipeline.report.test_summaries import to_the_microsecond
from tests.report import story
from tests.report.story import report_by_hand

pytestmark = pytest.mark.slow

SHOP = story.shop_history(14)
ODD_NAME = [replace(story.safe_cluster(), cluster_id="eu/west [a] 100%*")]
EMPTY = [story.empty_cluster("new")]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    made = create_warehouse(tmp_path_factory.mktemp("warehouse"))
    for one in [*SHOP, *ODD_NAME, *EMPTY]:
        store(one, made)
    plain_build.refresh(made, story.POLICY)
    return made


def test_the_report_on_a_warehouse_is_that_worked_out_by_hand(warehouse: Warehouse, tmp_path: Path) -> None:
    data = to_the_microsecond(report_data(warehouse, story.POLICY)[1])
    write_report(data, tmp_path / "report.html")
    expected = to_the_microsecond(report_by_hand(SHOP, ODD_NAME, EMPTY))
    for mine, theirs in zip(data.clusters, expected.clusters, strict=True):
        for field in theirs.__slots__:
            assert getattr(mine, field) == getattr(theirs, field), (theirs.cluster_id, field)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(expected)


def test_a_snapshot_collected_since_the_last_run_waits_for_the_next(warehouse: Warehouse) -> None:
    late = replace(SHOP[-1], taken_at=story.NOON + timedelta(days=50))
    store(late, warehouse)
    run = last_run(warehouse)
    assert run is not None
    latest = {cluster: one.taken_at for cluster, one in latest_snapshots(warehouse, run).items()}
    assert latest == {str(SHOP[-1].cluster_id): SHOP[-1].taken_at, "eu/west [a] 100%*": story.NOON, "new": story.NOON}


@pytest.mark.parametrize("table", ["partitions", "snapshots"])
def test_a_newest_snapshot_that_is_damaged_is_left_out_and_named(tmp_path: Path, table: str) -> None:
    whole = create_warehouse(tmp_path / "warehouse")
    for one in (story.safe_cluster("calm"), story.safe_cluster("other", story.NOON + timedelta(minutes=1))):
        store(one, whole)
    plain_build.refresh(whole, story.POLICY)
    file = min(Path(whole.table(table)).rglob("part-*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    file.write_bytes(file.read_bytes()[:50])
    lines: list[str] = []
    _, data = report_data(whole, story.POLICY, left_out=lines.append)
    assert [cluster.cluster_id for cluster in data.clusters] == ["other"]
    [line] = lines
    assert file.name in line
    assert line.endswith(
        f"; the newest snapshot is left out; rackspan pipeline check --warehouse {whole.root} shows what to do"
    )


def test_a_report_on_a_warehouse_without_tables_names_the_command_that_makes_them(tmp_path: Path) -> None:
    fresh = create_warehouse(tmp_path / "fresh")
    store(SHOP[0], fresh)
    with pytest.raises(InvalidWarehouse, match="has no table partition_durability yet; run rackspan pipeline run"):
        draw_report(fresh, story.POLICY, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
