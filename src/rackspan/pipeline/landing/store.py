"""Stores snapshots in the landing tables: one append to each table for any number of snapshots, the marker table last.

Constraints: a snapshot is stored completely or not at all, and once, however many collectors store it at the same time and
whenever one is killed. Goal: only what differs is written (bases.py). Method: rows carry the snapshot's id; a transaction for each id makes the append of a retry a conflict;
the row in `snapshots` is committed last, under a transaction for cluster and time. Delta has no transaction over several
tables, so a kill between two of them leaves rows without a marker, which no reader of ours sees: a retry of the same content
adopts them, and the rest is harmless, since readers go by the ids of `snapshots`. Bound: a commit for each table with rows. Source: Delta protocol, "Transaction Identifiers". Tests:
tests/pipeline/landing/test_store.py, tests/pipeline/test_killed.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rackspan.errors import InvalidSnapshot, InvalidWarehouse, WarehouseBusy
from rackspan.model.snapshot import ClusterSnapshot, known_until
from rackspan.pipeline.changes.known_time import DISTANCES, NOT_STORED, filled, micros, time_of
from rackspan.pipeline.delta.append import ConcurrentTransactionError, NewFile, append, commit, new_files
from rackspan.pipeline.delta.table import DataFile, add_columns, read_files
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot, read_markers
from rackspan.pipeline.landing.read import ids_with_rows, read_snapshot
from rackspan.pipeline.landing.rows import NewSnapshot, landing_rows, marker_transaction, snapshot_id, snapshot_key
from rackspan.pipeline.schemas import SNAPSHOTS
from rackspan.pipeline.warehouse import Warehouse, existing_table
from rackspan.traffic import ClusterReading

ATTEMPTS: Final = 20
"""Each conflict means that another collector has stored one of the same snapshots, so few can follow each other."""


@dataclass(frozen=True, slots=True)
class SnapshotLocation:
    """Where a snapshot is stored: the warehouse and the snapshot's id. `new` is false where it was there already."""

    warehouse: str
    snapshot_id: str
    new: bool


def store(snapshot: ClusterSnapshot, warehouse: Warehouse) -> SnapshotLocation:
    """Store one snapshot, whole. Storing an equal one again changes nothing.

    Errors: InvalidSnapshot where cluster id or time are missing, or where a different one with the same time exists;
    InvalidWarehouse where the tables cannot be written.
    """
    (stored,) = store_all([snapshot], warehouse)
    if isinstance(stored, InvalidSnapshot):
        raise stored
    return stored


def store_all(
    snapshots: Sequence[ClusterSnapshot],
    warehouse: Warehouse,
    bases: Bases | None = None,
    readings: Mapping[int, ClusterReading] = MappingProxyType({}),
    period_seconds: float | None = None,
) -> list[SnapshotLocation | InvalidSnapshot]:
    """Store snapshots with one append to each table. A refused snapshot does not stop the others. Errors: as `store`.

    Of a snapshot that can build on one of `bases`, which are brought up to date, only what differs is stored; without `bases` each
    is stored whole. `readings` were taken with some of the snapshots, by their places.
    `period_seconds` is how often the collector takes one; without it that follows from the times of the snapshots before each.
    """
    for _ in range(ATTEMPTS):
        markers = read_markers(warehouse)
        newest = None if bases is None else _still_stored(bases, markers)
        outcomes, new = _judged(snapshots, markers, warehouse, newest, readings)
        try:
            _append_all(_with_known_until(new, markers, period_seconds), markers, warehouse)
        except ConcurrentTransactionError:
            continue
        if bases is not None and newest is not None:
            bases.newest = newest.newest
        return outcomes
    raise InvalidWarehouse(
        f"{warehouse.root}: other collectors store the same snapshots all the time; stop one of them"
    )


