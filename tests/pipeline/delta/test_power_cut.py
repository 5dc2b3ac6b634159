"""A power cut at every flush: what `collect` reported as done is there afterwards, and the next collect works.

The model: after a cut a file has its content if the file was flushed since it was last written, and otherwise is empty or gone; a
name is there if its folder was flushed since, and otherwise may be there or not. Flushes are observed, not trusted: each one
copies what it makes durable.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import create_warehouse, rows, runs, store
from rackspan.pipeline.delta import append as append_module
from rackspan.pipeline.delta import local_disk
from rackspan.pipeline.delta.table import add_columns, create_table
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.schemas import JUDGED, TABLES
from rackspan.pipeline.warehouse import existing_table
from tests.depth import at_depth
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, kept, small

pytestmark = pytest.mark.slow

EVERY: Final = at_depth(test=9, soak=1)
"""Of the cuts one in so many is looked at, other ones with names that were not flushed than without; all of them in make soak."""


class Disk:
    """What a disk below `root` holds for certain: the names in each flushed folder, the content of each flushed file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.names: dict[Path, set[str]] = {}
        self.content: dict[Path, bytes] = {}
        self.cuts: list[Callable[[Path, bool], None]] = []

    def flushed(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_relative_to(self.root):
            return
        if path.is_dir():
            self.names[path] = {entry.name for entry in path.iterdir()}
        else:
            self.content[path] = path.read_bytes()

    def after_cut(self, target: Path, *, keep_names: bool) -> None:
        """Lay out what is left. With `keep_names`, names that were not flushed are there, and their files are empty."""
        for folder, folders, files in os.walk(self.root):
            here = Path(folder)
            certain = self.names.get(here, set())
            there = target / here.relative_to(self.root)
            there.mkdir(parents=True, exist_ok=True)
            folders[:] = [name for name in folders if name in certain or keep_names]
            for name in files:
                if name in certain or keep_names:
                    (there / name).write_bytes(self.content.get(here / name, b""))


@contextmanager
def observed(disk: Disk, monkeypatch: pytest.MonkeyPatch, cut: Callable[[], None]) -> Iterator[None]:
    """Run a block; at every flush, and before it, the power may fail."""

    def fsync(descriptor: int) -> None:
        cut()
        disk.flushed(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


def snapshots(count: int) -> list[ClusterSnapshot]:
    return [small(taken_at=NOON + timedelta(hours=18 * number), leader=1 + number % 3) for number in range(count)]


@pytest.mark.parametrize("keep_names", [True, False])
def test_what_collect_reported_survives_a_cut_at_any_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_names: bool
) -> None:
    disk = Disk(tmp_path / "disk")
    disk.root.mkdir()
    done: list[ClusterSnapshot] = []
    cuts = checked = 0

    def cut() -> None:
        nonlocal cuts, checked
        cuts += 1
        if (cuts + keep_names) % EVERY:
            return
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda _descriptor: None)
            checked += 1
            left = tmp_path / f"left {checked}"
            disk.after_cut(left, keep_names=keep_names)
            if not done:
                return
            found = kept(create_warehouse(left / "warehouse"))
            assert len(found) >= len(done), (checked, len(found))
            assert all(mine.same_as(theirs) for mine, theirs in zip(found, snapshots(3), strict=False))
            if checked % 5 == 0:
                for one in snapshots(3):
                    store(one, create_warehouse(left / "warehouse"))
                assert len(kept(create_warehouse(left / "warehouse"))) == 3
            shutil.rmtree(left)

    monkeypatch.setattr(append_module, "VERSIONS_PER_CHECKPOINT", 2)
    with observed(disk, monkeypatch, cut):
        # The caller's own folder is there already; everything below it is collect's.
        disk.names[disk.root] = {"warehouse"}
        warehouse = create_warehouse(disk.root / "warehouse")
        for one in snapshots(3):
            store(one, warehouse)
            done.append(one)
            cut()
    assert cuts > 60
    assert checked >= cuts // EVERY > 15


