"""Torn entries in the logs of the landing tables: nothing that was reported as stored is lost, and each repair is reported."""

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rackspan.audit.drift.unread import Unread, unread
from rackspan.errors import InvalidWarehouse
from rackspan.model import Topic, TopicName
from rackspan.pipeline import create_warehouse, open_warehouse, repaired_warehouse, rows
from rackspan.pipeline.delta import append as append_module
from rackspan.pipeline.delta.append import append
from rackspan.pipeline.landing import recover
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.rows import NewSnapshot, landing_rows, snapshot_id
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import LANDING
from rackspan.pipeline.warehouse import NOT_REPAIRED, existing_table
from tests.pipeline.examples import NOON, kept, small
from tests.pipeline.readings import reading_of

pytestmark = pytest.mark.slow

SNAPSHOTS = [small(taken_at=NOON + timedelta(hours=8 * number), leader=1 + number % 3) for number in range(4)]
"""The newest commit has two of two days, so its entry has several actions."""
READINGS = dict(enumerate(map(reading_of, SNAPSHOTS)))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = create_warehouse(tmp_path_factory.mktemp("template") / "warehouse")
    store_all(SNAPSHOTS[:1], made, readings=READINGS)
    store_all(SNAPSHOTS[1:], made, readings={0: READINGS[1], 1: READINGS[2], 2: READINGS[3]})
    return Path(made.root)


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "warehouse"))


def newest(root: Path, table: str) -> Path:
    return max((root / "tables" / table / "_delta_log").glob("*.json"))


def half_a_line(content: bytes) -> bytes:
    return content[: len(content) * 3 // 5]


def without_last_lines(content: bytes) -> bytes:
    """Whole lines: what is left is JSON to the last byte."""
    return b"\n".join(content.splitlines()[:2])


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _content: b"",
    "half a line": half_a_line,
    "whole lines": without_last_lines,
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize(
    ("table", "cut"),
    # Each table and each kind of cut in make test, every pair in make soak.
    [
        pytest.param(table, cut, marks=[] if place == number % 4 else pytest.mark.soak)
        for number, table in enumerate(LANDING)
        for place, cut in enumerate(CUTS)
    ],
)
def test_every_stored_snapshot_is_back_as_it_was_and_the_torn_entry_is_kept(root: Path, table: str, cut: str) -> None:
    entry = newest(root, table)
    torn = CUTS[cut](entry.read_bytes())
    entry.write_bytes(torn)
    warehouse = create_warehouse(root)
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(warehouse), SNAPSHOTS, strict=True))
    assert f"table {table}: {entry.name} in its log was torn" in warehouse.repair.lines[0]
    assert f"table {table}: the rows of 3 snapshots" in warehouse.repair.lines[1] or table == "snapshots"
    assert warehouse.repair.lost == ()
    assert entry.with_name(f"{entry.name}.torn").read_bytes() == torn
    assert create_warehouse(root).repair == NOT_REPAIRED


def test_a_marker_whose_file_is_gone_too_is_made_again_and_its_controllers_are_unknown_rather_than_none(
    root: Path,
) -> None:
    entry = newest(root, "snapshots")
    for name in re.findall(r'"path":"([^"]*)"', entry.read_text()):
        (root / "tables" / "snapshots" / name).write_bytes(b"")
    entry.write_bytes(b"")
    warehouse = create_warehouse(root)
    assert len(warehouse.repair.lost) == 3
    first, *made = kept(warehouse)
    assert first.same_as(SNAPSHOTS[0])
    for mine, theirs in zip(made, SNAPSHOTS[1:], strict=True):
        assert (mine.controllers, mine.taken_at) == ((), theirs.taken_at)
        assert (mine.brokers, mine.topics) == (theirs.brokers, theirs.topics)
        assert mine.partitions.same_as(theirs.partitions)
        assert unread(mine.partial) == ~Unread.NOTHING


