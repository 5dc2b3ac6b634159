"""Rows at each snapshot, made of the changes that are stored, equal those of every snapshot judged whole: random histories."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from rackspan import pipeline
from rackspan.audit import FleetPolicy, RackPolicy
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot, columns
from rackspan.pipeline import table
from rackspan.pipeline.changes.difference import changes
from rackspan.pipeline.check import check as check_warehouse
from rackspan.pipeline.judging import task
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import TABLES, Table
from rackspan.pipeline.warehouse import Warehouse, existing_table
from tests.depth import at_depth
from tests.pipeline import expected
from tests.pipeline.examples import NOON, as_stored, small
from tests.pipeline.judging.test_task import judging_build
from tests.pipeline.landing.test_bases import random_history
from tests.pipeline.plain_build import refresh

pytestmark = pytest.mark.slow

POLICIES = (RackPolicy(), RackPolicy(min_insync_racks=2))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return pipeline.create_warehouse(tmp_path / "warehouse")


def check(warehouse: Warehouse, snapshots: list[ClusterSnapshot], policy: RackPolicy) -> None:
    for name, of in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, policy), of.grain)
        assert expected.judged_columns(pipeline.rows(warehouse, name)) == wanted, name


def store_and_run_in_some_order(rng: random.Random, warehouse: Warehouse, history: list[ClusterSnapshot]) -> RackPolicy:
    """Snapshots come late, together, by two collectors; runs come between them, now and then by another policy."""
    bases = [Bases(), Bases()]
    left, policy = list(history), POLICIES[0]
    while left:
        place = 0 if rng.random() < 0.7 else rng.randrange(len(left))
        together = [left.pop(place) for _ in range(min(rng.randrange(1, 4), len(left) - place))]
        store_all(together, warehouse, rng.choice(bases))
        if rng.random() < 0.2:
            bases[rng.randrange(2)] = Bases()
        if rng.random() < 0.2:
            policy = rng.choice(POLICIES)
        if rng.random() < 0.6 or not left:
            refresh(warehouse, policy, judging_build(warehouse))
    return policy


def test_a_snapshot_without_rows_has_no_table_of_none(warehouse: Warehouse) -> None:
    """Those of many snapshots are joined, which would look at each of them again and again."""
    no_partitions = columns(topic=[], partition=[], leader=[], replicas=[], isr=[])
    history = [small(taken_at=NOON + timedelta(hours=hour)) for hour in range(4)]
    history[1:3] = [replace(one, topics=(), partitions=no_partitions) for one in history[1:3]]
    store_all(history, warehouse)
    refresh(warehouse, POLICIES[0], judging_build(warehouse))
    files = table.table_files(warehouse, TABLES["partition_durability"], last_run(warehouse))
    assert [len(rows) for rows in files.at_each_snapshot(["snapshot_id"])] == [2, 2]


@pytest.mark.parametrize("seed", range(at_depth(test=3, soak=2_000)))
def test_the_rows_at_each_snapshot_are_those_of_judging_it_whole(warehouse: Warehouse, seed: int) -> None:
    rng = random.Random(seed)
    history = random_history(rng)
    policy = store_and_run_in_some_order(rng, warehouse, history)
    snapshots = as_stored(warehouse, history)
    check(warehouse, snapshots, policy)
    # In parts of a cluster and day.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "AT_ONCE", 1)
        check(warehouse, snapshots, policy)
    timestamp = rng.choice(history).taken_at
    assert timestamp is not None
    (last,) = [snapshot for snapshot in snapshots if snapshot.taken_at == timestamp]
    found = expected.judged_columns(pipeline.rows(warehouse, "partition_durability", at=timestamp))
    assert found == expected.ordered(expected.partition_durability(last, policy), TABLES["partition_durability"].grain)


def rows_of(warehouse: Warehouse, name: str, **options: Any) -> list[tuple[Any, ...]]:
    columns = ("valid_from", "partition", "gone") if options.get("changes") else ("taken_at", "partition", "leader")
    return [tuple(row[name] for name in columns) for row in pipeline.rows(warehouse, name, **options)]


def at(minutes: float, leader: int = 1) -> ClusterSnapshot:
    return small(taken_at=NOON + timedelta(minutes=minutes), leader=leader)


def test_only_what_changed_is_stored_and_a_day_begins_with_every_row(warehouse: Warehouse) -> None:
    bases = Bases()
    for minute, leader in ((0, 1), (1, 1), (2, 2), (12 * 60, 2), (12 * 60 + 1, 2)):
        store_all([at(minute, leader)], warehouse, bases)
        refresh(warehouse, RackPolicy(), judging_build(warehouse))
    noon, later, midnight = "2026-11-20T12:00:00Z", "2026-11-20T12:02:00Z", "2026-11-21T00:00:00Z"
    assert rows_of(warehouse, "partition_durability", changes=True) == [
        (noon, 0, None),
        (noon, 1, None),
        (later, 0, False),
        (midnight, 0, None),
        (midnight, 1, None),
    ]
    assert len(rows_of(warehouse, "partition_durability")) == 10
    # A snapshot that is stored as equal to the one before it needs no job at all.
    calls: list[object] = []

    def counted(*words: object) -> Any:
        calls.append(words)
        return judging_build(warehouse)(*words)  # type: ignore[arg-type]

    store_all([at(12 * 60 + 2, 2)], warehouse, bases)
    report = refresh(warehouse, RackPolicy(), counted)
    assert (report.snapshots, calls) == (1, [])
    assert len(rows_of(warehouse, "partition_durability")) == 12


def times_shown(warehouse: Warehouse, minutes: float) -> list[str]:
    when = NOON + timedelta(minutes=minutes)
    return sorted({row[0] for row in rows_of(warehouse, "partition_durability", at=when)})


def test_a_gap_is_not_safety(warehouse: Warehouse) -> None:
    """Snapshots a minute apart: rows are true for three minutes after the last one, and not a time longer."""
    store_all([at(minute) for minute in range(4)], warehouse)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    assert times_shown(warehouse, -0.1) == []
    assert times_shown(warehouse, 1.5) == ["2026-11-20T12:01:00Z"]
    assert times_shown(warehouse, 3 + 3) == ["2026-11-20T12:03:00Z"]
    assert times_shown(warehouse, 3.01 + 3) == []


def test_a_single_snapshot_is_known_for_some_hours(warehouse: Warehouse) -> None:
    store_all([at(0)], warehouse)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    assert times_shown(warehouse, 3 * 60) == ["2026-11-20T12:00:00Z"]
    assert times_shown(warehouse, 3 * 60 + 0.1) == []


def test_a_table_that_is_no_table_of_changes_has_no_rows_as_of_a_timestamp(warehouse: Warehouse) -> None:
    store_all([at(0)], warehouse)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    with pytest.raises(UsageError, match=r"table drift: has no rows as of a time; those that have are partition_durab"):
        list(pipeline.rows(warehouse, "drift", at=NOON))


def test_landing_tables_show_every_row_at_each_snapshot_too(warehouse: Warehouse) -> None:
    store_all([at(0), at(1), at(2, leader=2)], warehouse, Bases())
    partitions = [(row["taken_at"], row["partition"], row["leader"]) for row in pipeline.rows(warehouse, "partitions")]
    assert partitions == [
        (f"2026-11-20T12:0{minute}:00Z", partition, leader)
        for minute in range(3)
        for partition, leader in ((0, 2 if minute == 2 else 1), (1, 2))
    ]
    assert len(list(pipeline.rows(warehouse, "partitions", changes=True))) == 3


def test_a_snapshot_after_one_that_cannot_be_read_is_stored_whole(warehouse: Warehouse) -> None:
    """It cannot be compared with the one before it, whose rows readers still see."""
    snapshots = [at(0), at(1, leader=2), at(2, leader=2)]
    for snapshot in snapshots[:2]:
        store_all([snapshot], warehouse)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    folder = warehouse.table_folder("partitions")
    assert folder is not None
    newest = max(folder.glob("day=*/*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    content = newest.read_bytes()
    newest.unlink()
    store_all([snapshots[2]], warehouse)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    states = [(row[0], row[1], row[2]) for row in rows_of(warehouse, "partition_durability")]
    assert states == [
        (f"2026-11-20T12:0{minute}:00Z", partition, leader)
        for minute in range(3)
        for partition, leader in ((0, 1 if minute == 0 else 2), (1, 2))
    ]
    assert {row["base_id"] for row in pipeline.rows(warehouse, "judged") if row["taken_at"] > "2026-11-20T12:01"} > {
        None
    }
    newest.write_bytes(content)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    check(warehouse, snapshots, RackPolicy())
    assert [row["base_id"] for row in pipeline.rows(warehouse, "judged")].count(None) == 1


def test_times_are_compared_as_times_shown(warehouse: Warehouse) -> None:
    store_all([at(0)], warehouse)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    elsewhere = datetime.fromisoformat("2026-11-20T13:00:00+01:00")
    assert len(list(pipeline.rows(warehouse, "partition_durability", at=elsewhere))) == 2


def other_rows(warehouse: Warehouse) -> list[str]:
    found = check_warehouse(warehouse, now=NOON, whole=True).problems
    return [
        f"{problem.table}: {problem.problem.partition(' (')[0]}" for problem in found if problem.kind == "other-rows"
    ]


MISTAKES = {
    "a change that is not stored": lambda rows: rows.slice(1),
    "a row with the values before": lambda rows: rows.set_column(
        rows.column_names.index("leader"), "leader", pa.array([1] * len(rows), pa.int32())
    ),
    "a row that is gone and should be there": lambda rows: rows.set_column(
        rows.column_names.index("gone"), "gone", pa.array([True] * len(rows))
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_check_of_the_whole_warehouse_finds_rows_that_judging_does_not_give(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pa.Table], pa.Table]
) -> None:
    policies = FleetPolicy(RackPolicy(min_insync_racks=2), {"one": RackPolicy(excluded_brokers=frozenset({3}))})
    store_all([at(0), at(1)], warehouse, bases := Bases())
    refresh(warehouse, policies, judging_build(warehouse))
    assert other_rows(warehouse) == []
    plain = changes

    def wrong(before: pa.Table, after: pa.Table, *words: Any) -> pa.Table:
        found = plain(before, after, *words)
        return mistake(found) if "leader" in found.column_names else found

    with monkeypatch.context() as patch:
        patch.setattr(task, "changes", wrong)
        store_all([at(2, leader=2)], warehouse, bases)
        refresh(warehouse, policies, judging_build(warehouse))
    assert other_rows(warehouse) == ["partition_durability: at 1 snapshots it has other rows than judging them gives"]
    refresh(warehouse, policies, judging_build(warehouse), rebuild={"partition_durability"})
    assert other_rows(warehouse) == []


def test_a_snapshot_that_equals_its_base_is_judged_where_another_one_stands_between(warehouse: Warehouse) -> None:
    """Of two collectors: what the one stored as unchanged differs from what the other one stored before it."""
    mine, theirs = Bases(), Bases()
    snapshots = [at(0), at(0.5, leader=2), at(1)]
    for snapshot, bases in zip(snapshots, (mine, theirs, mine), strict=True):
        store_all([snapshot], warehouse, bases)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    check(warehouse, snapshots, RackPolicy())


def test_rows_that_differ_from_dropped_ones_are_made_again(warehouse: Warehouse) -> None:
    snapshots = [at(0), at(1, leader=2), at(2, leader=2), at(3, leader=2)]
    for snapshot in snapshots:
        store_all([snapshot], warehouse)
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    folder = warehouse.table_folder("partitions")
    assert folder is not None
    by_time = sorted(folder.glob("day=*/*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    by_time[1].unlink()
    maintain(warehouse, now=lambda: NOON, give_up=lambda _line: None)
    left = [snapshots[0], *snapshots[2:]]
    assert [row["taken_at"] for row in pipeline.rows(warehouse, "judged")] == ["2026-11-20T12:00:00Z"]
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    check(warehouse, left, RackPolicy())


def test_what_differs_from_rows_in_a_damaged_file_is_left_out_too(warehouse: Warehouse) -> None:
    bases = Bases()
    for minute, leader in ((0, 1), (1, 2), (2, 2), (3, 3)):
        store_all([at(minute, leader)], warehouse, bases)
        refresh(warehouse, RackPolicy(), judging_build(warehouse))
    folder = warehouse.table_folder("partition_durability")
    assert folder is not None
    by_time = sorted(folder.rglob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    by_time[1].write_bytes(b"")
    lines: list[str] = []
    assert {row[0] for row in rows_of(warehouse, "partition_durability", left_out=lines.append)} == {
        "2026-11-20T12:00:00Z"
    }
    assert len(lines) == 1


def test_a_table_of_a_release_that_stored_every_row_is_made_again(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows have no `valid_from`."""
    store_all([at(0), at(1)], warehouse)
    now = TABLES["findings"]
    with monkeypatch.context() as patch:
        patch.setitem(cast("dict[str, Table]", TABLES), "findings", replace(now.at_each_snapshot, version=4))
        refresh(warehouse, build=lambda *_: {})
    report = refresh(warehouse, RackPolicy(), judging_build(warehouse))
    assert "table findings: lost, so its rows are made again" in report.repair.lines
    assert "valid_from" in existing_table(warehouse, "findings").schema().to_arrow().names
    assert "taken_at" not in existing_table(warehouse, "findings").schema().to_arrow().names