def store_known_until(warehouse: Warehouse) -> None:
    """Store `known_until` of the snapshots that an earlier rackspan stored without it, so that nobody makes it again.

    Errors: InvalidWarehouse; WarehouseBusy where somebody else replaces files of `snapshots`.
    """
    markers = read_markers(warehouse, skip_damaged=True)
    column = pa.schema([SNAPSHOTS.schema.field("known_until")])
    removed: list[DataFile] = []
    added: list[NewFile] = []
    for file in markers.files:
        stored = {snapshot.snapshot_id: snapshot for snapshot in markers.of_file(file)}
        known = pa.Table.from_batches(read_files(markers.table, [file] if stored else [], column), column)
        if not known["known_until"].null_count:
            continue
        if not removed:
            add_columns(markers.table, SNAPSHOTS.declared)
        rows = pa.Table.from_batches(read_files(markers.table, [file], SNAPSHOTS.schema), SNAPSHOTS.schema)
        until = [stored[identity].known_until for identity in rows["snapshot_id"].to_pylist()]
        place = rows.column_names.index("known_until")
        rows = rows.set_column(place, column.field(0), pa.array(until, column.field(0).type))
        added += new_files(markers.table, rows)
        removed.append(file)
    if removed:
        try:
            commit(markers.table, added, {}, removed=removed)
        except ConcurrentTransactionError:
            raise WarehouseBusy(
                f"{warehouse.root}: another program changes table {SNAPSHOTS.name} at the same time; run again"
            ) from None


def _still_stored(bases: Bases, markers: Markers) -> Bases:
    """The bases that nobody has dropped meanwhile."""
    stored = {snapshot.snapshot_id for snapshot in markers.named(base.snapshot_id for base in bases.newest.values())}
    return Bases({cluster: base for cluster, base in bases.newest.items() if base.snapshot_id in stored})


def _judged(
    snapshots: Sequence[ClusterSnapshot],
    markers: Markers,
    warehouse: Warehouse,
    bases: Bases | None,
    readings: Mapping[int, ClusterReading],
) -> tuple[list[SnapshotLocation | InvalidSnapshot], dict[str, NewSnapshot]]:
    """The outcome for each snapshot, and those that are not stored yet, by id. They become the bases of the next ones."""
    keys = [_key_or_error(snapshot) for snapshot in snapshots]
    times = [key[1] for key in keys if not isinstance(key, InvalidSnapshot)]
    there = {(snapshot.cluster_id, snapshot.taken_at): snapshot for snapshot in markers.at(times)} if times else {}
    new: dict[str, NewSnapshot] = {}
    identities: dict[object, str] = {}
    outcomes: list[SnapshotLocation | InvalidSnapshot] = []
    for place, (snapshot, key) in enumerate(zip(snapshots, keys, strict=True)):
        if isinstance(key, InvalidSnapshot):
            outcomes.append(key)
            continue
        kept = identities.get(key)
        if key in there:
            outcomes.append(_already_there(snapshot, there[key], warehouse))
        elif kept is None:
            added = NewSnapshot(snapshot, None if bases is None else bases.base_of(snapshot), readings.get(place))
            identity = identities[key] = added.identity
            new[identity] = added
            if bases is not None:
                bases.add(added.as_base())
            outcomes.append(SnapshotLocation(warehouse.root, identity, new=True))
        elif new[kept].snapshot.same_as(snapshot):
            outcomes.append(SnapshotLocation(warehouse.root, kept, new=False))
        else:
            outcomes.append(_differs(warehouse, kept))
    return outcomes, new


def _with_known_until(
    new: Mapping[str, NewSnapshot], markers: Markers, period_seconds: float | None
) -> dict[str, NewSnapshot]:
    """New snapshots with the time until which each says something: by the period, or by what is stored now before each."""
    keys = {identity: snapshot_key(added.snapshot) for identity, added in new.items()}
    if period_seconds is not None:
        until = {identity: known_until(taken_at, period_seconds) for identity, (_, taken_at) in keys.items()}
    else:
        until = _by_distances(keys, markers) if keys else {}
    return {identity: replace(added, known_until=until[identity]) for identity, added in new.items()}