def test_without_the_flush_before_a_commit_a_cut_loses_what_was_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model itself: it has to notice where a flush is missing."""
    disk = Disk(tmp_path / "disk")
    disk.root.mkdir()
    monkeypatch.setattr(append_module, "flush_file", lambda _table, _name: None)
    with observed(disk, monkeypatch, lambda: None):
        disk.names[disk.root] = {"warehouse"}
        store(small(), create_warehouse(disk.root / "warehouse"))
    disk.after_cut(tmp_path / "left", keep_names=True)
    with pytest.raises(Exception, match="cannot be read"):
        kept(create_warehouse(tmp_path / "left" / "warehouse"))


def test_columns_that_were_added_survive_a_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path / "disk")
    path = disk.root / "table"
    earlier, later = (pa.schema([pa.field(name, pa.string()) for name in names]) for names in ("a", "ab"))
    create_table(str(path), earlier, by_day=False)
    with observed(disk, monkeypatch, lambda: None):
        disk.names[disk.root] = {"table"}
        local_disk.flush_log(path)
        assert add_columns(DeltaTable(path), later) == 1
    disk.after_cut(tmp_path / "left", keep_names=True)
    table = DeltaTable(tmp_path / "left" / "table")
    assert (table.version(), [field.name for field in table.schema().fields]) == (1, ["a", "b"])


@pytest.mark.rest
def test_tables_in_force_survive_a_cut_at_any_flush_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path / "disk")
    disk.root.mkdir()
    wanted = {
        count: {
            name: expected.ordered(expected.table(name, snapshots(count), RackPolicy()), table.grain)
            for name, table in TABLES.items()
        }
        for count in (1, 2)
    }
    least, cuts, checked = 0, 0, 0

    def cut() -> None:
        nonlocal cuts, checked
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda _descriptor: None)
            if not least:
                return
            cuts += 1
            if cuts % at_depth(test=5, soak=1):
                return
            checked += 1
            left = tmp_path / f"left {checked}"
            disk.after_cut(left, keep_names=True)
            warehouse = create_warehouse(left / "warehouse")
            if checked % 4 == 0:
                plain_build.refresh(warehouse)
            try:
                found = {name: expected.judged_columns(rows(warehouse, name)) for name in TABLES}
            except InvalidWarehouse:
                # The row of `runs` that a cut has torn is removed by the next run, as other torn entries are.
                plain_build.refresh(warehouse)
                found = {name: expected.judged_columns(rows(warehouse, name)) for name in TABLES}
            assert found in [wanted[count] for count in (1, 2) if count >= least]
            shutil.rmtree(left)

    with observed(disk, monkeypatch, cut):
        disk.names[disk.root] = {"warehouse"}
        warehouse = create_warehouse(disk.root / "warehouse")
        for count in (1, 2):
            store(snapshots(2)[count - 1], warehouse)
            plain_build.refresh(warehouse)
            least = count
            cut()
    assert checked > 15


def test_a_restored_version_is_on_the_disk_before_a_run_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    store(snapshots(1)[0], warehouse)
    plain_build.refresh(warehouse)
    disk, judged = Disk(tmp_path), existing_table(warehouse, JUDGED.name)
    before = judged.version()
    with observed(disk, monkeypatch, lambda: None):
        runs.restore(warehouse, judged, JUDGED, 0)
    entry = Path(warehouse.table(JUDGED.name), "_delta_log", f"{before + 1:020}.json")
    assert disk.content[entry] == entry.read_bytes()
    assert entry.name in disk.names[entry.parent]


def on_the_disk(disk: Disk, log: Path) -> bool:
    """Whether the newest checkpoint and the hint that names it would be there after a cut."""
    files = [max(log.glob("*.checkpoint.parquet")), log / "_last_checkpoint"]
    return all(disk.content.get(file) == file.read_bytes() and file.name in disk.names.get(log, ()) for file in files)


def test_a_checkpoint_is_flushed_before_a_commit_returns_and_before_entries_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_module, "VERSIONS_PER_CHECKPOINT", 2)
    disk = Disk(tmp_path / "disk")
    disk.root.mkdir()
    log = disk.root / "warehouse" / "tables" / "snapshots" / "_delta_log"
    flushed: list[bool] = []
    monkeypatch.setattr(DeltaTable, "cleanup_metadata", lambda _table: flushed.append(on_the_disk(disk, log)))
    with observed(disk, monkeypatch, lambda: None):
        warehouse = create_warehouse(disk.root / "warehouse")
        for one in snapshots(2):
            store(one, warehouse)
        assert on_the_disk(disk, log)
        disk.content.clear()
        # Snapshots come first of all tables; the others have not been flushed by then.
        maintain(warehouse, now=lambda: NOON + timedelta(days=9))
    assert flushed[0]


def test_a_torn_entry_and_everything_after_it_is_renamed_and_whole_ones_stay(tmp_path: Path) -> None:
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    for version, content in enumerate((b"{}", b"{}", b'{"add":', b"{}")):
        (log / f"{version:020}.json").write_bytes(content)
    assert sorted(local_disk.repair_log(tmp_path / "table")) == [f"{version:020}.json" for version in (2, 3)]
    assert local_disk.repair_log(tmp_path / "table") == []
    assert sorted(entry.suffix for entry in log.iterdir()) == [".json", ".json", ".torn", ".torn"]


@pytest.mark.parametrize("harm", ["half", "zeros"])
def test_a_damaged_checkpoint_is_set_aside_with_its_hint_and_the_entries_before_it_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    monkeypatch.setattr(append_module, "VERSIONS_PER_CHECKPOINT", 2)
    warehouse = create_warehouse(tmp_path / "warehouse")
    for one in snapshots(2):
        store(one, warehouse)
    log = tmp_path / "warehouse" / "tables" / "snapshots" / "_delta_log"
    [checkpoint] = log.glob("*.checkpoint.parquet")
    content = checkpoint.read_bytes()
    half = len(content) // 2
    checkpoint.write_bytes(content[:half] if harm == "half" else content[:4] + bytes(half) + content[4 + half :])
    assert len(kept(create_warehouse(tmp_path / "warehouse"))) == 2
    assert {one.name for one in log.glob("*.torn")} == {f"{checkpoint.name}.torn", "_last_checkpoint.torn"}
