"""A Build without Spark: the expected rows, committed by delta-rs. It lets everything around Spark be tested in milliseconds."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from itertools import count
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from rackspan.audit import RackPolicy
from rackspan.pipeline import Warehouse, incremental
from rackspan.pipeline.incremental import Build, RunReport, RunWork, TableWork
from rackspan.pipeline.landing.read import read_snapshot
from rackspan.pipeline.schemas import Table
from tests.pipeline import expected


def build_for(warehouse: Warehouse) -> Build:
    def build(work: RunWork, policy: RackPolicy) -> None:
        for one in work.tables.values():
            commit(warehouse, work, one, policy)

    return build


def refresh(warehouse: Warehouse, policy: RackPolicy = RackPolicy(), build: Build | None = None) -> RunReport:
    """`pipeline run` without Spark."""
    ticks = count()
    made = build or build_for(warehouse)
    return incremental.refresh(warehouse, policy, made, now=lambda: datetime.now(UTC), seconds=lambda: next(ticks))


def commit(warehouse: Warehouse, work: RunWork, one: TableWork, policy: RackPolicy) -> None:
    table = DeltaTable(warehouse.table(one.table.name))
    mark = CommitProperties(custom_metadata={"userMetadata": work.run_id})
    if one.restored is not None:
        table.restore(one.restored, commit_properties=mark)
    if one.again:
        ids = ", ".join(f"'{work.snapshots[number].snapshot_id}'" for number in one.judged)
        table.delete(f"snapshot_id in ({ids})", commit_properties=mark)
    rows = _rows(warehouse, work, one, policy)
    write_deltalake(table, _typed(rows, one.table), mode="append", commit_properties=mark)


def _rows(warehouse: Warehouse, work: RunWork, one: TableWork, policy: RackPolicy) -> list[dict[str, Any]]:
    pairs = work.pairs(one.judged) if one.table.looks_back else []
    read = sorted({*one.judged, *(before for before, _ in pairs)})
    snapshots = {number: read_snapshot(warehouse, work.snapshots[number]) for number in read}
    ids = {
        (stored.cluster_id, stored.taken_at): stored.snapshot_id
        for stored in (work.snapshots[number] for number in one.judged)
    }
    rows = []
    for row in expected.table(one.table.name, snapshots.values(), policy):
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
