"""The folders of a warehouse: stored snapshots, work in progress, tables, and the locks that protect them.

    DIR/snapshots/cluster_id=…/day=…/taken_at=…/   one Parquet snapshot each, renamed into place, never changed
    DIR/staging/…                                  work in progress; a dead process's folder is removed by the next
    DIR/tables/NAME/cluster_id=…/day=…/….parquet   data files; only those the manifest names are in force
    DIR/tables/NAME/cluster_id=…/month=…/….parquet a month that is over, in one file (compaction.py)
    DIR/tables/manifest.json                       renamed last (manifest.py)
    DIR/.lock                                      held by the active `run`

It does not use Spark.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import paths
from rackspan.sources.snapshot_folder import SCHEMAS

SNAPSHOT_FILES = tuple(f"{name}.parquet" for name in SCHEMAS)


@dataclass(frozen=True, slots=True, order=True)
class Day:
    """One cluster's UTC day: the unit in which tables are made and replaced. `day` is YYYY-MM-DD."""

    cluster_id: str
    day: str

    @property
    def folder(self) -> Path:
        """Below `snapshots` or below a table."""
        return Path(paths.pair("cluster_id", self.cluster_id), paths.pair("day", self.day))


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """One snapshot of a warehouse, by its folder; its files have not been read."""

    day: Day
    taken_at: datetime
    folder: Path


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A warehouse folder that `open_warehouse` or `create_warehouse` has checked."""

    root: Path

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def tables(self) -> Path:
        return self.root / "tables"


def open_warehouse(root: Path) -> Warehouse:
    """An existing warehouse. Errors: InvalidWarehouse."""
    if not root.is_dir():
        raise InvalidWarehouse(
            f"{root}: no such folder; fill it first with rackspan pipeline collect --warehouse {root}"
        )
    if not (root / "snapshots").is_dir():
        raise InvalidWarehouse(
            f"{root}: not a warehouse (it has no folder snapshots); fill one with rackspan pipeline collect --warehouse DIR"
        )
    return Warehouse(root.absolute())


def create_warehouse(root: Path) -> Warehouse:
    """An existing warehouse, or a new one in a new or empty folder. Errors: InvalidWarehouse."""
    if (root / "snapshots").is_dir():
        return open_warehouse(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        if next(root.iterdir(), None) is not None:
            raise InvalidWarehouse(f"{root}: holds other files and is no warehouse; name a new or an empty folder")
        (root / "snapshots").mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidWarehouse(f"{root}: cannot be written: {error.strerror}; choose another --warehouse") from None
    return open_warehouse(root)


def stored_snapshots(warehouse: Warehouse) -> dict[Day, list[StoredSnapshot]]:
    """All snapshots by day, each day's in order of time. Folders with other names are ignored."""
    snapshots: dict[Day, list[StoredSnapshot]] = {}
    for cluster_id, cluster in _values("cluster_id", warehouse.snapshots):
        for day, folder in _values("day", cluster):
            stored = [_stored(Day(cluster_id, day), text, path) for text, path in _values("taken_at", folder)]
            if stored:
                snapshots[Day(cluster_id, day)] = sorted(stored, key=lambda one: one.taken_at)
    return dict(sorted(snapshots.items()))


def snapshot_folder(warehouse: Warehouse, cluster_id: str, taken_at: datetime) -> Path:
    """The folder of a snapshot with this cluster and time."""
    day = Day(cluster_id, paths.day_text(taken_at))
    return warehouse.snapshots / day.folder / paths.pair("taken_at", paths.timestamp_text(taken_at))


@contextmanager
def claimed_staging(warehouse: Warehouse) -> Iterator[Path]:
    """A new folder below `staging`, locked for this block and removed afterwards."""
    with _staging_guard(warehouse):
        claim = warehouse.staging / secrets.token_hex(8)
        claim.mkdir()
        owner = _locked(claim / ".owner")
    try:
        yield claim
    finally:
        shutil.rmtree(claim, ignore_errors=True)
        os.close(owner)


def sweep_staging(warehouse: Warehouse) -> None:
    """Remove the folders of dead processes. The kernel releases a dead owner's lock, so a locked folder is in use."""
    with _staging_guard(warehouse):
        for claim in [entry for entry in warehouse.staging.iterdir() if entry.is_dir()]:
            with suppress(BlockingIOError, FileNotFoundError):
                owner = _locked(claim / ".owner")
                shutil.rmtree(claim, ignore_errors=True)
                os.close(owner)


@contextmanager
def only_run(warehouse: Warehouse) -> Iterator[None]:
    """Hold the warehouse's lock for a block. Errors: InvalidWarehouse at once where another run holds it."""
    try:
        lock = _locked(warehouse.root / ".lock")
    except BlockingIOError:
        raise InvalidWarehouse(
            f"{warehouse.root}: another rackspan pipeline run is at work here; run again when it is done"
        ) from None
    except OSError as error:
        raise InvalidWarehouse(f"{warehouse.root}: cannot be written: {error.strerror}; correct its rights") from None
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _staging_guard(warehouse: Warehouse) -> Iterator[None]:
    """A lock held briefly: between creating a folder and locking it, no other process may remove it."""
    warehouse.staging.mkdir(exist_ok=True)
    guard = _locked(warehouse.staging / ".guard", wait=True)
    try:
        yield
    finally:
        os.close(guard)


def _locked(file: Path, *, wait: bool = False) -> int:
    """A descriptor that holds the file's lock until it is closed. Errors: BlockingIOError where another process has it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _values(key: str, folder: Path) -> Iterable[tuple[str, Path]]:
    for entry in folder.iterdir():
        value = paths.value_of(key, entry.name)
        if value is not None and entry.is_dir():
            yield value, entry


def _stored(day: Day, text: str, folder: Path) -> StoredSnapshot:
    taken_at = paths.timestamp_of(text)
    if taken_at is None or paths.day_text(taken_at) != day.day:
        raise InvalidWarehouse(f"{folder}: no moment of {day.day}; it was moved by hand: move it back or away")
    for name in SNAPSHOT_FILES:
        if not (folder / name).is_file():
            raise InvalidWarehouse(f"{folder}: {name} is missing; remove the folder and collect the snapshot again")
    return StoredSnapshot(day, taken_at, folder)
