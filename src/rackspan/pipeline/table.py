"""Reads the rows of a table without Spark, from the Parquet files that the manifest names."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.errors import InvalidWarehouse
from rackspan.model.json_format import utc_text
from rackspan.pipeline.manifest import Manifest, TableDay, read_manifest
from rackspan.pipeline.schemas import Table, table_named
from rackspan.pipeline.warehouse import Day, Warehouse

BATCH_ROWS: Final = 10_000


def rows(warehouse: Warehouse, name: str, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a table as JSON values, sorted by the grain, at most `limit`.

    Days are read one at a time, those of a month in one file together, so no more is in memory. Errors: UsageError for an
    unknown table, InvalidWarehouse where no run has made it yet or where its version is another one.
    """
    table = table_named(name)
    days = in_force(warehouse, read_manifest(warehouse), table)
    # Ordered by cluster and day, files are in order of the grain, which begins with cluster and time.
    files = dict.fromkeys(one.files for _day, one in sorted(days.items()))
    return islice((row for names in files for row in _day_rows(warehouse, table, names, limit)), limit)


def in_force(warehouse: Warehouse, manifest: Manifest, table: Table) -> Mapping[Day, TableDay]:
    """The days of a table that readers may read. Errors: InvalidWarehouse for none, or for rows of another version."""
    days = manifest.tables.get(table.name)
    if days is None:
        raise InvalidWarehouse(
            f"{warehouse.root}: has no table {table.name} yet; run rackspan pipeline run --warehouse {warehouse.root}"
        )
    for day, one in days.items():
        _check_version(warehouse, table, day, one)
    return days


def _day_rows(
    warehouse: Warehouse, table: Table, files: tuple[str, ...], limit: int | None
) -> Iterator[dict[str, Any]]:
    parts = [_head(warehouse.tables / file, table, limit) for file in files]
    if parts:
        ordered = in_order(pa.concat_tables(parts), table) if len(parts) > 1 else parts[0]
        for batch in ordered.to_batches(max_chunksize=BATCH_ROWS):
            yield from map(_as_json, batch.to_pylist())


def in_order(rows: pa.Table, table: Table) -> pa.Table:
    """The rows, sorted by the grain."""
    # Nulls first, as in Spark; Arrow's argument for that differs between versions, so it is a sort key of its own.
    keys: dict[str, pa.ChunkedArray] = {}
    order = []
    for name in table.grain:
        column = rows.column(name)
        if pa.types.is_list(column.type):
            # Arrow cannot sort lists. No name has the character \0, and the length distinguishes [] from [""].
            keys |= {name: pc.binary_join(column, "\0"), f"{name} length": pc.list_value_length(column)}
            order += [(name, "ascending"), (f"{name} length", "ascending")]
            continue
        keys |= {f"{name} is null": column.is_null(), name: column}
        order += [(f"{name} is null", "descending"), (name, "ascending")]
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=order))


def _head(file: Path, table: Table, limit: int | None) -> pa.Table:
    """A file's rows, or its first ones: each file is sorted by the grain, so a day's first are among its files' first."""
    try:
        parquet = pq.ParquetFile(file)
        return (parquet.read() if limit is None else _first_rows(parquet, limit)).cast(table.schema)
    except FileNotFoundError:
        raise InvalidWarehouse(
            f"{file}: is gone; if two runs have ended since this command began, run it again"
        ) from None
    except (OSError, ValueError, pa.ArrowException) as error:
        words = " ".join(str(error).split())
        raise InvalidWarehouse(f"{file}: cannot be read: {words}; remove it and run the pipeline anew") from None


def _first_rows(parquet: pq.ParquetFile, limit: int) -> pa.Table:
    batches, missing = [], limit
    for batch in parquet.iter_batches(batch_size=BATCH_ROWS):
        batches.append(batch[:missing])
        missing -= len(batches[-1])
        if not missing:
            break
    return pa.Table.from_batches(batches, parquet.schema_arrow)


def _check_version(warehouse: Warehouse, table: Table, day: Day, one: TableDay) -> None:
    if one.schema_version != table.version:
        raise InvalidWarehouse(
            f"{warehouse.root}: {table.name} of {day.day} has schema version {one.schema_version}, but this rackspan reads "
            f"{table.version}; {_remedy(warehouse, table, day, one)}"
        )


def _remedy(warehouse: Warehouse, table: Table, day: Day, one: TableDay) -> str:
    if one.schema_version > table.version:
        return "use the rackspan that wrote it"
    if not (warehouse.snapshots / day.folder).is_dir():
        return (
            f"the snapshots of {day.cluster_id} are gone, so put them back and run, or use the rackspan that wrote it"
        )
    return f"run rackspan pipeline run --warehouse {warehouse.root}"


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    return {name: utc_text(value) if isinstance(value, datetime) else value for name, value in row.items()}
