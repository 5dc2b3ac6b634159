"""Reads stored snapshots: one completely, or the cluster members of many."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId
from rackspan.pipeline.delta.table import DataFile, data_files, read_files, snapshot_counts
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.landing.rows import to_snapshot, with_alive
from rackspan.pipeline.schemas import BROKERS, LANDING, PARTITIONS, SNAPSHOTS, TOPICS, Table
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
    ids = sorted(snapshot.snapshot_id for snapshot in stored)
    return pa.Table.from_batches(read_files(opened, files_of(warehouse, table, stored), schema, ids), schema)


def files_of(warehouse: Warehouse, table: Table, stored: Sequence[StoredSnapshot]) -> list[DataFile]:
    """The files of a landing table that can hold rows of some snapshots, by the log alone. Errors: InvalidWarehouse."""
    near = files_near(data_files(existing_table(warehouse, table.name)), stored)
    return [file for file in near if f"{table.name}/{file.path}" not in warehouse.damaged]


@dataclass(frozen=True, slots=True)
class Damage:
    """Damaged data files, as TABLE/PATH, and the snapshots that are not whole, by id; each with the reason."""

    files: Mapping[str, str]
    snapshots: Mapping[str, str]


def find_damage(warehouse: Warehouse, stored: Sequence[StoredSnapshot], *, whole: bool = False) -> Damage:
    """The missing rows of some snapshots. A snapshot is whole if each table has as many rows of it as its marker says.

    Only ids are read, with `whole` every column. Errors: InvalidWarehouse where a log cannot be read.
    """
    files: dict[str, str] = {}
    snapshots: dict[str, str] = {}
    for table in (BROKERS, TOPICS, PARTITIONS):
        opened = existing_table(warehouse, table.name)
        counts: Counter[str] = Counter()
        damaged: list[DataFile] = []
        for file in files_near(data_files(opened), stored):
            try:
                counts += snapshot_counts(opened, file, whole=whole)
            except InvalidWarehouse as error:
                files[f"{table.name}/{file.path}"] = str(error)
                damaged.append(file)
        for snapshot in stored:
            present, wanted = counts[snapshot.snapshot_id], _rows_wanted(snapshot, table)
            if present == wanted or (present and wanted is None):
                continue
            inside = [
                file for file in damaged if file.day == snapshot.day and file.may_hold(*[snapshot.snapshot_id] * 2)
            ]
            reason = (
                files[f"{table.name}/{inside[0].path}"] if inside else f"table {table.name} has {present} rows of it"
            )
            snapshots.setdefault(snapshot.snapshot_id, reason)
    return Damage(files, snapshots)


def _rows_wanted(stored: StoredSnapshot, table: Table) -> int | None:
    """How many rows a table has of a snapshot; None for brokers, which its marker does not count."""
    return {TOPICS.name: stored.topics, PARTITIONS.name: stored.partitions}.get(table.name)


def ids_with_rows(opened: "DeltaTable", ids: Sequence[str]) -> set[str]:
    """Those of some snapshots' ids that rows of a table have. Errors: InvalidWarehouse."""
    if not ids:
        return set()
    files = [file for file in data_files(opened) if file.may_hold(min(ids), max(ids))]
    schema = pa.schema([SNAPSHOTS.schema.field("snapshot_id")])
    return {
        snapshot_id
        for batch in read_files(opened, files, schema, ids)
        for snapshot_id in batch.column("snapshot_id").to_pylist()
    }


def files_near(files: Iterable[DataFile], stored: Iterable[StoredSnapshot]) -> list[DataFile]:
    """Those of some files that can hold rows of some snapshots."""
    of_day: dict[date, list[str]] = {}
    for snapshot in stored:
        of_day.setdefault(snapshot.day, []).append(snapshot.snapshot_id)
    ends = {day: (min(ids), max(ids)) for day, ids in of_day.items()}
    return [file for file in files if file.day in ends and file.may_hold(*ends[file.day])]


def read_registrations(warehouse: Warehouse, stored: Sequence[StoredSnapshot]) -> Mapping[str, Registration]:
    """The cluster members of each distinct `members` hash: one snapshot is read for each, however many have it."""
    one_of_each = list({snapshot.members: snapshot for snapshot in stored}.values())
    brokers: dict[str, list[Broker]] = {snapshot.snapshot_id: [] for snapshot in one_of_each}
    for row in rows_of(
        warehouse, LANDING["brokers"], ("snapshot_id", "id", "host", "rack", "fenced", "cordoned"), one_of_each
    ).to_pylist():
        brokers[row["snapshot_id"]].append(
            Broker(
                BrokerId(row["id"]),
                _rack(row["rack"]),
                bool(row["fenced"]),
                host=row["host"],
                cordoned=bool(row["cordoned"]),
            )
        )
    markers = rows_of(warehouse, SNAPSHOTS, ("snapshot_id", "controllers", "controllers_alive"), one_of_each)
    controllers = {
        row["snapshot_id"]: tuple(
            Controller(BrokerId(found["id"]), _rack(found["rack"]), found["voter"] is not False, found["alive"])
            for found in with_alive(row["controllers"], row["controllers_alive"])
        )
        for row in markers.to_pylist()
    }
    return {
        snapshot.members: (
            tuple(sorted(brokers[snapshot.snapshot_id], key=lambda broker: broker.id)),
            controllers[snapshot.snapshot_id],
        )
        for snapshot in one_of_each
    }


def _rack(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)