def _by_distances(keys: Mapping[str, tuple[str, datetime]], markers: Markers) -> dict[str, datetime]:
    """The same by the distances between the snapshots before each, new ones among them."""
    times: dict[str, set[datetime]] = {}
    for cluster_id, taken_at in keys.values():
        times.setdefault(cluster_id, set()).add(taken_at)
    ends = [end(each) for each in times.values() for end in (min, max)]
    near = markers.between(min(ends), max(ends))
    firsts = {cluster_id: min(of_cluster) for cluster_id, of_cluster in times.items()}
    for _ in range(DISTANCES):
        before = markers.before(firsts) if firsts else {}
        near += before.values()
        firsts = {cluster_id: snapshot.taken_at for cluster_id, snapshot in before.items()}
    for snapshot in near:
        if snapshot.cluster_id in times:
            times[snapshot.cluster_id].add(snapshot.taken_at)
    ordered = sorted((cluster_id, taken_at) for cluster_id, of_cluster in times.items() for taken_at in of_cluster)
    numbers = {cluster_id: number for number, cluster_id in enumerate(times)}
    clusters = np.array([numbers[cluster_id] for cluster_id, _ in ordered], np.int64)
    at = np.array([micros(taken_at) for _, taken_at in ordered], np.int64)
    until = dict(zip(ordered, filled(clusters, at, np.full(len(at), NOT_STORED)).tolist(), strict=True))
    return {identity: time_of(until[key]) for identity, key in keys.items()}


def _append_all(new: Mapping[str, NewSnapshot], markers: Markers, warehouse: Warehouse) -> None:
    if not new:
        return
    for name, rows in landing_rows(new.values()).items():
        if name == SNAPSHOTS.name:
            # From the version in which they were missing: a commit since then that has one of them is a conflict.
            keys = (snapshot_key(added.snapshot) for added in new.values())
            append(markers.table, rows, {marker_transaction(*key): 1 for key in keys})
            continue
        if not len(rows):
            continue
        table = existing_table(warehouse, name)
        # What a killed collector has committed already is adopted: the same id means the same rows.
        adopted = ids_with_rows(table, list(new))
        missing = [identity for identity in pc.unique(rows["snapshot_id"]).to_pylist() if identity not in adopted]
        if missing:
            rows = rows.filter(pc.is_in(rows["snapshot_id"], pa.array(missing, pa.string())))
            append(table, rows, dict.fromkeys(missing, 1))


def _already_there(
    snapshot: ClusterSnapshot, stored: StoredSnapshot, warehouse: Warehouse
) -> SnapshotLocation | InvalidSnapshot:
    identity = snapshot_id(snapshot, stored.base_id)
    if identity != stored.snapshot_id and not _same(read_snapshot(warehouse, stored), snapshot, stored):
        return _differs(warehouse, stored.snapshot_id)
    return SnapshotLocation(warehouse.root, stored.snapshot_id, new=False)


def _same(kept: ClusterSnapshot, snapshot: ClusterSnapshot, stored: StoredSnapshot) -> bool:
    """Whether a stored snapshot is this one, whose sizes need not be equal where they were not stored."""
    if stored.base_id is None:
        return kept.same_as(snapshot)
    partitions = replace(kept.partitions, size_bytes=snapshot.partitions.size_bytes)
    return replace(kept, partitions=partitions).same_as(snapshot)


def _differs(warehouse: Warehouse, identity: str) -> InvalidSnapshot:
    return InvalidSnapshot(
        f"another snapshot of this cluster and time is stored already in {warehouse.root}, and it differs: {identity}; "
        "correct taken_at"
    )


def _key_or_error(snapshot: ClusterSnapshot) -> tuple[str, datetime] | InvalidSnapshot:
    try:
        return snapshot_key(snapshot)
    except InvalidSnapshot as error:
        return error
