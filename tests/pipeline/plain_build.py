"""A Build without Spark: the expected rows, written as Parquet files. It lets everything around Spark be tested in milliseconds."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks._in_process import write_hours
from rackspan.audit import ClusterPolicies, RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, incremental
from rackspan.pipeline.changes.difference import changes
from rackspan.pipeline.delta.append import NewFile, statistics
from rackspan.pipeline.delta.table import filesystem_of, open_table
from rackspan.pipeline.hours.work import HoursWork
from rackspan.pipeline.incremental import Files, RunReport, RunWork, TableWork
from rackspan.pipeline.landing.read import read_snapshots
from rackspan.pipeline.schemas import Table, own_columns
from rackspan.pipeline.warehouse import FilesRead
from rackspan.traffic import PriceFile
from tests.pipeline import expected

Judged: TypeAlias = Callable[[RunWork, ClusterPolicies], Files]


class PlainBuild:
    """Rows of snapshots by a function of the test, rows of hours by their tasks, in this process."""

    def __init__(self, judged: Judged, warehouse: Warehouse) -> None:
        self._judged, self._warehouse = judged, warehouse

    def judged(self, work: RunWork, policies: ClusterPolicies) -> Files:
        return self._judged(work, policies)

    def hours(self, work: HoursWork, policies: ClusterPolicies) -> Files:
        return write_hours(self._warehouse, work, policies)


def build_for(warehouse: Warehouse) -> Judged:
    def build(work: RunWork, policies: ClusterPolicies) -> dict[str, list[NewFile]]:
        readable = replace(warehouse, damaged=work.damaged)
        read = read_snapshots(readable, work.snapshots)
        return {name: write(readable, work, table, policies, read) for name, table in work.tables.items()}

    return build


def refresh(
    warehouse: Warehouse,
    policies: ClusterPolicies = RackPolicy(),
    build: Judged | None = None,
    *,
    rebuild: Collection[str] = (),
    only: Collection[str] | None = None,
    prices: PriceFile | None = None,
) -> RunReport:
    """`pipeline run` without Spark, or `pipeline rebuild`."""
    ticks = count()
    if warehouse.read is None:
        warehouse = replace(warehouse, read=FilesRead())
    made = PlainBuild(build or build_for(warehouse), warehouse)
    return incremental.refresh(
        warehouse,
        policies,
        made,
        now=lambda: datetime.now(UTC),
        seconds=lambda: next(ticks),
        rebuild=rebuild,
        only=only,
        prices=prices,
    )


def write(
    warehouse: Warehouse, work: RunWork, one: TableWork, policies: ClusterPolicies, read: Sequence[ClusterSnapshot]
) -> list[NewFile]:
    """One file for each day, without the column `day`, which the folder has."""
    files = []
    rows = _rows(work, one, policies, read)
    for day in sorted(set(rows["day"].to_pylist())):
        table = open_table(warehouse.table(one.table.name))
        assert table is not None
        folder = f"{work.run_id}/day={day.isoformat()}"
        filesystem = filesystem_of(table)
        filesystem.create_dir(folder)
        of_day = rows.filter(pc.equal(rows["day"], day)).drop_columns("day")
        path = f"{folder}/part-0.parquet"
        with filesystem.open_output_stream(path) as out:
            pq.write_table(of_day, out)
        files.append(NewFile(path, day, filesystem.get_file_info(path).size, statistics(of_day)))
    return files


def _rows(work: RunWork, one: TableWork, policies: ClusterPolicies, read: Sequence[ClusterSnapshot]) -> pa.Table:
    """The expected rows of each snapshot, or where another one stands before it on its day those that differ."""
    made = {stored.snapshot_id: snapshot for stored, snapshot in zip(work.snapshots, read, strict=True)}
    before = {after: made[work.snapshots[place].snapshot_id] for place, after in work.pairs(one.judged)}
    parts = [one.table.schema.empty_table()]
    for place in one.judged:
        stored = work.snapshots[place]
        snapshots = [before[place]] if place in before else []
        rows = expected.table(one.table.name, [*snapshots, made[stored.snapshot_id]], policies)
        whole = {at: _typed(rows, one.table, at) for at in {each.taken_at for each in snapshots} | {stored.taken_at}}
        found = whole[stored.taken_at]
        if one.table.as_changes:
            base = work.bases[stored.snapshot_id]
            if base is None:
                found = found.append_column("gone", pa.nulls(len(found), pa.bool_()))
            else:
                found = changes(
                    whole[before[place].taken_at], found, one.table.grain[2:], ["size_bytes", "schema_version"]
                )
        keys = {
            "cluster_id": stored.cluster_id,
            "taken_at": stored.taken_at,
            "valid_from": stored.taken_at,
            "day": stored.day,
            "snapshot_id": stored.snapshot_id,
            "run_id": work.run_id,
        }
        columns = [
            pa.repeat(pa.scalar(keys[field.name], field.type), len(found))
            if field.name in keys
            else found.column(field.name)
            for field in one.table.schema
        ]
        parts.append(pa.table(columns, schema=one.table.schema))
    return pa.concat_tables(parts)


def _typed(rows: list[dict[str, Any]], table: Table, at: datetime | None) -> pa.Table:
    """The rows of a time, without the keys of the snapshot."""
    own = [*own_columns(table), *(column for column in table.columns if column.name == "schema_version")]
    schema = pa.schema([(column.name, column.type) for column in own])
    of_time = [row for row in rows if datetime.fromisoformat(row["taken_at"]) == at]
    typed = [
        {name: datetime.fromisoformat(value) if name == "previous_taken_at" else value for name, value in row.items()}
        for row in of_time
    ]
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in typed], schema)
