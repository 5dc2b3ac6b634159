"""Maintenance changes no row that is kept, breaks no reader, and leaves the files that somebody may still read."""

import json
import os
import shutil
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse, UsageError, WarehouseBusy
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, rows, store
from rackspan.pipeline import maintain as module
from rackspan.pipeline.delta.append import ConcurrentTransactionError, commit
from rackspan.pipeline.landing.names import StoredNames
from rackspan.pipeline.maintain import MaintainedTable, maintain
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import CLUSTERS, DERIVED, HISTORY, LANDING, NAMES, TABLES
from rackspan.pipeline.warehouse import only_run
from rackspan.sources.source import ClusterName
from tests.pipeline import expected
from tests.pipeline.examples import NOON, OF_SNAPSHOTS, kept, small
from tests.pipeline.plain_build import refresh

# Seconds of Delta Lake each.
pytestmark = pytest.mark.slow

EVERY = (*OF_SNAPSHOTS, *TABLES, *HISTORY)
SNAPSHOTS = [small(cluster, NOON + timedelta(hours=8 * n), 1 + n % 3) for n in range(6) for cluster in ("a", "b")]
"""Two of the first day, three of the second, one of the third, for each cluster."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = create_warehouse(tmp_path_factory.mktemp("template") / "warehouse")
    for n in range(0, len(SNAPSHOTS), 2):
        for one in SNAPSHOTS[n : n + 2]:
            store(one, made)
        refresh(made)
    return Path(made.root)


@pytest.fixture
def warehouse(template: Path, tmp_path: Path) -> Warehouse:
    """A copy of its own for each test, in which the six runs need not be repeated."""
    return open_warehouse(shutil.copytree(template, tmp_path / "warehouse"))


def maintained(
    warehouse: Warehouse, *, keep_days: int | None = None, vacuum_hours: float = 168, at: datetime | None = None
) -> dict[str, MaintainedTable]:
    when = at or datetime.now(UTC)
    done = maintain(warehouse, now=lambda: when, keep_days=keep_days, vacuum_hours=vacuum_hours)
    return {one.name: one for one in done}


def check(
    warehouse: Warehouse, snapshots: list[ClusterSnapshot], compared: list[ClusterSnapshot] | None = None
) -> None:
    kept = {(one.cluster_id, one.taken_at) for one in snapshots}
    for name, table in TABLES.items():
        every = expected.table(name, compared or snapshots, RackPolicy())
        wanted = [one for one in every if (one["cluster_id"], datetime.fromisoformat(one["taken_at"])) in kept]
        assert expected.judged_columns(rows(warehouse, name)) == expected.ordered(wanted, table.grain), name


def files(warehouse: Warehouse, name: str) -> int:
    return len(DeltaTable(warehouse.table(name)).file_uris())


def made_old(warehouse: Warehouse) -> None:
    """Let every file be last changed a month ago, and every removal in a log have happened then."""
    then = time.time() - 30 * 86_400
    for file in Path(warehouse.root).rglob("*"):
        if file.is_file() and "_delta_log" not in file.parts:
            os.utime(file, (then, then))


def test_compaction_leaves_one_file_a_day_and_every_row(warehouse: Warehouse) -> None:
    before = {name: files(warehouse, name) for name in EVERY}
    stored = list(rows(warehouse, "partitions"))
    done = maintained(warehouse)
    for name in EVERY:
        days = 1 if name == "runs" else 3
        assert files(warehouse, name) == days, name
        assert done[name].joined > done[name].into > 0 or before[name] == days, name
    check(warehouse, SNAPSHOTS)
    assert list(rows(warehouse, "partitions")) == stored
    assert all(
        mine.same_as(theirs) for mine, theirs in zip(kept(warehouse), sorted(SNAPSHOTS, key=by_cluster), strict=True)
    )
    last = last_run(warehouse)
    assert last is not None
    assert (last.kind, last.number) == ("maintain", 7)


def data_changes(warehouse: Warehouse, name: str) -> set[bool]:
    """What the newest commit that changed files says: false where a stream passes over it."""
    for entry in sorted(Path(warehouse.table(name), "_delta_log").glob("*.json"), reverse=True):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
        if files:
            return {file["dataChange"] for file in files}
    raise AssertionError(name)


@pytest.mark.parametrize("keep_days", [None, 1])
def test_compaction_is_no_change_of_data_and_retention_is_one(warehouse: Warehouse, keep_days: int | None) -> None:
    done = maintained(warehouse, keep_days=keep_days, at=NOON + timedelta(days=2))
    for name in (*OF_SNAPSHOTS, *TABLES, "judged"):
        assert done[name].joined > 0, name
        assert data_changes(warehouse, name) == {keep_days is not None}, name


def by_cluster(one: ClusterSnapshot) -> tuple[str, datetime]:
    assert one.cluster_id is not None
    assert one.taken_at is not None
    return one.cluster_id, one.taken_at


def test_a_run_after_maintenance_goes_on_from_it_and_a_second_maintenance_has_nothing_to_do(
    warehouse: Warehouse,
) -> None:
    maintained(warehouse)
    versions = {name: DeltaTable(warehouse.table(name)).version() for name in EVERY}
    again = maintained(warehouse)
    assert all((one.joined, one.days_dropped) == (0, 0) for name, one in again.items() if name != "runs")
    assert {name: DeltaTable(warehouse.table(name)).version() for name in (*OF_SNAPSHOTS, *TABLES)} == {
        name: versions[name] for name in (*OF_SNAPSHOTS, *TABLES)
    }
    late = small("a", NOON + timedelta(hours=1), 3)
    store(late, warehouse)
    assert refresh(warehouse).snapshots == 1
    check(warehouse, [*SNAPSHOTS, late])


def test_retention_drops_whole_days_from_every_table_and_keeps_the_drift_of_the_first_day_left(
    warehouse: Warehouse,
) -> None:
    left = SNAPSHOTS[4:]
    done = maintained(warehouse, keep_days=1, at=NOON + timedelta(days=2))
    assert done["partition_durability"].days_dropped == done["snapshots"].days_dropped == 1
    check(warehouse, left, SNAPSHOTS)
    for name in (*OF_SNAPSHOTS, "judged"):
        assert {row["taken_at"][:10] for row in rows(warehouse, name)} == {"2026-11-21", "2026-11-22"}, name
    assert refresh(warehouse).run is None
    # What a collector stores again, or late, is judged again.
    store(SNAPSHOTS[0], warehouse)
    assert refresh(warehouse).snapshots == 1


def test_a_vacuum_leaves_what_the_run_in_force_names_and_what_was_removed_within_its_hours(
    warehouse: Warehouse,
) -> None:
    versions = last_run(warehouse)
    assert versions is not None
    maintained(warehouse)
    # A reader that follows the row before maintenance still finds its files.
    before = DeltaTable(warehouse.table("findings"), version=versions.versions["findings"])
    assert all(Path(uri.removeprefix("file://")).exists() for uri in before.file_uris())
    orphan = Path(warehouse.table("findings"), "0000000003-dead", "day=2026-11-20", "part-0.parquet")
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"of a killed run")
    made_old(warehouse)
    done = maintained(warehouse)
    assert not orphan.exists()
    assert not orphan.parent.parent.exists()
    assert done["findings"].deleted == 1
    check(warehouse, SNAPSHOTS)


def test_a_vacuum_keeps_the_version_in_force_although_a_killed_run_has_gone_on(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rackspan.pipeline.runs.add_judged", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        refresh(warehouse, RackPolicy(min_insync_racks=2))
    monkeypatch.undo()
    maintained(warehouse)
    check(warehouse, SNAPSHOTS)


def test_maintenance_that_changes_no_table_leaves_the_run_in_force(warehouse: Warehouse) -> None:
    """Also where a table went on by a commit that changed no file of it."""
    maintained(warehouse)
    before = last_run(warehouse)
    commit(DeltaTable(warehouse.table("findings")), [], {})
    maintained(warehouse)
    assert last_run(warehouse) == before


def test_a_file_of_an_attempt_that_no_commit_names_is_never_read_and_deleted(warehouse: Warehouse) -> None:
    """As a speculative or a failed attempt of a task leaves it: in the folder of a run that was committed."""
    table = DeltaTable(warehouse.table("findings"))
    named = Path(warehouse.table("findings")) / table.file_uris()[0].rpartition("/findings/")[2]
    orphan = named.with_name("part-00000-0123456789abcdef.parquet")
    shutil.copyfile(named, orphan)
    made_old(warehouse)
    check(warehouse, SNAPSHOTS)
    assert maintained(warehouse)["findings"].deleted == 1
    assert not orphan.exists()
    check(warehouse, SNAPSHOTS)


def test_maintenance_waits_for_no_run_and_refuses_less_than_an_hour(warehouse: Warehouse) -> None:
    with only_run(warehouse), pytest.raises(WarehouseBusy, match="another rackspan pipeline run is at work"):
        maintained(warehouse)
    with pytest.raises(UsageError, match=r"--vacuum-hours 0.5: a reader may take an hour"):
        maintained(warehouse, vacuum_hours=0.5)
    with pytest.raises(UsageError, match=r"--keep-days 0: nothing would be left"):
        maintained(warehouse, keep_days=0)


def test_snapshots_that_are_stored_meanwhile_stay(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    late = small("c", NOON + timedelta(days=1), 2)
    pending = [True]

    def with_a_collector(*words: Any, **options: Any) -> None:
        if pending:
            pending.clear()
            store(late, warehouse)
        commit(*words, **options)

    monkeypatch.setattr(module, "commit", with_a_collector)
    maintained(warehouse)
    assert refresh(warehouse).snapshots == 1
    check(warehouse, [*SNAPSHOTS, late])


def test_maintenance_before_the_first_run_joins_the_files_of_snapshots_alone(tmp_path: Path) -> None:
    fresh = create_warehouse(tmp_path / "fresh")
    for snapshot in SNAPSHOTS[:4]:
        store(snapshot, fresh)
    done = maintained(fresh)
    assert done.keys() == LANDING.keys()
    assert done["snapshots"].joined == 4
    assert last_run(fresh) is None
    assert {entry.name for entry in Path(fresh.root, "tables").iterdir()} == LANDING.keys()


def test_every_table_that_a_warehouse_has_is_maintained(warehouse: Warehouse) -> None:
    """The folders of the warehouse are the list: a table that is written and not maintained has no line."""
    times = [NOON + timedelta(hours=number) for number in range(4)]
    for number, since in enumerate(times):
        StoredNames().store(warehouse, {"a": (ClusterName(f"Production {number}", "eu"), since)})
    before = list(rows(warehouse, CLUSTERS.name))
    assert (len(before), files(warehouse, CLUSTERS.name)) == (4, 4)
    done = maintained(warehouse)
    assert done.keys() == {entry.name for entry in Path(warehouse.root, "tables").iterdir()}
    assert set(done) == {*LANDING, *DERIVED, *HISTORY, *NAMES}
    assert (done[CLUSTERS.name].joined, done[CLUSTERS.name].into) == (4, 1)
    assert (list(rows(warehouse, CLUSTERS.name)), files(warehouse, CLUSTERS.name)) == (before, 1)


def test_the_other_tables_are_maintained_although_the_names_of_clusters_cannot_be_read(warehouse: Warehouse) -> None:
    for number in range(2):
        StoredNames().store(warehouse, {"a": (ClusterName(str(number), "eu"), NOON + timedelta(hours=number))})
    for file in Path(warehouse.table(CLUSTERS.name)).glob("*.parquet"):
        file.write_bytes(b"PAR1 torn")
    done = maintained(warehouse)
    (line,) = done[CLUSTERS.name].damaged
    assert "cannot be compacted" in line
    assert line.endswith("the next rackspan pipeline collect stores the names again")
    assert done["partitions"].joined > 0


def test_conflicts_without_end_are_reported_in_one_line(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def conflict(*_words: object, **_options: object) -> None:
        raise ConcurrentTransactionError

    monkeypatch.setattr(module, "commit", conflict)
    with pytest.raises(WarehouseBusy, match="other programs change table snapshots all the time"):
        maintained(warehouse)


def test_a_commit_of_somebody_else_to_a_derived_table_ends_maintenance(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflict(table: DeltaTable, *words: Any, **options: Any) -> None:
        if "/findings" in table.table_uri:
            raise ConcurrentTransactionError
        commit(table, *words, **options)

    monkeypatch.setattr(module, "commit", conflict)
    with pytest.raises(WarehouseBusy, match="another rackspan pipeline run wrote its tables at the same time"):
        maintained(warehouse)
    monkeypatch.undo()
    check(warehouse, SNAPSHOTS)


@pytest.mark.parametrize("conflicts", [1, module.ATTEMPTS])
def test_what_is_damaged_is_given_up_although_others_write_unless_they_do_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    fresh = create_warehouse(tmp_path / "fresh")
    left = [ConcurrentTransactionError()] * conflicts

    def dropped(_warehouse: Warehouse) -> list[str]:
        if left:
            raise left.pop()
        return ["a file"]

    lines: list[str] = []
    monkeypatch.setattr(module, "drop_damaged", dropped)
    busy = pytest.raises(WarehouseBusy, match="other programs change its tables all the time; stop one of them")
    with nullcontext() if conflicts < module.ATTEMPTS else busy:
        maintain(fresh, now=lambda: NOON, give_up=lines.append)
    undo = f"rackspan pipeline maintain --undo-drop --warehouse {fresh.root} brings back for 168 hours what of it can be read by then"
    assert lines == (["a file", undo] if conflicts < module.ATTEMPTS else [])


def test_files_of_half_the_size_that_is_aimed_at_are_left_as_they_are(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TARGET_BYTES", 1)
    assert {one.joined for one in maintained(warehouse).values()} == {0}


def test_a_table_that_cannot_be_vacuumed_is_named(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_words: Any, **_options: Any) -> None:
        raise DeltaError("no rights")

    monkeypatch.setattr(DeltaTable, "vacuum", fail)
    with pytest.raises(
        InvalidWarehouse, match=r": table snapshots cannot be vacuumed: no rights; rackspan pipeline check"
    ):
        maintained(warehouse)


def test_a_torn_file_is_named_and_nothing_is_lost(warehouse: Warehouse) -> None:
    root = Path(warehouse.table("findings"))
    live = [root / one.rpartition("findings/")[2] for one in DeltaTable(root).file_uris()]
    # Of a day with several files, which are compacted; folders list them in any order.
    file = next(one for one in sorted(live) if sum(one.parent.name == other.parent.name for other in live) > 1)
    content = file.read_bytes()
    file.write_bytes(content[:20])
    [line] = maintained(warehouse)["findings"].damaged
    assert file.name in line
    assert f"rackspan pipeline rebuild findings --warehouse {warehouse.root} makes it again" in line
    file.write_bytes(content)
    check(warehouse, SNAPSHOTS)
    maintained(warehouse)
    check(warehouse, SNAPSHOTS)
