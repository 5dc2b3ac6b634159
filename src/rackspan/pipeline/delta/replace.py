"""Replaces rows of a Delta table: which files hold them, and new files with the other rows of those.

Bound: the content of those old files that hold both rows to be replaced and others.
Source: Delta protocol, "Add File and Remove File". Tests: tests/pipeline/test_incremental.py.
"""

from collections.abc import Collection, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.append import NewFile, new_path, statistics_of_file
from rackspan.pipeline.delta.table import DataFile, data_files, filesystem_of, is_damaged, one_line, unit_of
from rackspan.pipeline.schemas.columns import TIMESTAMP

if TYPE_CHECKING:
    from deltalake import DeltaTable


def without_rows(
    table: "DeltaTable",
    ids: Collection[str],
    whole_days: Collection[date],
    days: Collection[date],
    *,
    skip_damaged: bool = False,
) -> tuple[list[DataFile], list[NewFile]]:
    """The files of the table that hold rows of these snapshots, or hours, or days, and new files with their other rows.

    All of `ids` are of `days`. With `skip_damaged`, every damaged file is among the former. Errors: InvalidWarehouse.
    """
    removed: list[DataFile] = []
    kept: list[NewFile] = []
    wanted = pa.array(sorted(ids), pa.string())
    for file in data_files(table):
        if file.day in whole_days or (skip_damaged and is_damaged(table, file)):
            removed.append(file)
        elif file.day in days and any(file.may_hold(identity, identity) for identity in ids):
            touched, rest = _rest(table, file, wanted)
            if touched:
                removed.append(file)
                kept += rest
    return removed, kept


def _rest(table: "DeltaTable", file: DataFile, ids: pa.Array) -> tuple[bool, Sequence[NewFile]]:
    """Whether a file has rows of these snapshots or hours, and a new file with its other rows, if it has any."""
    filesystem = filesystem_of(table)
    try:
        with filesystem.open_input_file(file.path) as opened:
            parquet = pq.ParquetFile(opened)
            key = unit_of(parquet.schema_arrow.names)
            column = parquet.read(columns=[key])[key]
            named = pc.sum(pc.is_in(column, ids)).as_py() or 0
            if named in (0, len(column)):
                return named > 0, []
            path = new_path(file.day)
            filesystem.create_dir(path.rpartition("/")[0])
            schema = pa.schema(map(_as_declared, parquet.schema_arrow))
            with (
                filesystem.open_output_stream(path) as out,
                pq.ParquetWriter(out, schema, compression="zstd") as writer,
            ):
                for group in range(parquet.num_row_groups):
                    rows = parquet.read_row_group(group)
                    writer.write_table(_with_schema(rows.filter(pc.invert(pc.is_in(rows[key], ids))), schema))
        return True, [_new_file(filesystem, path, file.day)]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InvalidWarehouse(f"{table.table_uri}: {file.path} cannot be replaced: {one_line(error)}") from None


def joined(table: "DeltaTable", files: Sequence[DataFile]) -> NewFile:
    """A new file with the rows of some files of one day, one after another. Errors: InvalidWarehouse."""
    filesystem = filesystem_of(table)
    path = new_path(files[0].day)
    day_folder = path.rpartition("/")[0]
    at = files[0].path
    try:
        if day_folder:
            filesystem.create_dir(day_folder)
        fields: dict[str, pa.Field] = {}
        for file in files:
            at = file.path
            with filesystem.open_input_file(file.path) as opened:
                for field in pq.read_schema(opened):
                    fields.setdefault(field.name, _as_declared(field))
        schema = pa.schema(fields.values())
        with (
            filesystem.open_output_stream(path) as out,
            pq.ParquetWriter(out, schema, compression="zstd") as writer,
        ):
            for file in files:
                at = file.path
                with filesystem.open_input_file(file.path) as opened:
                    parquet = pq.ParquetFile(opened)
                    for group in range(parquet.num_row_groups):
                        writer.write_table(_with_schema(parquet.read_row_group(group), schema))
        return _new_file(filesystem, path, files[0].day)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InvalidWarehouse(f"{table.table_uri}: {at} cannot be compacted: {one_line(error)}") from None


def _as_declared(field: pa.Field) -> pa.Field:
    """A column of a file as the table has it.

    Files that Spark rewrote have columns that are not nullable, and times as INT96: Arrow reads those as nanoseconds without a time zone, which
    Delta does not allow in a file.
    """
    field = field.with_nullable(True)
    return field.with_type(TIMESTAMP) if pa.types.is_timestamp(field.type) else field


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows with these columns; those that an earlier rackspan did not write are null."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(schema.names).cast(schema)


def _new_file(filesystem: Any, path: str, day: date | None) -> NewFile:
    with filesystem.open_input_file(path) as opened:
        return NewFile(path, day, opened.size(), statistics_of_file(pq.read_metadata(opened)))
