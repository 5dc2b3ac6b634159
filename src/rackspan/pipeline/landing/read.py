"""Reads stored snapshots: one completely, or the cluster members of many."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId
from rackspan.pipeline.changes.difference import Contents, chain
from rackspan.pipeline.delta.table import DataFile, data_files, read_files, read_files_at, snapshot_counts
from rackspan.pipeline.landing.bases import GRAINS
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.rows import to_snapshot, with_alive
from rackspan.pipeline.schemas import BROKERS, CONTENT, GONE, OF_READINGS, SNAPSHOTS, STORED, Table
from rackspan.pipeline.warehouse import Warehouse, existing_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

PARTITIONS_AT_ONCE: Final = 200_000
"""Partitions of the snapshots whose rows are read together, unless one has more."""

Registration = tuple[tuple[Broker, ...], tuple[Controller, ...]]
"""The brokers of a cluster, without ports, and its controllers."""


def read_snapshot(warehouse: Warehouse, stored: StoredSnapshot) -> ClusterSnapshot:
    """A stored snapshot. Errors: InvalidWarehouse, naming the snapshot."""
    (snapshot,) = read_snapshots(warehouse, [stored])
    return snapshot


def read_snapshots(warehouse: Warehouse, stored: Sequence[StoredSnapshot]) -> list[ClusterSnapshot]:
    """Stored snapshots, in the given order, by one look at each log. Errors: InvalidWarehouse, naming the snapshot."""
    building = any(snapshot.base_id for snapshot in stored)
    known = read_markers(warehouse).with_bases(stored) if building else _by_id(stored)
    files = {table.name: files_of(warehouse, table, list(known.values())) for table in (*CONTENT, SNAPSHOTS)}
    bases = {identity: snapshot.base_id for identity, snapshot in known.items()}

    def read(some: Sequence[StoredSnapshot]) -> list[ClusterSnapshot]:
        with_bases = {each: known[each] for snapshot in some for each in chain(snapshot.snapshot_id, bases)}
        return _snapshots(warehouse, some, with_bases, files)

    found: list[ClusterSnapshot] = []
    for together in _together(stored):
        try:
            found += read(together)
        except InvalidWarehouse:
            # A file between those of two snapshots may be damaged, and be neither's.
            found += [snapshot for marker in together for snapshot in read([marker])]
    return found


def _together(stored: Sequence[StoredSnapshot]) -> Iterator[list[StoredSnapshot]]:
    """The snapshots in parts of PARTITIONS_AT_ONCE. A file holds the rows of many, and is opened once for a part."""
    part: list[StoredSnapshot] = []
    for snapshot in stored:
        if part and sum(marker.partitions for marker in part) + snapshot.partitions > PARTITIONS_AT_ONCE:
            yield part
            part = []
        part.append(snapshot)
    if part:
        yield part


def _snapshots(
    warehouse: Warehouse,
    stored: Sequence[StoredSnapshot],
    with_bases: Mapping[str, StoredSnapshot],
    files: Mapping[str, Sequence[DataFile]],
) -> list[ClusterSnapshot]:
    """Snapshots made of them and their bases, from those of some files that may hold their rows."""
    content = {
        table.name: content_rows(warehouse, table, table.schema.names, stored, with_bases, files[table.name])
        for table in CONTENT
    }
    markers = rows_of(warehouse, SNAPSHOTS, SNAPSHOTS.schema.names, stored, files[SNAPSHOTS.name])
    return [_snapshot(warehouse, snapshot, content, markers) for snapshot in stored]


def _snapshot(
    warehouse: Warehouse, stored: StoredSnapshot, content: Mapping[str, Mapping[str, pa.Table]], markers: pa.Table
) -> ClusterSnapshot:
    tables = {name: rows[stored.snapshot_id] for name, rows in content.items()}
    tables[SNAPSHOTS.name] = markers.filter(pc.equal(markers["snapshot_id"], stored.snapshot_id))
    try:
        return to_snapshot(tables)
    except InvalidSnapshot as error:
        raise InvalidWarehouse(
            f"{warehouse.root}: snapshot {stored.snapshot_id} of {stored.cluster_id}: {error}"
        ) from None


def rows_of(
    warehouse: Warehouse,
    table: Table,
    columns: Sequence[str],
    stored: Iterable[StoredSnapshot],
    files: Sequence[DataFile] | None = None,
) -> pa.Table:
    """Columns of a landing table for some snapshots, in no particular order of snapshots. Errors: InvalidWarehouse.

    With `files`, only those of them that may hold such rows are read; without, the table's log says which there are.
    """
    schema = pa.schema([table.schema.field(name) for name in columns])
    stored = list(stored)
    ids = [snapshot.snapshot_id for snapshot in stored]
    near = files_of(warehouse, table, stored) if files is None else files_near(files, stored)
    return pa.Table.from_batches(read_files_at(warehouse.table(table.name), near, schema, ids), schema)


def content_rows(
    warehouse: Warehouse,
    table: Table,
    columns: Sequence[str],
    stored: Iterable[StoredSnapshot],
    chain: Mapping[str, StoredSnapshot],
    files: Sequence[DataFile] | None = None,
) -> dict[str, pa.Table]:
    """The whole rows of each of some snapshots in brokers, topics or partitions, by id, without snapshot_id and GONE.

    `chain` are these snapshots and their bases; `files` as in `rows_of`. Errors: InvalidWarehouse where a base is not stored.
    """
    read = rows_of(warehouse, table, list(dict.fromkeys([*columns, GONE])), chain.values(), files)
    contents = Contents(GRAINS[table.name], read, {identity: snapshot.base_id for identity, snapshot in chain.items()})
    return {snapshot.snapshot_id: contents.of(snapshot.snapshot_id) for snapshot in stored}


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
    """The missing rows of some snapshots. A snapshot is complete if each table has as many rows of it as its marker says, and all
    that it builds on is complete.

    Only ids are read, with `whole` every column. Errors: InvalidWarehouse where a log cannot be read.
    """
    files: dict[str, str] = {}
    snapshots: dict[str, str] = {}
    building = any(snapshot.base_id for snapshot in stored)
    chain = read_markers(warehouse, skip_damaged=True).with_bases(stored) if building else _by_id(stored)
    for table in STORED:
        # Only snapshots that were stored with a reading have rows in its tables.
        concerned = [
            snapshot for snapshot in chain.values() if table.name not in OF_READINGS or snapshot.rows_in(table.name)
        ]
        if not concerned:
            continue
        opened = existing_table(warehouse, table.name)
        counts: Counter[str] = Counter()
        damaged: list[DataFile] = []
        for file in files_near(data_files(opened), concerned):
            try:
                counts += snapshot_counts(opened, file, whole=whole)
            except InvalidWarehouse as error:
                files[f"{table.name}/{file.path}"] = str(error)
                damaged.append(file)
        for snapshot in concerned:
            present, wanted = counts[snapshot.snapshot_id], snapshot.rows_in(table.name)
            if present == wanted or (present and wanted is None):
                continue
            inside = [
                file for file in damaged if file.day == snapshot.day and file.may_hold(*[snapshot.snapshot_id] * 2)
            ]
            reason = (
                files[f"{table.name}/{inside[0].path}"] if inside else f"table {table.name} has {present} rows of it"
            )
            snapshots.setdefault(snapshot.snapshot_id, reason)
    for snapshot in sorted(chain.values(), key=lambda snapshot: snapshot.snapshot_id):
        # Bases come first: ids are in order of time.
        if snapshot.base_id is not None and snapshot.base_id not in chain:
            snapshots.setdefault(snapshot.snapshot_id, f"it builds on {snapshot.base_id}, which is not stored")
        elif snapshot.base_id in snapshots:
            snapshots.setdefault(snapshot.snapshot_id, snapshots[snapshot.base_id])
    given = {snapshot.snapshot_id for snapshot in stored}
    return Damage(files, {identity: reason for identity, reason in snapshots.items() if identity in given})


def _by_id(stored: Iterable[StoredSnapshot]) -> dict[str, StoredSnapshot]:
    return {snapshot.snapshot_id: snapshot for snapshot in stored}


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
    # A whole one, if there is one: its rows are all that has to be read.
    in_order = sorted(stored, key=lambda snapshot: snapshot.base_id is None)
    one_of_each = list({snapshot.members: snapshot for snapshot in in_order}.values())
    building = any(snapshot.base_id for snapshot in one_of_each)
    chain = read_markers(warehouse, skip_damaged=True).with_bases(one_of_each) if building else _by_id(one_of_each)
    columns = ("snapshot_id", "id", "host", "rack", "fenced", "cordoned", "failed_log_dirs")
    brokers = {
        identity: [
            Broker(
                BrokerId(row["id"]),
                _rack(row["rack"]),
                bool(row["fenced"]),
                host=row["host"],
                cordoned=bool(row["cordoned"]),
                failed_log_dirs=tuple(row["failed_log_dirs"] or ()),
            )
            for row in rows.to_pylist()
        ]
        for identity, rows in content_rows(warehouse, BROKERS, columns, one_of_each, chain).items()
    }
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
