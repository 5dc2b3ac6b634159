"""Finds stored snapshots by the marker table `snapshots`: which there are, and which come before and after one.

The ids of snapshots sort by time, and a data file's statistics hold its least and greatest id, so only files that can
hold a wanted snapshot are opened.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.changes.known_time import with_known_until
from rackspan.pipeline.delta.table import DataFile, data_files, read_files, rows_by_day, snapshot_counts
from rackspan.pipeline.landing.rows import time_text
from rackspan.pipeline.schemas import SNAPSHOTS
from rackspan.pipeline.warehouse import Warehouse, existing_table, rows_kept

if TYPE_CHECKING:
    from deltalake import DeltaTable

READ: Final = pa.schema(
    [
        SNAPSHOTS.schema.field(name)
        for name in SNAPSHOTS.schema.names
        if name not in ("controllers", "controllers_alive")
    ]
)
LAST: Final = "~"
"""Sorts after every character of an id."""


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """One stored snapshot, by its row in `snapshots`. `members` is equal for equal cluster members."""

    snapshot_id: str
    cluster_id: str
    taken_at: datetime
    day: date
    topics: int
    partitions: int
    longest_list: int
    members: str
    known_until: datetime
    partial: tuple[str, ...] = ()
    base_id: str | None = None
    root_id: str | None = None
    unchanged: bool = False
    stored_rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows it has in each landing table. Empty for one of a release that counted none, which is whole."""

    def rows_in(self, table: str) -> int | None:
        """How many rows a landing table has of it; None where its marker does not say."""
        counted = {"topics": self.topics, "partitions": self.partitions, **self.stored_rows}
        return counted.get(table)


@dataclass(frozen=True, slots=True)
class Markers:
    """The stored snapshots of one version of the marker table. A reader that sets `damaged` goes on without damaged files."""

    table: "DeltaTable"
    files: Sequence[DataFile]
    hidden: Collection[str] = ()
    """Ids of snapshots that are left out."""
    damaged: dict[str, str] | None = None
    """Damaged files that were left out, as TABLE/PATH, with the reason."""
    chosen: Callable[[StoredSnapshot], bool] | None = None
    """Which snapshots count; every one where it is None."""
    read: dict[str, Sequence[StoredSnapshot]] = field(default_factory=dict)
    """The snapshots of data files that were read, by path."""
    filled: dict[str, datetime] = field(default_factory=dict)
    """`known_until` of every snapshot, by id, read only if some were stored without it."""

    def count_by_day(self) -> Mapping[date, int]:
        """How many snapshots each day has, from the log alone."""
        return rows_by_day(self.files)

    def of_days(self, days: Iterable[date]) -> list[StoredSnapshot]:
        """The snapshots of some days, in order of cluster and time."""
        wanted = set(days)
        return self._read([file for file in self.files if file.day in wanted])

    def between(self, first: datetime, last: datetime) -> list[StoredSnapshot]:
        """The snapshots of files that can hold one of these times or one between them, in order of cluster and time."""
        least, most = time_text(first), time_text(last) + LAST
        return self._read([file for file in self.files if file.may_hold(least, most)])

    def at(self, times: Iterable[datetime]) -> list[StoredSnapshot]:
        """The snapshots taken at exactly these times, of whatever cluster."""
        prefixes = {time_text(time) for time in times}
        files = [file for file in self.files if any(file.may_hold(prefix, prefix + LAST) for prefix in prefixes)]
        return [snapshot for snapshot in self._read(files) if time_text(snapshot.taken_at) in prefixes]

    def named(self, ids: Iterable[str]) -> list[StoredSnapshot]:
        """The snapshots with these ids that are stored, in order of cluster and time."""
        wanted = set(ids)
        if not wanted:
            return []
        least, most = min(wanted), max(wanted)
        files = [file for file in self.files if file.may_hold(least, most)]
        return [snapshot for snapshot in self._read(files) if snapshot.snapshot_id in wanted]

    def with_bases(self, stored: Iterable[StoredSnapshot]) -> dict[str, StoredSnapshot]:
        """Some snapshots and all that they build on, by id, in order of time. A base that is not stored is missing."""
        found = {snapshot.snapshot_id: snapshot for snapshot in stored}
        building = [snapshot for snapshot in found.values() if snapshot.root_id is not None]
        if not building:
            return found
        least = min(snapshot.root_id or "" for snapshot in building)
        most = max(snapshot.snapshot_id for snapshot in building)
        near = {
            snapshot.snapshot_id: snapshot
            for snapshot in self._read([file for file in self.files if file.may_hold(least, most)])
        }
        for snapshot in building:
            base = near.get(snapshot.base_id or "")
            while base is not None and base.snapshot_id not in found:
                found[base.snapshot_id] = base
                base = near.get(base.base_id or "")
        return dict(sorted(found.items()))

    def before(self, firsts: Mapping[str, datetime]) -> dict[str, StoredSnapshot]:
        """The last snapshot of each cluster before a time, where there is one."""
        return self._nearest(firsts, earlier=True)

    def after(self, lasts: Mapping[str, datetime]) -> dict[str, StoredSnapshot]:
        """The first snapshot of each cluster after a time, where there is one."""
        return self._nearest(lasts, earlier=False)

    def _nearest(self, times: Mapping[str, datetime], *, earlier: bool) -> dict[str, StoredSnapshot]:
        """Reads files outward from the given times, until no file left can hold a nearer snapshot."""
        found: dict[str, StoredSnapshot] = {}
        order = sorted(self.files, key=lambda file: (file.most if earlier else file.least) or "", reverse=earlier)
        for file in order:
            if len(found) == len(times) and not _in_reach(file, found.values(), earlier):
                break
            open_ends = [
                time for cluster, time in times.items() if _may_improve(file, time, found.get(cluster), earlier)
            ]
            if not open_ends:
                continue
            for snapshot in self._read([file]):
                time, best = times.get(snapshot.cluster_id), found.get(snapshot.cluster_id)
                if time is None or (snapshot.taken_at >= time if earlier else snapshot.taken_at <= time):
                    continue
                if best is None or (
                    snapshot.taken_at > best.taken_at if earlier else snapshot.taken_at < best.taken_at
                ):
                    found[snapshot.cluster_id] = snapshot
        return found

    def _read(self, files: Sequence[DataFile]) -> list[StoredSnapshot]:
        stored = (
            snapshot for file in files for snapshot in self.of_file(file) if snapshot.snapshot_id not in self.hidden
        )
        chosen = stored if self.chosen is None else filter(self.chosen, stored)
        return sorted(chosen, key=lambda snapshot: (snapshot.cluster_id, snapshot.taken_at))

    def of_file(self, file: DataFile) -> Sequence[StoredSnapshot]:
        """The snapshots of a file, hidden ones too; none of a damaged file that is left out."""
        if file.path not in self.read:
            try:
                if self.damaged is not None:
                    snapshot_counts(self.table, file)
                rows = [row for batch in read_files(self.table, [file], READ) for row in batch.to_pylist()]
            except InvalidWarehouse as error:
                if self.damaged is None:
                    raise
                self.damaged[f"{SNAPSHOTS.name}/{file.path}"] = str(error)
                return ()
            self.read[file.path] = [
                _stored(row, row["known_until"] or self._filled(row["snapshot_id"])) for row in rows
            ]
        return self.read[file.path]

    def _filled(self, identity: str) -> datetime:
        """`known_until` of a snapshot that was stored without it, by all that are stored."""
        if identity not in self.filled:
            schema = pa.schema([READ.field(name) for name in ("cluster_id", "taken_at", "snapshot_id", "known_until")])
            parts = [pa.Table.from_batches(self._batches(file, schema), schema) for file in self.files]
            rows = with_known_until(pa.concat_tables(parts))
            self.filled.update(zip(*(rows.column(name).to_pylist() for name in schema.names[2:]), strict=True))
        return self.filled[identity]

    def _batches(self, file: DataFile, schema: pa.Schema) -> list[pa.RecordBatch]:
        try:
            return list(read_files(self.table, [file], schema))
        except InvalidWarehouse:
            if self.damaged is None:
                raise
            return []


