"""Reads stored snapshots: one completely, or the cluster members of many."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId
from rackspan.pipeline.delta.table import DataFile, data_files, read_files
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.landing.rows import to_snapshot
from rackspan.pipeline.schemas import LANDING, SNAPSHOTS, Table
from rackspan.pipeline.warehouse import Warehouse, existing_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

Registration = tuple[tuple[Broker, ...], tuple[Controller, ...]]
"""The brokers of a cluster, without ports, and its controllers."""


def read_snapshot(warehouse: Warehouse, stored: StoredSnapshot) -> ClusterSnapshot:
    """A stored snapshot. Errors: InvalidWarehouse, naming the snapshot."""
    tables = {name: rows_of(warehouse, table, table.schema.names, [stored]) for name, table in LANDING.items()}
    try:
        return to_snapshot(tables)
    except InvalidSnapshot as error:
        raise InvalidWarehouse(
            f"{warehouse.root}: snapshot {stored.snapshot_id} of {stored.cluster_id}: {error}"
        ) from None


def rows_of(warehouse: Warehouse, table: Table, columns: Sequence[str], stored: Iterable[StoredSnapshot]) -> pa.Table:
    """Columns of a landing table for some snapshots, in no particular order of snapshots. Errors: InvalidWarehouse."""
    schema = pa.schema([table.schema.field(name) for name in columns])
    opened, stored = existing_table(warehouse, table.name), list(stored)
    ids = sorted(one.snapshot_id for one in stored)
    return pa.Table.from_batches(read_files(opened, _near(opened, stored), schema, ids), schema)


def files_of(warehouse: Warehouse, table: Table, stored: Sequence[StoredSnapshot]) -> list[DataFile]:
    """The files of a landing table that can hold rows of some snapshots, by the log alone. Errors: InvalidWarehouse."""
    return _near(existing_table(warehouse, table.name), stored)


def ids_with_rows(opened: "DeltaTable", ids: Sequence[str]) -> set[str]:
    """Those of some snapshots' ids that rows of a table have. Errors: InvalidWarehouse."""
    if not ids:
        return set()
    files = [file for file in data_files(opened) if file.may_hold(min(ids), max(ids))]
    schema = pa.schema([SNAPSHOTS.schema.field("snapshot_id")])
    return {one for batch in read_files(opened, files, schema, ids) for one in batch.column("snapshot_id").to_pylist()}


def _near(opened: "DeltaTable", stored: Sequence[StoredSnapshot]) -> list[DataFile]:
    of_day: dict[date, list[str]] = {}
    for one in stored:
        of_day.setdefault(one.day, []).append(one.snapshot_id)
    ends = {day: (min(ids), max(ids)) for day, ids in of_day.items()}
    return [file for file in data_files(opened) if file.day in ends and file.may_hold(*ends[file.day])]


def read_registrations(warehouse: Warehouse, stored: Sequence[StoredSnapshot]) -> Mapping[str, Registration]:
    """The cluster members of each distinct `members` hash: one snapshot is read for each, however many have it."""
    one_of_each = list({one.members: one for one in stored}.values())
    brokers: dict[str, list[Broker]] = {one.snapshot_id: [] for one in one_of_each}
    for row in rows_of(
        warehouse, LANDING["brokers"], ("snapshot_id", "id", "host", "rack", "fenced"), one_of_each
    ).to_pylist():
        brokers[row["snapshot_id"]].append(
            Broker(BrokerId(row["id"]), _rack(row["rack"]), bool(row["fenced"]), host=row["host"])
        )
    markers = rows_of(warehouse, LANDING["snapshots"], ("snapshot_id", "controllers"), one_of_each)
    controllers = {
        row["snapshot_id"]: tuple(
            Controller(BrokerId(one["id"]), _rack(one["rack"]), one["voter"] is not False)
            for one in row["controllers"] or ()
        )
        for row in markers.to_pylist()
    }
    return {
        one.members: (
            tuple(sorted(brokers[one.snapshot_id], key=lambda broker: broker.id)),
            controllers[one.snapshot_id],
        )
        for one in one_of_each
    }


def _rack(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)
