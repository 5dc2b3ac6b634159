"""The names of clusters in a warehouse: which is the last, when a row is written, and warehouses without the table."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rackspan.errors import InvalidWarehouse
from rackspan.model.snapshot import ReadSnapshot
from rackspan.pipeline import Warehouse, collect, create_warehouse, rows
from rackspan.pipeline.changes import views
from rackspan.pipeline.landing.names import StoredNames, cluster_names, has_names, shown_names
from rackspan.sources.source import ClusterName, Source
from tests.pipeline.examples import NOON, small

EU, US = ClusterName("Production", "eu"), ClusterName("Production, US", "us")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def hour(number: int) -> datetime:
    return NOON + timedelta(hours=number)


def stored(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows(warehouse, "clusters")]


def test_a_row_is_written_whenever_a_cluster_gets_another_name(warehouse: Warehouse) -> None:
    names = StoredNames()
    for number, name in enumerate((EU, EU, US, US, EU)):
        names.store(warehouse, {"id": (name, hour(number))})
    assert stored(warehouse) == [
        ("id", "2026-11-20T12:00:00Z", "Production", "eu"),
        ("id", "2026-11-20T14:00:00Z", "Production, US", "us"),
        ("id", "2026-11-20T16:00:00Z", "Production", "eu"),
    ]
    assert cluster_names(warehouse) == {"id": EU}


def test_another_collector_does_not_store_a_name_again(warehouse: Warehouse) -> None:
    for number in range(2):
        StoredNames().store(warehouse, {"id": (EU, hour(number))})
    assert len(stored(warehouse)) == 1


def test_collectors_that_store_the_same_at_once_store_it_once(warehouse: Warehouse) -> None:
    one, other = StoredNames(), StoredNames()
    for names in (one, other):
        names.store(warehouse, {"first": (US, hour(0))})
    for names in (one, other):
        names.store(warehouse, {"id": (EU, hour(1))})
    assert [row[0] for row in stored(warehouse)].count("id") <= 2
    assert cluster_names(warehouse) == {"first": US, "id": EU}


def test_clusters_of_one_name_are_shown_with_their_ids(warehouse: Warehouse) -> None:
    """Such as one that was made anew at the same address."""
    StoredNames().store(warehouse, {"old": (EU, hour(0)), "new": (EU, hour(1)), "us": (US, hour(1))})
    assert shown_names(warehouse) == {"old": "Production (old)", "new": "Production (new)", "us": "Production, US"}


def test_a_warehouse_of_an_earlier_release_has_no_names(warehouse: Warehouse) -> None:
    assert not has_names(warehouse)
    assert (cluster_names(warehouse), shown_names(warehouse), list(rows(warehouse, "clusters"))) == ({}, {}, [])


def named_source(named: ClusterName | None, cluster_id: str, taken_at: datetime) -> Source:
    return Source(
        named.name if named else "address", lambda: ReadSnapshot(small(cluster_id, taken_at), ()), None, named
    )


def test_collect_stores_the_names_of_clusters_that_have_one(warehouse: Warehouse) -> None:
    sources = [named_source(EU, "id", hour(0)), named_source(None, "other", hour(0))]
    assert [collected.error for collected in collect(sources, warehouse)] == [None, None]
    assert cluster_names(warehouse) == {"id": EU}


def test_two_clusters_of_one_name_keep_their_own_keys(warehouse: Warehouse) -> None:
    sources = [named_source(ClusterName("Same", key), f"id-{key}", hour(0)) for key in ("b", "a")]
    list(collect(sources, warehouse))
    assert cluster_names(warehouse) == {f"id-{key}": ClusterName("Same", key) for key in ("a", "b")}


def damaged(warehouse: Warehouse) -> Path:
    StoredNames().store(warehouse, {"id": (EU, hour(0))})
    folder = Path(warehouse.root) / "tables" / "clusters"
    for entry in (folder / "_delta_log").glob("*.json"):
        entry.write_text("torn")
    return folder


def test_snapshots_are_stored_although_the_names_cannot_be_read(warehouse: Warehouse) -> None:
    folder = damaged(warehouse)
    with pytest.raises(InvalidWarehouse):
        cluster_names(warehouse)
    kept, about_names = collect([named_source(EU, "id", hour(1))], warehouse)
    assert kept.stored is not None
    [line] = about_names.warnings
    assert line.endswith(f"remove {folder}: the next rackspan pipeline collect stores the names again")
    shutil.rmtree(folder)
    list(collect([named_source(EU, "id", hour(2))], warehouse))
    assert cluster_names(warehouse) == {"id": EU}


def test_check_names_a_late_cluster_and_how_to_collect_it(warehouse: Warehouse) -> None:
    from rackspan.pipeline.check import check

    list(collect([named_source(EU, "id", hour(0)), named_source(None, "other", hour(0))], warehouse))
    report = check(warehouse, now=hour(2), max_age=timedelta(hours=1))
    late = [problem for problem in report.problems if problem.cluster is not None]
    assert [(problem.name, problem.problem, problem.remedy) for problem in late] == [
        (
            "Production",
            "no snapshot for 120 minutes",
            f"rackspan pipeline collect --cluster eu --warehouse {warehouse.root}; see why its collector stopped, and start it again",
        ),
        (None, "no snapshot for 120 minutes", "see why its collector stopped, and start it again"),
    ]
    assert [cluster.name for cluster in report.clusters] == ["Production", None]
    folder = damaged(warehouse)
    [problem] = check(warehouse, now=hour(2)).problems
    assert (problem.table, str(folder) in problem.remedy) == ("clusters", True)
    shutil.rmtree(folder)
    assert check(warehouse, now=hour(2)).problems == ()


def test_rows_of_a_query_get_the_last_name_of_their_cluster() -> None:
    """In an engine of others; a warehouse without names gives null."""
    database = duckdb.connect()
    database.execute("create table clusters (cluster_id text, since timestamp, name text, cluster text)")
    database.execute("insert into clusters values ('a', '2026-01-02', 'New', 'n'), ('a', '2026-01-01', 'Old', 'o')")
    query = "with q as (select unnest(['a', 'b']) as cluster_id) select cluster_id, 1 as racks from q"
    found = database.execute(f"{views.with_names(query)} order by q.cluster_id").fetchall()
    assert found == [("a", 1, "New"), ("b", 1, None)]
    found = database.execute(f"{views.with_names(query, None)} order by q.cluster_id").fetchall()
    assert found == [("a", 1, None), ("b", 1, None)]