def _stored(row: Mapping[str, Any], known_until: datetime) -> StoredSnapshot:
    return StoredSnapshot(
        row["snapshot_id"],
        row["cluster_id"],
        row["taken_at"].astimezone(UTC),
        row["day"],
        row["topics"],
        row["partitions"],
        row["longest_list"],
        row["members"],
        known_until.astimezone(UTC),
        tuple(row["partial"] or ()),
        row["base_id"],
        row["root_id"],
        bool(row["unchanged"]),
        dict(row["stored_rows"] or ()),
    )


def _in_reach(file: DataFile, found: Iterable[StoredSnapshot], earlier: bool) -> bool:
    """Whether the file, or one after it in order, can hold a nearer snapshot of any cluster."""
    ids = [snapshot.snapshot_id for snapshot in found]
    if earlier:
        return file.most is None or file.most > min(ids)
    return file.least is None or file.least < max(ids)


def _may_improve(file: DataFile, time: datetime, best: StoredSnapshot | None, earlier: bool) -> bool:
    text = time_text(time)
    if earlier:
        in_reach = file.least is None or file.least < text
        return in_reach and (best is None or file.most is None or file.most > best.snapshot_id)
    in_reach = file.most is None or file.most > text + LAST
    return in_reach and (best is None or file.least is None or file.least < best.snapshot_id)


def read_markers(warehouse: Warehouse, *, skip_damaged: bool = False) -> Markers:
    """The stored snapshots as of now. Errors: InvalidWarehouse."""
    table = existing_table(warehouse, SNAPSHOTS.name)
    files = data_files(table)
    read = {} if warehouse.read is None else rows_kept(warehouse.read.snapshots, files)
    return Markers(table, files, damaged={} if skip_damaged else None, read=read)


def lost_rows(warehouse: Warehouse, gone: Collection[str]) -> dict[str, int]:
    """How many rows the stored snapshots have in landing tables that are gone; only tables in which they have any.

    Errors: InvalidWarehouse, UnreadableStore.
    """
    if not gone:
        return {}
    markers = read_markers(warehouse, skip_damaged=True)
    stored = markers.of_days(markers.count_by_day())
    counts = {name: sum(snapshot.rows_in(name) or 0 for snapshot in stored) for name in gone}
    return {name: count for name, count in counts.items() if count}
