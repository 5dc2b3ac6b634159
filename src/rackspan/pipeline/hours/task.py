"""Runs one task: makes the rows of its hours, and writes those of each table to a file that no version names until the run commits it."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.pipeline.delta.append import ROW_GROUP_ROWS, NewFile, statistics
from rackspan.pipeline.delta.table import filesystem_at, read_files_at
from rackspan.pipeline.hours.durability import Spans, spans_of, state_rows
from rackspan.pipeline.hours.read import TaskReadings
from rackspan.pipeline.hours.work import HOUR, ClusterHours, HourTask, hour_id
from rackspan.pipeline.schemas import GONE, HOURLY, OUTAGE_IMPACT, PARTITION_DURABILITY, Table
from rackspan.pipeline.table import in_order
from rackspan.pipeline.warehouse import named_warehouse

OBJECTS_MAX: Final = 20_000


def write_task(task: HourTask) -> list[tuple[str, NewFile]]:
    """Make the rows of a task's hours, and write those of each table to a file. Errors: InvalidWarehouse; OSError."""
    return [(name, _written(task, HOURLY[name], rows)) for name, rows in task_rows(task).items()]


def task_rows(task: HourTask) -> dict[str, pa.Table]:
    """The rows of a task by table, with all of its columns but `day`, in order of the grain. Tables without rows are left out."""
    waiting: dict[str, list[dict[str, Any]]] = {}
    parts: dict[str, list[pa.Table]] = {}
    for name, row in _rows(task):
        rows = waiting.setdefault(name, [])
        rows.append(row)
        # As objects rows take ten times the memory.
        if len(rows) == OBJECTS_MAX:
            parts.setdefault(name, []).append(_table(task, HOURLY[name], waiting.pop(name)))
    for name, rows in waiting.items():
        parts.setdefault(name, []).append(_table(task, HOURLY[name], rows))
    return {name: in_order(pa.concat_tables(tables), HOURLY[name].grain) for name, tables in parts.items()}


def _rows(task: HourTask) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows with the keys of their hours."""
    if task.of_readings:
        # It imports what executors need have only where there are readings (REQUIRED_BY_READINGS of spark/executors.py).
        from rackspan.pipeline.hours.rows import hour_rows

        readings = TaskReadings(task)
        for each in task.of_readings:
            rows = hour_rows(readings.of(each.snapshots), each.hours, task.prices, task.policies[each.cluster_id])
            yield from _keyed(each, rows)
    if task.of_states:
        durability = _StoredRows(
            task, PARTITION_DURABILITY, ("topic", "partition", "state", "replica_racks", "isr_racks")
        )
        impact = _StoredRows(task, OUTAGE_IMPACT, ("lost_racks", "topic", "survived"))
        for each in task.of_states:
            yield from _keyed(each, state_rows(each.hours, each.snapshots, durability.spans(each), impact.spans(each)))


def _keyed(hours: ClusterHours, rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    ids = {hour: hour_id(hours.cluster_id, hour) for hour in hours.hours}
    for name, row in rows:
        yield name, {"cluster_id": hours.cluster_id, "hour_id": ids[row["hour"]], **row}


class _StoredRows:
    """Stored rows of a table of changes, by cluster."""

    def __init__(self, task: HourTask, table: Table, columns: Sequence[str]) -> None:
        names = ("cluster_id", "valid_from", "snapshot_id", *columns, GONE)
        schema = pa.schema([table.schema.field(name) for name in names])
        url = named_warehouse(task.root).table(table.name)
        self._key = table.grain[2:]
        self._rows = pa.Table.from_batches(read_files_at(url, task.files[table.name], schema), schema)

    def spans(self, hours: ClusterHours) -> Spans:
        """The spans of one cluster's rows."""
        end = pa.scalar(hours.hours[-1] + HOUR, self._rows.schema.field("valid_from").type)
        of_cluster = pc.equal(self._rows.column("cluster_id"), hours.cluster_id)
        rows = self._rows.filter(pc.and_(of_cluster, pc.less(self._rows.column("valid_from"), end)))
        return spans_of(rows, self._key, hours.whole, hours.snapshots[-1].taken_at)


def _table(task: HourTask, table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    schema = pa.schema([field for field in table.schema if field.name != "day"])
    written = {"run_id": task.run_id, "schema_version": table.version}
    return pa.Table.from_pylist([{**row, **written} for row in rows], schema)


def _written(task: HourTask, table: Table, rows: pa.Table) -> NewFile:
    filesystem = filesystem_at(named_warehouse(task.root).table(table.name))
    folder = f"{task.run_id}/day={task.day.isoformat()}"
    path = f"{folder}/part-{task.number:05}-{secrets.token_hex(8)}.parquet"
    filesystem.create_dir(folder)
    with filesystem.open_output_stream(path) as out:
        pq.write_table(rows, out, compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS)
    return NewFile(path, task.day, filesystem.get_file_info(path).size, statistics(rows))
