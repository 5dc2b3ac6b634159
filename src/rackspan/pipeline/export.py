"""Writes tables as plain Parquet files, one a table, for what does not read Delta Lake. No Spark.

Constraints: all tables are of one run; only snapshots that are stored completely are there; a file is there completely or not
at all. Rows are sorted by the grain where a table has at most a million of them, else cluster by cluster.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from rackspan.disk import staged, to_disk, writing_output
from rackspan.errors import UsageError
from rackspan.pipeline.landing.names import has_names
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import CLUSTERS, DERIVED, HISTORY, LANDING, table_named
from rackspan.pipeline.table import sorted_batches, table_files
from rackspan.pipeline.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written, and its rows."""

    file: Path
    rows: int


def _all(warehouse: Warehouse) -> Iterator[str]:
    """Every table; that of the names if a cluster has one."""
    yield from (*DERIVED, *LANDING, *HISTORY)
    if has_names(warehouse):
        yield CLUSTERS.name


def export(
    warehouse: Warehouse, names: Sequence[str], out: Path, left_out: Callable[[str], None] | None = None
) -> Iterator[Exported]:
    """Write `out`/NAME.parquet for each of the tables, all of them where `names` is empty.

    With `left_out`, snapshots of damaged files are left out, and it gets a line for each file.
    Errors: UsageError for an unknown table, or where a file cannot be written or is there already; InvalidWarehouse where
    no run has made a table yet.
    """
    tables = [table_named(name) for name in names or _all(warehouse)]
    run = last_run(warehouse)
    # All versions at first: a run that ends meanwhile must not give the later tables newer rows.
    opened = [table_files(warehouse, table, run, left_out) for table in tables]
    there = [file for table in tables if (file := out / f"{table.name}.parquet").exists()]
    if there:
        raise UsageError(f"{there[0]}: exists already; name a new folder with --out")
    with writing_output(out):
        out.mkdir(parents=True, exist_ok=True)
    for files in opened:
        file = out / f"{files.table.name}.parquet"
        staging, rows = staged(file), 0
        try:
            with (
                writing_output(file),
                pq.ParquetWriter(staging, files.table.at_each_snapshot.schema, compression="zstd") as writer,
            ):
                for batch in sorted_batches(warehouse, files):
                    writer.write_table(batch)
                    rows += len(batch)
            with writing_output(file):
                to_disk(staging)
                staging.replace(file)
                to_disk(out)
        finally:
            staging.unlink(missing_ok=True)
        yield Exported(file, rows)