def test_rows_of_a_collect_that_was_killed_do_not_become_a_snapshot_of_a_time_that_has_one(root: Path) -> None:
    killed = replace(SNAPSHOTS[3], topics=(Topic(TopicName("orders")),))
    parts = landing_rows([NewSnapshot(killed)])
    for name in ("brokers", "topics", "partitions"):
        append(existing_table(open_warehouse(root), name), parts[name], {snapshot_id(killed): 1})
    newest(root, "snapshots").write_bytes(b"")
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(create_warehouse(root)), SNAPSHOTS, strict=True))


def test_brokers_alone_that_a_killed_collect_left_do_not_become_a_snapshot_without_topics(root: Path) -> None:
    killed = small(taken_at=NOON + timedelta(days=3))
    rows = landing_rows([NewSnapshot(killed)])["brokers"]
    append(existing_table(open_warehouse(root), "brokers"), rows, {snapshot_id(killed): 1})
    newest(root, "snapshots").write_bytes(b"")
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(create_warehouse(root)), SNAPSHOTS, strict=True))


def test_a_file_that_is_there_twice_gives_its_rows_once(root: Path) -> None:
    """As after a compaction: the files that it replaced stay until they are vacuumed."""
    for file in (root / "tables" / "partitions").glob("day=*/*.parquet"):
        shutil.copy(file, file.with_name(f"replaced-{file.name}"))
    newest(root, "partitions").write_bytes(b"")
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(create_warehouse(root)), SNAPSHOTS, strict=True))


def test_a_file_with_some_rows_of_a_snapshot_is_left_for_the_one_that_has_all(root: Path) -> None:
    for file in (root / "tables" / "partitions").glob("day=*/*.parquet"):
        pq.write_table(pq.ParquetFile(file).read().slice(0, 1), file.with_name(f"0-{file.name}"))
    newest(root, "partitions").write_bytes(b"")
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(create_warehouse(root)), SNAPSHOTS, strict=True))


class KilledError(Exception):
    """Stands for SIGKILL."""


@pytest.mark.parametrize("table", ["partitions", "snapshots"])
def test_a_repair_that_is_killed_at_any_step_is_ended_by_the_next_one(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    steps = 0
    for kill_point in count():
        root = Path(shutil.copytree(template, tmp_path / str(kill_point)))
        newest(root, table).write_bytes(b"")
        calls = count()

        def step(
            original: Callable[..., Any], *words: Any, calls: Any = calls, kill_point: int = kill_point, **more: Any
        ) -> Any:
            if next(calls) == kill_point:
                raise KilledError
            result = original(*words, **more)
            if next(calls) == kill_point:
                raise KilledError
            return result

        with monkeypatch.context() as patch:
            for owner, name in (
                (Path, "rename"),
                (recover, "append"),
                (shutil, "rmtree"),
                (append_module, "flush_log"),
            ):
                patch.setattr(owner, name, partialmethod_of(step, getattr(owner, name)))
            try:
                create_warehouse(root)
            except KilledError:
                steps += 1
            else:
                break
        warehouse = create_warehouse(root)
        assert all(mine.same_as(theirs) for mine, theirs in zip(kept(warehouse), SNAPSHOTS, strict=True))
        assert len(list(rows(warehouse, table))) == len(list(rows(open_warehouse(template), table)))
        assert not list((root / "tables" / table / "_delta_log").glob("*pending*"))
    assert steps >= 8


def partialmethod_of(step: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *words, **more: step(original, *words, **more)


def test_two_repairs_at_once_bring_everything_back_once(root: Path) -> None:
    for table in LANDING:
        newest(root, table).write_bytes(b"")
    with ThreadPoolExecutor(4) as threads:
        repairs = [one.result().repair for one in [threads.submit(create_warehouse, root) for _ in range(4)]]
    assert sum(bool(one.lines) for one in repairs) == 1
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(create_warehouse(root)), SNAPSHOTS, strict=True))
    counts = {"partitions": 8, "brokers": 12, "logs": 8, "group_descriptions": 12}
    counts["group_members"] = sum(len(group.members) for one in READINGS.values() for group in one.groups)
    counts["broker_counters"] = sum(len(one.bytes_out) for one in READINGS.values())
    for table in LANDING:
        assert len(DeltaTable(str(root / "tables" / table)).to_pyarrow_table()) == counts.get(table, 4)


