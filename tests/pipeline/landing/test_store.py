"""Snapshots in the landing tables: complete, once, and readable by every engine."""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.model import BrokerId, ClusterSnapshot, Controller
from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, rows, store
from rackspan.pipeline.delta.append import ConcurrentTransactionError, append
from rackspan.pipeline.landing import store as landing
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.read import ids_with_rows, read_registrations, read_snapshot
from rackspan.pipeline.landing.rows import NewSnapshot, landing_rows, members_hash, snapshot_id
from rackspan.pipeline.landing.store import SnapshotLocation, store_all
from rackspan.pipeline.schemas import LANDING
from rackspan.pipeline.warehouse import existing_table
from tests.pipeline.examples import NOON, as_stored, generated, kept, recorded, small
from tests.pipeline.readings import reading_of


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse {a,b} [1] *")


def test_whether_a_table_has_rows_of_a_snapshot_is_read_from_the_files_that_may_have_them(warehouse: Warehouse) -> None:
    """Here the file of another day is gone."""
    store(small(), warehouse)
    [gone] = Path(warehouse.table("partitions")).rglob("*.parquet")
    late = store(small(taken_at=NOON + timedelta(days=1)), warehouse)
    gone.unlink()
    opened = existing_table(warehouse, "partitions")
    assert ids_with_rows(opened, [late.snapshot_id]) == {late.snapshot_id}


def in_order(snapshots: list[ClusterSnapshot]) -> list[ClusterSnapshot]:
    return sorted(snapshots, key=lambda one: (str(one.cluster_id), one.taken_at or NOON))


@pytest.mark.slow
def test_a_stored_snapshot_is_the_one_given(warehouse: Warehouse) -> None:
    snapshots = [*generated(30), *recorded()]
    assert all(isinstance(one, landing.SnapshotLocation) and one.new for one in store_all(snapshots, warehouse))
    assert len(kept(warehouse)) == len(as_stored(warehouse, snapshots)) == len(snapshots)


def with_controllers(*alive: bool | None) -> ClusterSnapshot:
    controllers = tuple(Controller(BrokerId(100 + number), alive=known) for number, known in enumerate(alive))
    return replace(small(), controllers=controllers)


@pytest.mark.parametrize("alive", [(None, None, None), (True, False, None), ()])
def test_whether_controllers_are_alive_is_stored_where_it_is_known(
    warehouse: Warehouse, alive: tuple[bool | None, ...]
) -> None:
    snapshot = with_controllers(*alive)
    store(snapshot, warehouse)
    markers = read_markers(warehouse)
    (stored,) = markers.of_days(markers.count_by_day())
    assert read_snapshot(warehouse, stored).same_as(snapshot)
    ((_, controllers),) = read_registrations(warehouse, [stored]).values()
    assert controllers == snapshot.controllers
    (row,) = rows(warehouse, "snapshots")
    assert (row["controllers_alive"] is None) is (set(alive) <= {None})


def test_controllers_that_differ_in_being_alive_only_are_other_members_and_unknown_ones_the_same_as_ever() -> None:
    dead, unknown = with_controllers(False, True, True), with_controllers(None, None, None)
    assert members_hash(dead) != members_hash(unknown)
    assert (members_hash(unknown), snapshot_id(unknown)) == ("af9b9de959e5beef", "20261120T1200000000005ffc0ef979")


@pytest.mark.slow
def test_a_warehouse_without_the_column_is_read_and_gets_it_with_the_next_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LANDING["snapshots"]
    first = with_controllers(None, None)
    old = replace(whole, columns=tuple(column for column in whole.columns if column.name != "controllers_alive"))
    with monkeypatch.context() as patch:
        patch.setitem(LANDING, "snapshots", old)
        warehouse = create_warehouse(tmp_path / "old")
    for name, found in landing_rows([NewSnapshot(first)]).items():
        append(
            existing_table(warehouse, name),
            found.drop_columns(["controllers_alive"] if name == "snapshots" else []),
            {},
        )
    assert "controllers_alive" not in existing_table(warehouse, "snapshots").schema().to_arrow().names
    store(replace(with_controllers(True, False), cluster_id="two"), create_warehouse(warehouse.root))
    assert [row["controllers_alive"] for row in rows(warehouse, "snapshots")] == [None, [True, False]]
    ((_, controllers), _) = read_registrations(warehouse, read_markers(warehouse).at([NOON])).values()
    assert controllers == first.controllers


@pytest.mark.slow
def test_any_number_of_snapshots_is_one_commit_to_each_table(warehouse: Warehouse) -> None:
    snapshots = generated(10)
    store_all(snapshots, warehouse, readings=dict(enumerate(map(reading_of, snapshots))))
    assert {name: DeltaTable(warehouse.table(name)).version() for name in LANDING} == dict.fromkeys(LANDING, 1)


