"""Reads stored snapshots: one completely, or the cluster members of many."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.model.broker import Broker, Controller
from rackspan.model.ids import BrokerId, RackId
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.pipeline.delta.table import data_files, read_files
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.landing.rows import to_snapshot
from rackspan.pipeline.schemas import LANDING, Table
from rackspan.pipeline.warehouse import Warehouse, existing_table

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
    opened = existing_table(warehouse, table.name)
    ids = sorted(one.snapshot_id for one in stored)
    days = {one.day for one in stored}
    near = [file for file in data_files(opened) if ids and file.day in days and file.may_hold(ids[0], ids[-1])]
    return pa.Table.from_batches(read_files(opened, near, schema, ids), schema)


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