@pytest.mark.parametrize("conflicts", [1, recover.ATTEMPTS])
def test_a_repair_is_tried_again_while_collectors_store_the_same_snapshots(
    root: Path, monkeypatch: pytest.MonkeyPatch, conflicts: int
) -> None:
    left = [append_module.ConcurrentTransactionError()] * conflicts

    def raced(*words: Any, **more: Any) -> None:
        if left:
            raise left.pop()
        append(*words, **more)

    monkeypatch.setattr(recover, "append", raced)
    newest(root, "partitions").write_bytes(b"")
    if conflicts == recover.ATTEMPTS:
        with pytest.raises(
            InvalidWarehouse, match="collectors store the same snapshots all the time; stop one of them"
        ):
            create_warehouse(root)
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(create_warehouse(root)), SNAPSHOTS, strict=True))


@pytest.mark.parametrize("cut", CUTS)
def test_no_reader_takes_a_torn_entry_for_one_without_rows(root: Path, cut: str) -> None:
    entry = newest(root, "partitions")
    entry.write_bytes(CUTS[cut](entry.read_bytes()))
    line = rf"table partitions: {entry.name} in its log is torn, .* rackspan pipeline run --warehouse {root} repairs it"
    with pytest.raises(InvalidWarehouse, match=line):
        open_warehouse(root)
    assert repaired_warehouse(root).repair.lines
    assert len(list(rows(open_warehouse(root), "partitions"))) == 8


MINUTES = [
    small(taken_at=NOON + timedelta(minutes=minute), leader=leader)
    for minute, leader in ((0, 1), (1, 2), (2, 2), (3, 3))
]
"""Of which a collector stores the first whole, and of the third nothing but its marker."""
MINUTES[3] = replace(
    MINUTES[3],
    brokers=tuple(replace(broker, fenced=True) for broker in MINUTES[3].brokers),
    topics=(replace(MINUTES[3].topics[0], internal=True),),
)


@pytest.fixture
def changes_root(tmp_path: Path) -> Path:
    made, bases = create_warehouse(tmp_path / "warehouse"), Bases()
    for snapshot in MINUTES:
        store_all([snapshot], made, bases)
    return Path(made.root)


@pytest.mark.parametrize("table", LANDING)
def test_snapshots_that_are_stored_as_changes_are_back_too(changes_root: Path, table: str) -> None:
    newest(changes_root, table).write_bytes(b"")
    warehouse = create_warehouse(changes_root)
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(warehouse), MINUTES, strict=True))
    assert warehouse.repair.lost == ()


def test_no_whole_snapshot_is_made_of_the_changes_of_one_whose_marker_is_lost(changes_root: Path) -> None:
    """Its rows do not say what they differ from, and taken for all rows they would be a cluster of one partition."""
    entry = newest(changes_root, "snapshots")
    for name in re.findall(r'"path":"([^"]*)"', entry.read_text()):
        (changes_root / "tables" / "snapshots" / name).write_bytes(b"")
    entry.write_bytes(b"")
    warehouse = create_warehouse(changes_root)
    assert all(mine.same_as(theirs) for mine, theirs in zip(kept(warehouse), MINUTES[:3], strict=True))


def test_a_dropped_day_does_not_come_back_from_markers_without_rows(changes_root: Path) -> None:
    """Files that no version names may be those of a day that was dropped."""
    for name in LANDING:
        existing_table(open_warehouse(changes_root), name).delete()
    store_all([replace(MINUTES[0], taken_at=NOON + timedelta(days=1))], open_warehouse(changes_root))
    newest(changes_root, "snapshots").write_bytes(b"")
    assert len(kept(create_warehouse(changes_root))) == 1
