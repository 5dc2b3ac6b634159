"""Reads the rows of a table without Spark, at the version that the newest run names."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.table import DataFile, data_files, read_files, snapshot_counts
from rackspan.pipeline.runs import Run, how_to_rebuild, last_run
from rackspan.pipeline.schemas import JUDGED, LANDING, RUNS, SNAPSHOTS, Table, table_named
from rackspan.pipeline.warehouse import Warehouse, existing_table, naming_check
from rackspan.text import utc_text

if TYPE_CHECKING:
    from deltalake import DeltaTable

BATCH_ROWS: Final = 10_000
AT_ONCE: Final = 1_000_000
"""Rows that are sorted in memory. A larger table is read a cluster and day at a time."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """A version of a table: the files to read, and damaged ones, whose snapshots are left out."""

    table: Table
    opened: "DeltaTable"
    files: Sequence[DataFile]
    left_out: Sequence[DataFile] = ()

    def read(self, schema: pa.Schema, files: Sequence[DataFile] | None = None) -> Iterator[pa.RecordBatch]:
        """The columns of `schema`, of some of the files if they are given. Errors: InvalidWarehouse, naming the file."""
        return read_files(self.opened, self.files if files is None else files, schema, left_out=self.left_out)


def table_files(
    warehouse: Warehouse, table: Table, opened: "DeltaTable", left_out: Callable[[str], None] | None = None
) -> TableFiles:
    """The files of a version of a table. With `left_out`, it gets a line for each damaged file, which is not read then."""
    files = data_files(opened)
    if left_out is None or table is RUNS:
        return TableFiles(table, opened, files)
    whole, damaged = [], []
    for file in files:
        try:
            snapshot_counts(opened, file)
            whole.append(file)
        except InvalidWarehouse as error:
            damaged.append(file)
            left_out(
                f"{error}; snapshots {file.least} to {file.most} are left out; {how_to_repair(warehouse, table.name)}"
            )
    return TableFiles(table, opened, whole, damaged)


def how_to_repair(warehouse: Warehouse, name: str) -> str:
    """The command for a table with a damaged file, as the end of a message."""
    if name in LANDING:
        return f"rackspan pipeline check --warehouse {warehouse.root} shows what to do"
    return how_to_rebuild(warehouse, name)


def rows(
    warehouse: Warehouse, name: str, limit: int | None = None, left_out: Callable[[str], None] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of a table as JSON values, sorted by the grain, at most `limit`.

    With `left_out`, snapshots of damaged files are left out, and it gets a line for each file.
    Errors: UsageError for an unknown table, InvalidWarehouse where no run has made it yet.
    """
    table = table_named(name)
    opened = table_in_force(warehouse, table)
    maps = [field.name for field in table.schema if pa.types.is_map(field.type)]
    batches = (
        batch
        for part in sorted_batches(warehouse, table_files(warehouse, table, opened, left_out))
        for batch in part.to_batches(max_chunksize=BATCH_ROWS)
    )
    return islice((_as_json(row, maps) for batch in batches for row in batch.to_pylist()), limit)


def table_in_force(warehouse: Warehouse, table: Table) -> "DeltaTable":
    """A table at the version that readers read. Errors: InvalidWarehouse where no run has made it yet."""
    run = None if table.name in LANDING else last_run(warehouse)
    return existing_table(warehouse, table.name, version_in_force(warehouse, table, run))


def version_in_force(warehouse: Warehouse, table: Table, run: Run | None) -> int | None:
    """The version of a table that belongs to a run; None for the newest one. Errors: InvalidWarehouse before the first run."""
    if table.name in LANDING:
        return None
    if run is None or (table is not RUNS and table.name not in run.versions):
        raise InvalidWarehouse(
            f"{warehouse.root}: has no table {table.name} yet; run rackspan pipeline run --warehouse {warehouse.root}"
        )
    return None if table is RUNS else run.versions[table.name]


def in_order(rows: pa.Table, grain: Sequence[str]) -> pa.Table:
    """The rows, sorted by these columns."""
    # Nulls first, as in Spark; Arrow's argument for that differs between versions, so it is a sort key of its own.
    keys: dict[str, pa.ChunkedArray] = {}
    order = []
    for name in grain:
        column = rows.column(name)
        if pa.types.is_list(column.type):
            # Arrow cannot sort lists. No name has the character \0, and the length distinguishes [] from [""].
            keys |= {name: pc.binary_join(column, "\0"), f"{name} length": pc.list_value_length(column)}
            order += [(name, "ascending"), (f"{name} length", "ascending")]
            continue
        keys |= {f"{name} is null": column.is_null(), name: column}
        order += [(f"{name} is null", "descending"), (name, "ascending")]
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=order))


def sorted_batches(warehouse: Warehouse, files: TableFiles) -> Iterator[pa.Table]:
    """The rows of a table in order of its grain, in parts that fit into memory. Errors: InvalidWarehouse."""
    with naming_check(warehouse):
        if sum(file.rows for file in files.files) <= AT_ONCE:
            yield _part(warehouse, files, files.files)
            return
        by_day = {day: list(ones) for day, ones in groupby(sorted(files.files, key=_day), key=_day)}
        for cluster_id in _clusters(warehouse, files.table):
            for ones in by_day.values():
                yield _part(warehouse, files, ones, cluster_id)


def _part(
    warehouse: Warehouse, whole: TableFiles, files: Sequence[DataFile], cluster_id: str | None = None
) -> pa.Table:
    """The rows of some files in order, those of one cluster alone if it is given."""
    table = whole.table
    read = pa.Table.from_batches(whole.read(table.schema, files), table.schema)
    if cluster_id is not None:
        read = read.filter(pc.equal(read["cluster_id"], cluster_id))
    if table.name in LANDING and table is not SNAPSHOTS:
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
    opened = table_in_force(warehouse, of)
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
