"""A Build without Spark: the expected rows, written as Parquet files. It lets everything around Spark be tested in milliseconds."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.audit import ClusterPolicies, RackPolicy
from rackspan.pipeline import Warehouse, incremental
from rackspan.pipeline.delta.append import NewFile, statistics
from rackspan.pipeline.delta.table import filesystem_of, open_table
from rackspan.pipeline.incremental import Build, RunReport, RunWork, TableWork
from rackspan.pipeline.landing.read import read_snapshot
from rackspan.pipeline.schemas import Table
from tests.pipeline import expected


def build_for(warehouse: Warehouse) -> Build:
    def build(work: RunWork, policies: ClusterPolicies) -> dict[str, list[NewFile]]:
        readable = replace(warehouse, damaged=work.damaged)
        return {name: write(readable, work, table, policies) for name, table in work.tables.items()}

    return build


def refresh(
    warehouse: Warehouse,
    policies: ClusterPolicies = RackPolicy(),
    build: Build | None = None,
    *,
    rebuild: Collection[str] = (),
    only: Collection[str] | None = None,
) -> RunReport:
    """`pipeline run` without Spark, or `pipeline rebuild`."""
    ticks = count()
    made = build or build_for(warehouse)
    return incremental.refresh(
        warehouse,
        policies,
        made,
        now=lambda: datetime.now(UTC),
        seconds=lambda: next(ticks),
        rebuild=rebuild,
        only=only,
    )


def write(warehouse: Warehouse, work: RunWork, one: TableWork, policies: ClusterPolicies) -> list[NewFile]:
    """One file for each day, without the column `day`, which the folder has."""
    files = []
    rows = _typed(_rows(warehouse, work, one, policies), one.table)
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


def _rows(warehouse: Warehouse, work: RunWork, one: TableWork, policies: ClusterPolicies) -> list[dict[str, Any]]:
    pairs = work.pairs(one.judged) if one.table.looks_back else []
    read = sorted({*one.judged, *(before for before, _ in pairs)})
    snapshots = {number: read_snapshot(warehouse, work.snapshots[number]) for number in read}
    ids = {
        (stored.cluster_id, stored.taken_at): stored.snapshot_id
        for stored in (work.snapshots[number] for number in one.judged)
    }
    rows = []
    for row in expected.table(one.table.name, snapshots.values(), policies):
        taken_at = datetime.fromisoformat(row["taken_at"])
        if (row["cluster_id"], taken_at) in ids:
            keys = {"day": date.fromisoformat(row["taken_at"][:10]), "snapshot_id": ids[row["cluster_id"], taken_at]}
            rows.append({**row, **keys, "run_id": work.run_id})
    return rows


def _typed(rows: list[dict[str, Any]], table: Table) -> pa.Table:
    def typed(row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: datetime.fromisoformat(value) if name.endswith("taken_at") else value for name, value in row.items()
        }

    return pa.Table.from_pylist([typed(row) for row in rows], table.schema)
