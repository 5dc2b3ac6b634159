"""Writes the rows of a task as Parquet files, one a table, which no version of a table names until the run commits them.

The name of a file has the task and a random part, so that an attempt that Spark repeats, or runs twice, never writes to the file
of another. The files of the attempt that came back are committed; `maintain` deletes the others.
"""

import secrets
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.pipeline.delta.append import ROW_GROUP_ROWS, NewFile, statistics_of_file
from rackspan.pipeline.delta.table import filesystem_at
from rackspan.pipeline.judging.task import judged_rows
from rackspan.pipeline.judging.tasks import JudgeTask
from rackspan.pipeline.schemas import GONE, PARTITION_DURABILITY, TABLES, Table
from rackspan.pipeline.table import in_order
from rackspan.pipeline.warehouse import named_warehouse

PLACE: Final = "place"
"""The column with the place of a row's snapshot in the task, in place of the snapshot's keys."""


KEYS_OF: Final = {
    "cluster_id": "cluster_id",
    "taken_at": "taken_at",
    "valid_from": "taken_at",
    "snapshot_id": "snapshot_id",
}
"""For each column that says which snapshot a row is of, the attribute of StoredSnapshot that it has."""


def write_task(task: JudgeTask) -> list[tuple[str, NewFile]]:
    """Judge the snapshots of a task, and write the rows of each table to a file. Errors: InvalidWarehouse; OSError."""
    writers: dict[str, _TableWriter] = {}
    try:
        for name, rows in keyed_rows(task):
            if name not in writers:
                writers[name] = _TableWriter(task, TABLES[name])
            writers[name].add(rows)
        return [(name, writer.finished()) for name, writer in writers.items()]
    finally:
        for writer in writers.values():
            writer.close()


def keyed_rows(task: JudgeTask) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each table, some at a time and none empty, with PLACE."""
    places = {snapshot.stored.snapshot_id: place for place, snapshot in enumerate(task.snapshots)}
    for name, snapshot, rows in judged_rows(task):
        if len(rows):
            place = np.full(len(rows), places[snapshot.stored.snapshot_id], dtype=np.int32)
            if GONE not in rows.column_names and TABLES[name].as_changes:
                rows = rows.append_column(GONE, pa.nulls(len(rows), pa.bool_()))
            yield name, rows.append_column(PLACE, pa.array(place))


def table_rows(task: JudgeTask, table: Table, rows: pa.Table) -> pa.Table:
    """The rows with every column of the table but `day`, in order of the grain."""
    if table is not PARTITION_DURABILITY or pc.any(rows.column(GONE)).as_py():
        # Those of partition_durability are in order as they were read, but for those that are gone.
        rows = in_order(rows, (PLACE, *table.grain[2:]))
    places = rows.column(PLACE).combine_chunks()
    stored = [snapshot.stored for snapshot in task.snapshots]

    def column(field: pa.Field) -> Any:
        if field.name in KEYS_OF:
            values = pa.array([getattr(snapshot, KEYS_OF[field.name]) for snapshot in stored], field.type)
            return pa.DictionaryArray.from_arrays(places, values).cast(field.type)
        if field.name == "run_id":
            return pa.repeat(pa.scalar(task.run_id, field.type), len(rows))
        if field.name == "schema_version":
            return pa.repeat(pa.scalar(table.version, field.type), len(rows))
        return rows.column(field.name)

    schema = pa.schema([field for field in table.schema if field.name != "day"])
    return pa.table([column(field) for field in schema], schema=schema)


class _TableWriter:
    """Writes the rows of one table of a task, in row groups of ROW_GROUP_ROWS."""

    def __init__(self, task: JudgeTask, table: Table) -> None:
        self._task, self._table = task, table
        self._day = task.judged[0].stored.day
        folder = f"{task.run_id}/day={self._day.isoformat()}"
        self._path = f"{folder}/part-{task.number:05}-{secrets.token_hex(8)}.parquet"
        self._filesystem = filesystem_at(named_warehouse(task.root).table(table.name))
        self._filesystem.create_dir(folder)
        self._out = self._filesystem.open_output_stream(self._path)
        schema = pa.schema([field for field in table.schema if field.name != "day"])
        self._written: list[pq.FileMetaData] = []
        self._parquet = pq.ParquetWriter(
            self._out, schema, compression="zstd", compression_level=1, metadata_collector=self._written
        )
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= ROW_GROUP_ROWS:
            self._write_waiting()

    def finished(self) -> NewFile:
        """The file, once it is complete."""
        self._write_waiting()
        self.close()
        size = self._filesystem.get_file_info(self._path).size
        return NewFile(self._path, self._day, size, statistics_of_file(self._written[0]))

    def close(self) -> None:
        if self._parquet.is_open:
            self._parquet.close()
            self._out.close()

    def _write_waiting(self) -> None:
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            self._parquet.write_table(table_rows(self._task, self._table, rows), row_group_size=ROW_GROUP_ROWS)
            self._waiting = []