def test_no_table_has_a_feature_that_another_engine_may_not_know(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    for name in LANDING:
        protocol = DeltaTable(warehouse.table(name)).protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_storing_it_again_commits_nothing(warehouse: Warehouse) -> None:
    first = store(small(), warehouse)
    again = store(small(), warehouse)
    assert (again.snapshot_id, first.new, again.new) == (first.snapshot_id, True, False)
    assert DeltaTable(warehouse.table("partitions")).version() == 1


@pytest.mark.slow
def test_another_snapshot_with_the_same_timestamp_is_refused_and_the_first_one_kept(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    with pytest.raises(InvalidSnapshot, match=r"another snapshot of this cluster and time is stored already"):
        store(small(leader=2), warehouse)
    both = store_all([small("two"), small("two", leader=2)], warehouse)
    assert [type(one) for one in both] == [landing.SnapshotLocation, InvalidSnapshot]
    assert all(mine.same_as(small(str(mine.cluster_id))) for mine in kept(warehouse))


@pytest.mark.parametrize("year", [1970, 2010, 2100, 9999])
def test_a_time_that_no_cluster_had_is_refused(warehouse: Warehouse, year: int) -> None:
    """A run would make rows of every hour up to the next snapshot."""
    with pytest.raises(
        InvalidSnapshot, match=f"^taken_at is {year}-.*, outside 2011 to 2099: a clock was wrong; set it"
    ):
        landing.store(small(taken_at=NOON.replace(year=year)), warehouse)


def test_a_cluster_whose_name_is_no_text_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(InvalidSnapshot, match=r"^cluster_id 'a\\ud800': half a surrogate pair is not text; take the "):
        landing.store(small("a\ud800"), warehouse)


def test_a_refused_snapshot_does_not_keep_others_from_being_stored(warehouse: Warehouse) -> None:
    outcomes = store_all([small(cluster_id=None), small()], warehouse)
    assert [isinstance(one, InvalidSnapshot) for one in outcomes] == [True, False]
    assert len(kept(warehouse)) == 1


def test_time_zones_do_not_make_two_timestamps_of_one(warehouse: Warehouse) -> None:
    assert store(small(), warehouse).new
    assert not store(replace(small(), taken_at=NOON.astimezone()), warehouse).new


@pytest.mark.slow
def test_ids_sort_by_time_and_fit_into_the_statistics_of_a_data_file() -> None:
    snapshots = sorted(generated(60), key=lambda one: one.taken_at or NOON)
    ids = [snapshot_id(one) for one in snapshots]
    assert [one[:21] for one in ids] == sorted(one[:21] for one in ids)
    assert {len(one) for one in ids} <= {31, 32}


@pytest.mark.parametrize(
    "tables",
    [pytest.param(tables, marks=[pytest.mark.slow] if tables % 3 else []) for tables in range(1, len(LANDING))],
)
def test_a_collect_that_dies_between_two_tables_is_invisible_and_its_retry_stores_the_snapshot_once(
    warehouse: Warehouse, tables: int
) -> None:
    snapshot = small()
    reading = reading_of(snapshot)
    for name in list(LANDING)[:tables]:
        append(
            DeltaTable(warehouse.table(name)),
            landing_rows([NewSnapshot(snapshot, reading=reading)])[name],
            {snapshot_id(snapshot): 1},
        )
    assert kept(warehouse) == []
    assert {name: list(rows(warehouse, name)) for name in LANDING} == {name: [] for name in LANDING}
    (location,) = store_all([snapshot], warehouse, readings={0: reading})
    assert isinstance(location, SnapshotLocation)
    assert location.new
    assert [one.same_as(snapshot) for one in kept(warehouse)] == [True]
    for name in ("partitions", "logs"):
        assert len(DeltaTable(warehouse.table(name)).to_pyarrow_table()) == len(snapshot.partitions)


def test_of_two_writers_of_one_transaction_the_second_commits_nothing(warehouse: Warehouse) -> None:
    first, second = (DeltaTable(warehouse.table("brokers")) for _ in range(2))
    part = landing_rows([NewSnapshot(small())])["brokers"]
    append(first, part, {"x": 1})
    with pytest.raises(ConcurrentTransactionError):
        append(second, part, {"x": 1})
    assert len(DeltaTable(warehouse.table("brokers")).to_pyarrow_table()) == 3


def many(seed: int) -> list[ClusterSnapshot]:
    own = [small(f"own {seed}", NOON + timedelta(minutes=n)) for n in range(6)]
    shared = [small("shared", NOON + timedelta(minutes=n)) for n in range(6)]
    return [one for pair in zip(own, shared, strict=True) for one in pair]


def collector(root: str, seed: int) -> list[bool]:
    return [store(one, open_warehouse(root)).new for one in many(seed)]


@pytest.mark.slow
@pytest.mark.parametrize("conflicts", [1, 10**9])
def test_a_collector_that_meets_the_commit_of_another_tries_again_some_times(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    met = count(1)

    def meeting(*words: Any, **options: Any) -> None:
        if next(met) <= conflicts:
            raise ConcurrentTransactionError
        append(*words, **options)

    monkeypatch.setattr(landing, "append", meeting)
    if conflicts == 1:
        assert [one.new for one in store_all([small()], warehouse) if isinstance(one, SnapshotLocation)] == [True]
        assert len(kept(warehouse)) == 1
    else:
        with pytest.raises(InvalidWarehouse, match="other collectors store the same snapshots all the time; stop one"):
            store_all([small()], warehouse)


@pytest.mark.slow
def test_collectors_at_the_same_time_store_every_snapshot_once(warehouse: Warehouse) -> None:
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as collectors:
        new = list(collectors.map(collector, [warehouse.root] * 3, range(3)))
    assert sum(map(sum, new)) == 3 * 6 + 6
    assert Counter((one.cluster_id, one.taken_at) for one in kept(warehouse)).total() == 24
    found = Counter(
        (row["cluster_id"], row["taken_at"], row["topic"], row["partition"]) for row in rows(warehouse, "partitions")
    )
    assert (found.total(), max(found.values())) == (48, 1)
    assert len(DeltaTable(warehouse.table("partitions")).to_pyarrow_table()) == 48
