"""Reads the rows of a table without Spark, at the version that the newest run names."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.pipeline.changes.at_each_snapshot import (
    VisibleSnapshot,
    by_cluster,
    refuse_without_zone,
    snapshot_rows,
    stored_columns,
    without_damaged,
)
from rackspan.pipeline.changes.difference import chain, key_codes
from rackspan.pipeline.changes.known_time import last_known, with_known_until
from rackspan.pipeline.delta.table import DataFile, data_files, read_files, snapshot_counts
from rackspan.pipeline.landing.names import has_names
from rackspan.pipeline.runs import Run, how_to_rebuild, last_run
from rackspan.pipeline.schemas import (
    CLUSTERS,
    CONTENT,
    DRIFT,
    JUDGED,
    LANDING,
    RUNS,
    SNAPSHOTS,
    TABLES,
    Table,
    table_named,
)
from rackspan.pipeline.schemas.hours import BILL, HOURLY, OF_STATES, TRAFFIC
from rackspan.pipeline.schemas.readings import OF_READINGS, READINGS
from rackspan.pipeline.warehouse import Warehouse, existing_table, naming_check
from rackspan.text import count_noun, utc_text

if TYPE_CHECKING:
    from deltalake import DeltaTable

BATCH_ROWS: Final = 10_000
JOINED_ROWS: Final = 65_536
AT_ONCE: Final = 1_000_000
"""Rows that are sorted in memory. A larger table is read a cluster and day at a time."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """A version of a table: the files to read, damaged ones, and the snapshots that have rows at each of them."""

    table: Table
    opened: "DeltaTable"
    files: Sequence[DataFile]
    left_out: Sequence[DataFile] = ()
    visible: Sequence[VisibleSnapshot] = ()
    """Of a table of changes: the snapshots without those of damaged files."""

    @property
    def rows(self) -> int:
        """The rows that are stored."""
        return sum(file.rows for file in self.files)

    def stored(self, schema: pa.Schema, files: Sequence[DataFile] | None = None) -> Iterator[pa.RecordBatch]:
        """The columns of `schema` as they are stored. Errors: InvalidWarehouse, naming the file."""
        return read_files(self.opened, self.files if files is None else files, schema, left_out=self.left_out)

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows at each snapshot, in any order. Errors: InvalidWarehouse, naming the file."""
        if not self.table.as_changes:
            yield from self.stored(pa.schema([self.table.schema.field(name) for name in columns]))
            return
        for rows in _joined(self.at_each_snapshot(columns)):
            yield from rows.to_batches()

    def at_each_snapshot(self, columns: Sequence[str], only: Collection[str] | None = None) -> Iterator[pa.Table]:
        """Some columns of the rows at each snapshot, or only at those with some ids, in order of cluster and time."""
        schema = stored_columns(self.table, columns)
        if self.rows <= AT_ONCE:
            stored = pa.Table.from_batches(self._of(schema, self.files, only), schema)
            every = [snapshot for of_cluster in by_cluster(self.visible).values() for snapshot in of_cluster]
            yield from snapshot_rows(self.table, columns, stored, every, only)
            return
        for of_cluster in by_cluster(self.visible).values():
            for day, of_day in groupby(of_cluster, key=lambda snapshot: snapshot.day):
                snapshots = list(of_day)
                if only is not None and not any(snapshot.snapshot_id in only for snapshot in snapshots):
                    continue
                files = [file for file in self.files if file.day == day]
                ids = sorted(snapshot.snapshot_id for snapshot in snapshots)
                stored = pa.Table.from_batches(read_files(self.opened, files, schema, ids), schema)
                yield from snapshot_rows(self.table, columns, stored, snapshots, only)

    def _of(
        self, schema: pa.Schema, files: Sequence[DataFile], only: Collection[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """Stored rows: all, or those that the snapshots with some ids are made of."""
        if only is None:
            return read_files(self.opened, files, schema)
        bases = {snapshot.snapshot_id: snapshot.base_id for snapshot in self.visible}
        ids = sorted({identity for snapshot_id in only for identity in chain(snapshot_id, bases)})
        near = [file for file in files if ids and file.may_hold(ids[0], ids[-1])]
        return read_files(self.opened, near, schema, ids)


def table_files(
    warehouse: Warehouse, table: Table, run: Run | None, left_out: Callable[[str], None] | None = None
) -> TableFiles:
    """A table as a run left it. With `left_out`, it gets a line for each damaged file, which is not read then.

    Errors: InvalidWarehouse where no run has made the table yet.
    """
    opened = existing_table(warehouse, table.name, version_in_force(warehouse, table, run))
    whole, damaged = list(data_files(opened)), list[DataFile]()
    if left_out is not None and table not in (RUNS, CLUSTERS):
        whole, damaged = _without_damaged(warehouse, table, opened, left_out)
    visible = without_damaged(visible_snapshots(warehouse, table, run), damaged) if table.as_changes else ()
    return TableFiles(table, opened, whole, damaged, visible)


def visible_snapshots(warehouse: Warehouse, table: Table, run: Run | None) -> list[VisibleSnapshot]:
    """The snapshots that have rows in a table of changes: stored ones in a landing table, judged ones in a derived table."""
    of = SNAPSHOTS if table.name in LANDING else JUDGED
    opened = existing_table(warehouse, of.name, version_in_force(warehouse, of, run))
    names = [field.name for field in fields(VisibleSnapshot)]
    schema = pa.schema([of.schema.field(name) for name in names])
    rows = with_known_until(pa.Table.from_batches(read_files(opened, data_files(opened), schema), schema))
    return [
        VisibleSnapshot(**{**row, **{name: row[name].astimezone(UTC) for name in ("taken_at", "known_until")}})
        for row in rows.to_pylist()
    ]


def _without_damaged(
    warehouse: Warehouse, table: Table, opened: "DeltaTable", left_out: Callable[[str], None]
) -> tuple[list[DataFile], list[DataFile]]:
    whole, damaged = [], []
    for file in data_files(opened):
        try:
            snapshot_counts(opened, file)
            whole.append(file)
        except InvalidWarehouse as error:
            damaged.append(file)
            left_out(
                f"{error}; snapshots {file.least} to {file.most} are left out; {how_to_repair(warehouse, table.name)}"
            )
    return whole, damaged


def how_to_repair(warehouse: Warehouse, name: str) -> str:
    """The command for a table with a damaged file, as the end of a message."""
    if name in LANDING:
        return f"rackspan pipeline check --warehouse {warehouse.root} shows what to do"
    return how_to_rebuild(warehouse, name)


def rows(
    warehouse: Warehouse,
    name: str,
    limit: int | None = None,
    left_out: Callable[[str], None] | None = None,
    *,
    changes: bool = False,
    at: datetime | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of a table at each snapshot as JSON values, sorted by the grain, at most `limit`.

    With `changes`, the rows as they are stored; with `at`, those at the last snapshot of each cluster until then, unless it is too
    long ago to say anything of that time. With `left_out`, snapshots of damaged files are left out, and it gets a line for each
    file. Errors: UsageError for an unknown table, or one without times; InvalidWarehouse where no run has made it yet.
    """
    table = table_named(name)
    if table is CLUSTERS and not has_names(warehouse):
        return iter(())
    files = table_files(warehouse, table, last_run(warehouse), left_out)
    if at is not None:
        parts = as_of(warehouse, files, at)
    elif changes:
        parts = sorted_batches(warehouse, replace(files, table=replace(table, as_changes=False)))
    else:
        parts = sorted_batches(warehouse, files)
    maps = [field.name for field in table.schema if pa.types.is_map(field.type)]
    batches = (batch for part in parts for batch in part.to_batches(max_chunksize=BATCH_ROWS))
    return islice((_as_json(row, maps) for batch in batches for row in batch.to_pylist()), limit)


def column_names(name: str, *, changes: bool = False) -> list[str]:
    """The columns of what `rows` returns. Errors: UsageError for an unknown table."""
    table = table_named(name)
    names: list[str] = (table if changes else table.at_each_snapshot).schema.names
    return names


def why_no_rows(warehouse: Warehouse, name: str, at: datetime | None = None) -> str:
    """Why `rows` has none: what has to be stored or judged first, or that there is nothing to show. Errors: as of `rows`."""
    table, run = table_named(name), last_run(warehouse)
    if at is not None:
        known = by_cluster(table_files(warehouse, table, run).visible).values()
        if all(last_known(of_cluster, at) is None for of_cluster in known):
            return "no cluster has a snapshot at that time, or near enough before it"
        return "no rows at that time"
    if name in OF_READINGS or (name in HOURLY and name not in OF_STATES):
        readings = _times(warehouse, READINGS, run)
        if not readings:
            return "no reading is stored yet: rackspan pipeline collect --traffic-every SECONDS takes them"
        if name in (TRAFFIC.name, BILL.name) and max(map(len, readings.values())) < 2:
            return "no cluster has two readings yet: what passed between them is known from the second on"
        if name == BILL.name and (run is None or run.prices is None):
            return "the last run had no prices: rackspan pipeline run --prices FILE makes the bill"
        return f"no rows of {count_noun(sum(map(len, readings.values())), 'reading')}"
    judged = _times(warehouse, SNAPSHOTS if name in LANDING else JUDGED, run)
    if name in OF_STATES and all(_in_one_hour(times) for times in judged.values()):
        return "no hour has ended yet: an hour has rows once a snapshot after it is judged"
    if name == DRIFT.name and all(len(times) < 2 for times in judged.values()):
        return "no cluster has two snapshots yet"
    return f"no rows of {count_noun(sum(map(len, judged.values())), 'snapshot')}"


def _times(warehouse: Warehouse, table: Table, run: Run | None) -> dict[str, list[datetime]]:
    """When the rows of a table with a row a snapshot were taken, by cluster."""
    found: dict[str, list[datetime]] = {}
    for batch in table_files(warehouse, table, run).read(("cluster_id", "taken_at")):
        for cluster_id, at in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            found.setdefault(cluster_id, []).append(at)
    return found


def _in_one_hour(times: Iterable[datetime]) -> bool:
    return len({at.replace(minute=0, second=0, microsecond=0) for at in times}) < 2


def as_of(warehouse: Warehouse, files: TableFiles, at: datetime) -> Iterator[pa.Table]:
    """The rows of a table of changes at a time: of each cluster those at its last snapshot until then.

    A cluster of which nothing is known at that time has no rows. Errors: UsageError for a table that has no rows at each snapshot, or a time without a zone.
    """
    if not files.table.as_changes:
        named = ", ".join(table.name for table in (*TABLES.values(), *CONTENT) if table.as_changes)
        raise UsageError(f"table {files.table.name}: has no rows as of a time; those that have are {named}")
    refuse_without_zone(at)
    only = {
        last.snapshot_id
        for of_cluster in by_cluster(files.visible).values()
        for last in [last_known(of_cluster, at)]
        if last is not None
    }
    with naming_check(warehouse):
        view = files.table.at_each_snapshot
        for rows in files.at_each_snapshot(view.schema.names, only):
            yield in_order(rows, view.grain)


def version_in_force(warehouse: Warehouse, table: Table, run: Run | None) -> int | None:
    """The version of a table that belongs to a run; None for the newest one. Errors: InvalidWarehouse before the first run."""
    if table.name in LANDING or table is CLUSTERS:
        return None
    if run is None or (table is not RUNS and table.name not in run.versions):
        raise InvalidWarehouse(
            f"{warehouse.root}: has no table {table.name} yet; run rackspan pipeline run --warehouse {warehouse.root}"
        )
    return None if table is RUNS else run.versions[table.name]


def in_order(rows: pa.Table, grain: Sequence[str]) -> pa.Table:
    """The rows, sorted by these columns, nulls first, as in Spark."""
    rows = rows.combine_chunks()
    return rows.take(pa.array(np.argsort(key_codes(rows, grain), kind="stable")))


def sorted_batches(warehouse: Warehouse, files: TableFiles) -> Iterator[pa.Table]:
    """The rows of a table at each snapshot in order of its grain, in parts that fit into memory. Errors: InvalidWarehouse."""
    table = files.table
    with naming_check(warehouse):
        if table.as_changes:
            view = table.at_each_snapshot
            yield from _joined(in_order(rows, view.grain) for rows in files.at_each_snapshot(view.schema.names))
            return
        if files.rows <= AT_ONCE:
            yield _part(warehouse, files, files.files)
            return
        by_day = {day: list(ones) for day, ones in groupby(sorted(files.files, key=_day), key=_day)}
        for cluster_id in _clusters(warehouse, files.table):
            for ones in by_day.values():
                yield _part(warehouse, files, ones, cluster_id)


def _joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of JOINED_ROWS and more: those of many small snapshots in one."""
    waiting: list[pa.Table] = []
    for rows in tables:
        waiting.append(rows)
        if sum(map(len, waiting)) >= JOINED_ROWS:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _part(
    warehouse: Warehouse, whole: TableFiles, files: Sequence[DataFile], cluster_id: str | None = None
) -> pa.Table:
    """The stored rows of some files in order, only those of one cluster if it is given."""
    table = whole.table
    read = pa.Table.from_batches(whole.stored(table.schema, files), table.schema)
    if cluster_id is not None:
        read = read.filter(pc.equal(read["cluster_id"], cluster_id))
    if table.name in LANDING and table.name != SNAPSHOTS.name:
        # Rows without a marker belong to a collect that was killed, or that is at work.
        read = read.filter(pc.is_in(read["snapshot_id"], _stored_ids(warehouse, {file.day for file in files})))
    return in_order(read, table.grain)


def _stored_ids(warehouse: Warehouse, days: set[date | None]) -> pa.Array:
    markers = existing_table(warehouse, SNAPSHOTS.name)
    files = [file for file in data_files(markers) if file.day in days]
    schema = pa.schema([SNAPSHOTS.schema.field("snapshot_id")])
    return pa.Table.from_batches(read_files(markers, files, schema), schema)["snapshot_id"].combine_chunks()


def _clusters(warehouse: Warehouse, table: Table) -> list[str]:
    of = SNAPSHOTS if table.name in LANDING else JUDGED
    run = None if of is SNAPSHOTS else last_run(warehouse)
    opened = existing_table(warehouse, of.name, version_in_force(warehouse, of, run))
    batches = read_files(opened, data_files(opened), pa.schema([of.schema.field("cluster_id")]))
    return sorted({cluster_id for batch in batches for cluster_id in pc.unique(batch.column("cluster_id")).to_pylist()})


def _day(file: DataFile) -> date:
    return file.day or date.min


def _as_json(row: dict[str, Any], maps: Sequence[str]) -> dict[str, Any]:
    return {name: dict(value or ()) if name in maps else _json_value(value) for name, value in row.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return utc_text(value)
    return value.isoformat() if isinstance(value, date) else value
