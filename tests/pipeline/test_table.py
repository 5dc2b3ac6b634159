"""The rows of a table as `pipeline table` has them: which are shown, in which order, as which values."""

from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rackspan.errors import UsageError
from rackspan.pipeline import Warehouse, create_warehouse, rows, table
from rackspan.pipeline.changes import views
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import CONTENT, HISTORY, LANDING, OF_READINGS, TABLES, table_named
from rackspan.pipeline.table import in_order, why_no_rows
from tests.pipeline import plain_build
from tests.pipeline.examples import NOON, small
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.readings import history, store_readings


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = create_warehouse(tmp_path / "warehouse")
    store_all([small(cluster, NOON + timedelta(hours=20 * n), 1 + n) for n in range(3) for cluster in ("a", "b")], made)
    store_readings(made, history(Random(1), 3, "read"))
    return made


def ids_in(warehouse: Warehouse, name: str, **options: Any) -> set[str]:
    return {row["snapshot_id"] for row in rows(warehouse, name, **options)}


@pytest.mark.slow
def test_rows_without_a_marker_are_shown_in_no_landing_table(warehouse: Warehouse) -> None:
    """They belong to a collect that was killed, or that is at work."""
    markers = list(rows(warehouse, "snapshots"))
    gone = {row["snapshot_id"] for row in markers if row["taken_at"] == max(one["taken_at"] for one in markers)}
    newest_reading = max(ids_in(warehouse, "readings"))
    before = {name: ids_in(warehouse, name, changes=True) for name in LANDING}
    gone.add(newest_reading)
    named = ", ".join(f"'{identity}'" for identity in sorted(gone))
    DeltaTable(warehouse.table("snapshots")).delete(f"snapshot_id in ({named})")
    for name in LANDING:
        assert before[name] & gone, name
        assert ids_in(warehouse, name, changes=True) == before[name] - gone, name
    assert not ids_in(warehouse, "partitions") & gone
    assert {*CONTENT} <= {*LANDING.values()}
    assert {*OF_READINGS} <= {*LANDING}


@pytest.mark.slow
def test_a_table_that_does_not_fit_is_read_a_cluster_and_day_at_a_time_to_the_same_rows(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_build.refresh(warehouse)
    names = (*TABLES, *LANDING, *HISTORY, "traffic")
    whole = {name: list(rows(warehouse, name)) for name in names if name != "runs"}
    monkeypatch.setattr(table, "AT_ONCE", 1)
    monkeypatch.setattr(table, "JOINED_ROWS", 3)
    for name, wanted in whole.items():
        assert list(rows(warehouse, name)) == wanted != [], name
    for name in ("findings", "traffic"):
        files = table.table_files(warehouse, table_named(name), last_run(warehouse))
        assert len(list(table.sorted_batches(warehouse, files))) > 1, name
    assert list(rows(warehouse, "findings", limit=2)) == whole["findings"][:2]


@pytest.mark.slow
def test_values_are_those_of_json(warehouse: Warehouse) -> None:
    plain_build.refresh(warehouse)
    [run] = rows(warehouse, "runs")
    assert run["versions"].keys() > TABLES.keys()
    assert isinstance(run["rows"]["findings"], int)
    assert run["quarantined"] == {}
    assert run["started_at"].endswith("Z")
    first = next(iter(rows(warehouse, "outage_impact")))
    assert (first["day"], first["taken_at"], first["lost_racks"]) == ("2026-11-20", "2026-11-20T12:00:00Z", [])


@pytest.mark.slow
def test_rows_as_of_a_time_are_those_of_the_last_snapshot_of_each_cluster(warehouse: Warehouse) -> None:
    plain_build.refresh(warehouse)
    found = list(rows(warehouse, "partition_durability", at=NOON + timedelta(hours=21)))
    assert {(row["cluster_id"], row["taken_at"]) for row in found if row["cluster_id"] != "read"} == {
        ("a", "2026-11-21T08:00:00Z"),
        ("b", "2026-11-21T08:00:00Z"),
    }
    assert list(rows(warehouse, "partition_durability", at=NOON - timedelta(days=1))) == []
    with pytest.raises(UsageError, match=r"^table drift: has no rows as of a time; those that have are partition_dura"):
        list(rows(warehouse, "drift", at=NOON))


def test_rows_are_sorted_with_nulls_first_and_lists_by_their_items() -> None:
    shuffled = [["a1"], ["a"], ["b"], [], ["a", "b"], [""]]
    read = pa.table({"name": ["x"] * 5 + [None], "list": pa.array(shuffled, pa.list_(pa.string()))})
    assert in_order(read, ("name", "list")).to_pylist() == [
        {"name": None, "list": [""]},
        *({"name": "x", "list": value} for value in ([], ["a"], ["a", "b"], ["a1"], ["b"])),
    ]


@pytest.mark.slow
def test_a_time_without_a_zone_is_refused_as_the_rows_at_it_would_be_others_on_each_machine(
    warehouse: Warehouse,
) -> None:
    naive = NOON.replace(tzinfo=None)
    with pytest.raises(UsageError, match=r"^at 2026-11-20 12:00:00: has no time zone, .*tzinfo=UTC\)$"):
        list(rows(warehouse, "topics", at=naive))
    for dialect in (views.SPARK, views.DUCKDB, views.POLARS):
        with pytest.raises(UsageError, match=r"^at 2026-11-20 12:00:00: has no time zone"):
            views.as_of(TABLES["findings"], dialect, "findings", naive)


@pytest.mark.slow
def test_a_table_without_rows_says_why(tmp_path: Path) -> None:
    made = create_warehouse(tmp_path / "warehouse")

    def reasons(*names: str) -> list[str]:
        plain_build.refresh(made)
        assert not any(list(rows(made, name)) for name in names)
        return [why_no_rows(made, name) for name in names]

    store_all([small("a", NOON, 1)], made)
    no_reading = "no reading is stored yet: rackspan pipeline collect --traffic-every SECONDS takes them"
    assert reasons("readings", "traffic", "groups", "bill", "advice") == [no_reading] * 5
    no_hour = "no hour has ended yet: an hour has rows once a snapshot after it is judged"
    assert reasons("durability_time", "refusals") == [no_hour] * 2
    assert reasons("drift") == ["no cluster has two snapshots yet"]
    store_all([small("a", NOON + timedelta(minutes=number), 1) for number in (20, 40, 59)], made)
    assert reasons("durability_time", "drift") == [no_hour, "no rows of 4 snapshots"]
    first, second = history(Random(3), 2, "read")
    store_readings(made, [first])
    no_pair = "no cluster has two readings yet: what passed between them is known from the second on"
    assert reasons("traffic", "bill") == [no_pair] * 2
    store_readings(made, [second])
    assert reasons("bill") == ["the last run had no prices: rackspan pipeline run --prices FILE makes the bill"]
    plain_build.refresh(made, prices=PRICES)
    assert list(rows(made, "bill"))


@pytest.mark.slow
def test_a_table_without_rows_as_of_a_time_says_whether_a_snapshot_is_known_then(tmp_path: Path) -> None:
    made = create_warehouse(tmp_path / "warehouse")
    store_all([small("a", NOON, 1)], made)
    plain_build.refresh(made)
    before = why_no_rows(made, "findings", NOON - timedelta(hours=1))
    assert before == "no cluster has a snapshot at that time, or near enough before it"
    assert why_no_rows(made, "findings", NOON + timedelta(minutes=1)) == "no rows at that time"
