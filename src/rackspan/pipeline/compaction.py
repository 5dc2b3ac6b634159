"""Merges the files of past months into one file each: a file a day and table would be thousands after a year.

Constraints: the files in force hold exactly the rows in force, so a month is written again when one of its days is; rows of
another schema version stay in a file of their own; larger files stay as they are. Goal: few files. Method: after a run has
made its days and before the manifest is renamed, copy the days of a month into one file, in order. Bound: the rows of the
months that the run touched, each at most MONTH_BYTES_MAX on disk. Source: our own. Test: tests/pipeline/test_compaction.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from rackspan.disk import to_disk
from rackspan.pipeline import paths
from rackspan.pipeline.manifest import Manifest, TableDay, month_file
from rackspan.pipeline.schemas import TABLES, Table
from rackspan.pipeline.table import in_order
from rackspan.pipeline.warehouse import Day, Warehouse

MONTH_BYTES_MAX: Final = 2**26
"""64 MiB: a size that Parquet readers prefer, and small enough to hold in memory while it is copied."""

Month: TypeAlias = tuple[str, str, int]
"""Cluster, YYYY-MM, schema version."""


def compacted(warehouse: Warehouse, manifest: Manifest, staging: Path) -> Manifest:
    """The manifest with one file a month. The files are in place when it returns; none is in force yet."""
    tables = {
        name: {**days, **_compacted(warehouse, TABLES[name], days, manifest.run or "", staging)}
        if name in TABLES
        else days
        for name, days in manifest.tables.items()
    }
    return replace(manifest, tables=tables)


def months(days: Mapping[Day, TableDay]) -> dict[Month, dict[Day, TableDay]]:
    """The days of each past month: one after which the cluster has a later month."""
    newest = {day.cluster_id: _month(day) for day in sorted(days)}
    past: dict[Month, dict[Day, TableDay]] = {}
    for day, one in sorted(days.items()):
        if _month(day) < newest[day.cluster_id] and one.files:
            past.setdefault((day.cluster_id, _month(day), one.schema_version), {})[day] = one
    return past


def _compacted(
    warehouse: Warehouse, table: Table, days: Mapping[Day, TableDay], run: str, staging: Path
) -> dict[Day, TableDay]:
    done: dict[Day, TableDay] = {}
    for (cluster_id, month, version), of_month in months(days).items():
        if version == table.version and _should_merge(warehouse, of_month):
            name = month_file(table.name, cluster_id, month, run)
            _write(warehouse, table, of_month, staging / "month.parquet", warehouse.tables / name)
            done |= {day: replace(one, files=(name,)) for day, one in of_month.items()}
    return done


def _should_merge(warehouse: Warehouse, of_month: Mapping[Day, TableDay]) -> bool:
    """Whether there are several small files, or one that still has rows of a day that was made again."""
    files = [warehouse.tables / name for name in _files(of_month.values())]
    if any(paths.value_of("month", file.parent.name) for file in files):
        return len(files) > 1 or pq.read_metadata(files[0]).num_rows != sum(one.rows for one in of_month.values())
    return len(files) > 1 and sum(file.stat().st_size for file in files) <= MONTH_BYTES_MAX


def _files(days: Iterable[TableDay]) -> list[str]:
    return sorted({name for one in days for name in one.files})


def _write(warehouse: Warehouse, table: Table, of_month: Mapping[Day, TableDay], staged: Path, place: Path) -> None:
    with pq.ParquetWriter(staged, table.schema, compression="zstd") as writer:
        for day, one in of_month.items():
            # A row group a day, so that readers of one day skip the others.
            writer.write_table(_rows_of(warehouse, table, day, one))
    place.parent.mkdir(parents=True, exist_ok=True)
    to_disk(staged)
    staged.rename(place)
    to_disk(place.parent)


def _rows_of(warehouse: Warehouse, table: Table, day: Day, one: TableDay) -> pa.Table:
    begin = datetime.combine(date.fromisoformat(day.day), datetime.min.time(), UTC)
    within = [("taken_at", ">=", begin), ("taken_at", "<", begin + timedelta(days=1))]
    parts = [pq.ParquetFile(warehouse.tables / name).read() for name in one.files]
    rows = pa.concat_tables([part.cast(table.schema) for part in parts]).filter(pq.filters_to_expression(within))
    return in_order(rows, table)


def _month(day: Day) -> str:
    return day.day[: len("YYYY-MM")]
