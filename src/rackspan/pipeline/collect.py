"""Stores snapshots in a warehouse: each one atomically, each one once.

Begin with store(). The caller provides the sources: a source is a name and a function that reads a snapshot.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rackspan.disk import to_disk
from rackspan.errors import InvalidSnapshot, InvalidWarehouse, RackspanError, UsageError
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.pipeline.warehouse import Warehouse, claimed_staging, snapshot_folder, sweep_staging
from rackspan.sources import snapshot_file
from rackspan.sources.snapshot_folder import write_folder
from rackspan.sources.source import Source


@dataclass(frozen=True, slots=True)
class SnapshotLocation:
    """The folder of a stored snapshot. `new` is false where the warehouse had it already."""

    path: Path
    new: bool


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of reading one source once: `stored`, or the `error` that prevented it."""

    source: str
    stored: SnapshotLocation | None = None
    warnings: tuple[str, ...] = ()
    error: RackspanError | None = None


def store(snapshot: ClusterSnapshot, warehouse: Warehouse) -> SnapshotLocation:
    """Store a snapshot. Storing an equal one again changes nothing.

    Errors: InvalidSnapshot where cluster id or time are missing, or where a different one with the same time exists;
    InvalidWarehouse where the folder cannot be written.
    """
    cluster_id, taken_at = _key(snapshot)
    folder = snapshot_folder(warehouse, cluster_id, taken_at)
    if folder.exists():
        return _already_there(snapshot, folder)
    try:
        return _put(snapshot, warehouse, folder)
    except OSError as error:
        raise InvalidWarehouse(f"{warehouse.root}: cannot be written: {error.strerror}; make room or rights") from None


def from_folder(folder: Path) -> Iterator[Source]:
    """A source for every snapshot in a folder, by name: .json files and Parquet folders. Errors: UsageError for none."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; name one that holds snapshots")
    snapshots = [entry for entry in sorted(folder.iterdir()) if _may_be_snapshot(entry)]
    if not snapshots:
        raise UsageError(f"{folder}: holds no snapshots (files that end in .json, or Parquet folders); name another")
    return (Source(str(path), lambda path=path: snapshot_file.read(path)) for path in snapshots)  # type: ignore[misc]


def collect(sources: Iterable[Source], warehouse: Warehouse) -> Iterator[Collected]:
    """Read every source once and store its snapshot. A source that fails does not stop the others."""
    sweep_staging(warehouse)
    for source in sources:
        try:
            yield _collected(source, warehouse)
        except RackspanError as error:
            yield Collected(source.name, error=error)


def collect_every(
    sources: list[Source],
    warehouse: Warehouse,
    seconds: float,
    *,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[Collected]:
    """Collect in rounds, one every `seconds` by the clock `now`, until the caller stops iterating.

    A round that takes longer than the interval is followed by the next one at once; missed rounds are not repeated.
    """
    due = now()
    while True:
        yield from collect(sources, warehouse)
        due = max(due + seconds, now())
        sleep(max(0.0, due - now()))


def _collected(source: Source, warehouse: Warehouse) -> Collected:
    read = source.read()
    try:
        return Collected(source.name, store(read.snapshot, warehouse), (*read.warnings, *read.snapshot.partial))
    except InvalidSnapshot as error:
        raise InvalidSnapshot(f"{source.name}: {error}") from None


def _key(snapshot: ClusterSnapshot) -> tuple[str, datetime]:
    if not snapshot.cluster_id:
        raise InvalidSnapshot(
            'cluster_id is missing, and a warehouse is ordered by it; add "cluster_id" to the snapshot, or take it again'
        )
    if snapshot.taken_at is None:
        raise InvalidSnapshot(
            'taken_at is missing, and a warehouse is ordered by it; add "taken_at" to the snapshot, or take it again'
        )
    return snapshot.cluster_id, snapshot.taken_at


def _put(snapshot: ClusterSnapshot, warehouse: Warehouse, folder: Path) -> SnapshotLocation:
    with claimed_staging(warehouse) as claim:
        staged = claim / "snapshot"
        write_folder(snapshot, staged)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            staged.rename(folder)
        except OSError:
            # A rename does not replace a folder with content: another process stored the snapshot first.
            if not folder.exists():
                raise
            return _already_there(snapshot, folder)
        for parent in (folder.parent, folder.parent.parent, warehouse.snapshots):
            to_disk(parent)
    return SnapshotLocation(folder, new=True)


def _already_there(snapshot: ClusterSnapshot, folder: Path) -> SnapshotLocation:
    if not snapshot_file.read(folder).snapshot.same_as(snapshot):
        raise InvalidSnapshot(
            f"another snapshot of this cluster and moment is kept already, and it differs: {folder}; "
            "correct taken_at, or remove that folder"
        )
    return SnapshotLocation(folder, new=False)


def _may_be_snapshot(entry: Path) -> bool:
    return entry.suffix == ".json" if entry.is_file() else (entry / "cluster.parquet").is_file()
