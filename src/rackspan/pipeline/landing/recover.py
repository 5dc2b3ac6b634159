"""Repairs the landing tables after a power cut or a bad block has torn the newest entries of their logs.

Constraints: no stored snapshot is lost as long as its rows are on the disk; what is lost is reported; a kill at any step leaves
the rest to the next repair; two repairs at once do it once. Goal: a snapshot is as it was. Method: torn entries are renamed; the rows
they named are looked for in the data files, which are flushed before their commit; a marker whose own file is gone is made again of
the snapshot's rows, and its `partial` says that the controllers are unknown. Only then do the entries get their final name.
Bound: the ids of the torn tables, and data files that no version names. An object store has no torn entries: an upload is
there completely or not at all. Tests: tests/pipeline/landing/test_recover.py.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rackspan.errors import InvalidSnapshot, InvalidWarehouse
from rackspan.pipeline.delta.append import ConcurrentTransactionError, append
from rackspan.pipeline.delta.local_disk import (
    end_repair,
    former_name,
    locked,
    pending_files,
    set_aside_torn,
    torn_files,
)
from rackspan.pipeline.delta.table import DataFile, create_table, data_files, is_damaged, open_table, read_files
from rackspan.pipeline.landing.markers import lost_rows
from rackspan.pipeline.landing.rows import marker_row, marker_transaction, to_snapshot
from rackspan.pipeline.schemas import (
    BROKERS,
    CONTENT,
    GONE,
    LANDING,
    OF_READINGS,
    PARTITIONS,
    SNAPSHOTS,
    STORED,
    TOPICS,
    Table,
)
from rackspan.pipeline.warehouse import NOT_REPAIRED, Repair, Warehouse, existing_table
from rackspan.text import count_noun

if TYPE_CHECKING:
    from deltalake import DeltaTable

UNKNOWN: Final = (
    "the controller quorum is unknown: it was lost with a torn log entry of the warehouse",
    "topics that the snapshot could not read are unknown for the same reason",
    "min.insync.replicas of some topics may be unknown for the same reason",
    "which brokers are fenced may be unknown for the same reason",
    "reassignments under way may be unknown for the same reason",
)
"""The column `partial` of a marker that was made again. The beginnings are those that audit/drift/unread.py reads."""

ATTEMPTS: Final = 5

_DAY: Final = re.compile(r"day=(\d{4}-\d{2}-\d{2})/")


def repair(warehouse: Warehouse) -> Repair:
    """Repair the logs of the landing tables, and bring back what torn entries named. Errors: InvalidWarehouse."""
    folders = {name: folder for name in LANDING if (folder := warehouse.table_folder(name)) is not None}
    if not any(torn_files(folder) or pending_files(folder) for folder in folders.values()):
        _refuse_lost_tables(warehouse, ())
        return NOT_REPAIRED
    with locked(next(iter(folders.values())).parent):
        torn = {name: set_aside_torn(folder) for name, folder in folders.items()}
        if not any(torn.values()):
            return NOT_REPAIRED
        _refuse_lost_tables(warehouse, [name for name, files in torn.items() if files])
        for table in LANDING.values():
            create_table(warehouse.table(table.name), table.declared, table.meaning, by_day=True)
        lines = [
            f"{warehouse.root}: table {name}: {', '.join(map(former_name, files))} in its log was torn, and is kept with the ending .torn"
            for name, files in torn.items()
            if files
        ]
        found, lost = bring_back(warehouse, [name for name, files in torn.items() if files])
        _forget_position(warehouse)
        for folder in folders.values():
            end_repair(folder)
    if not found and not lost:
        found.append("every stored snapshot is there")
    return Repair((*lines, *found), tuple(lost))


def _refuse_lost_tables(warehouse: Warehouse, torn: Collection[str]) -> None:
    """Refuse to make a table anew, and empty, that stored snapshots have rows in. `torn` ones are made again of their files."""
    gone = [name for name in LANDING if name not in torn and not _is_there(warehouse, name)]
    # Without the markers nothing says that a table has had rows.
    for name, count in ({} if SNAPSHOTS.name in (*gone, *torn) else lost_rows(warehouse, gone)).items():
        raise InvalidWarehouse(
            f"{warehouse.root}: its table {name} is gone, in which the stored snapshots have {count_noun(count, 'row', ',')}; copy its "
            "folder back from a backup, or store in another --warehouse"
        )


def _is_there(warehouse: Warehouse, name: str) -> bool:
    folder = warehouse.table_folder(name)
    return open_table(warehouse.table(name)) is not None if folder is None else any(folder.glob("_delta_log/*"))


def bring_back(
    warehouse: Warehouse,
    tables: Collection[str],
    *,
    torn: bool = True,
    files: Mapping[str, Sequence[DataFile]] | None = None,
) -> tuple[list[str], list[str]]:
    """Look for rows of some tables in files that no version names. Returns a line for each kind found, and for each one lost.

    With `torn`, the newest commits are gone: a marker that only such a file has counts as one that was stored. With `files` of each
    table, only these are looked at, and on an object store too. Errors: InvalidWarehouse.
    """
    for _ in range(ATTEMPTS):
        try:
            return _bring_back(warehouse, tables, torn, files)
        except ConcurrentTransactionError:
            # A collector has stored one of the same snapshots meanwhile.
            continue
    raise InvalidWarehouse(f"{warehouse.root}: collectors store the same snapshots all the time; stop one of them")


def _bring_back(
    warehouse: Warehouse, tables: Collection[str], torn: bool, files: Mapping[str, Sequence[DataFile]] | None
) -> tuple[list[str], list[str]]:
    found, lost = [], []

    def orphans(name: str) -> Iterable[DataFile]:
        return _orphans(warehouse, name) if files is None else files[name]

    orphaned = {}
    if SNAPSHOTS.name in tables:
        rows = rows_of_files(warehouse, SNAPSHOTS, orphans(SNAPSHOTS.name))
        orphaned = {row["snapshot_id"]: row for row in rows}
    markers = {row["snapshot_id"]: row for row in _rows(warehouse, SNAPSHOTS)} | (orphaned if torn else {})
    for table in STORED:
        if table.name in tables:
            back, missing = _bring_back_rows(warehouse, table, markers, orphans)
            if back:
                found.append(f"table {table.name}: the rows of {_named(back)} are back, from the data files")
            # A marker that is stored only in a file that no version names may belong to a day that was dropped.
            lost += [
                f"snapshot {snapshot_id} of {markers[snapshot_id]['cluster_id']}: its rows in {table.name} are lost"
                for snapshot_id in missing
                if snapshot_id not in orphaned
            ]
    if SNAPSHOTS.name in tables:
        back, remade = _bring_back_markers(warehouse, orphaned)
        if back:
            found.append(
                f"table snapshots: {_named(back)} {'is' if len(back) == 1 else 'are'} back, from the data files"
            )
        lost += [
            f"snapshot {snapshot_id}: its row in snapshots is made again, but its controllers are lost"
            for snapshot_id in remade
        ]
    return found, lost


def _bring_back_rows(
    warehouse: Warehouse,
    table: Table,
    markers: Mapping[str, Mapping[str, Any]],
    orphans: Callable[[str], Iterable[DataFile]],
) -> tuple[list[str], list[str]]:
    """Append the rows of stored snapshots that a table lacks, where one of `orphans` has all of them. Returns ids: found, and missing."""
    opened = existing_table(warehouse, table.name)
    present = _counts(warehouse, table)
    counts = {marker: _rows_in(row, table) for marker, row in markers.items() if marker not in present}
    hidden = _unreadable(opened)
    missing = {
        snapshot_id: count
        for snapshot_id, count in counts.items()
        if count != 0 and not _may_be_in(hidden, snapshot_id)
    }
    parts: dict[str, pa.Table] = {}
    for file in orphans(table.name) if missing else ():
        rows = _read(opened, file, table, sorted(missing.keys() - parts.keys()))
        for identity, count in Counter(rows["snapshot_id"].to_pylist()).items():
            if missing[identity] in (None, count):
                parts[identity] = rows.filter(pc.equal(rows["snapshot_id"], identity))
    if parts:
        append(opened, pa.concat_tables(parts.values()), dict.fromkeys(parts, 1))
    return sorted(parts), sorted(missing.keys() - parts.keys())


def _bring_back_markers(warehouse: Warehouse, orphaned: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Append the markers of snapshots whose rows are all there. Returns ids: with their own marker, and with one made again."""
    opened = existing_table(warehouse, SNAPSHOTS.name)
    stored = [(row["cluster_id"], row["taken_at"]) for row in _rows(warehouse, SNAPSHOTS, KEYS)]
    keys, rows, ids = set(stored), [], ([], [])  # type: ignore[var-annotated]  # Typed where they are appended to.
    known = {row["snapshot_id"] for row in _rows(warehouse, SNAPSHOTS, KEYS)}
    counts = {table.name: _counts(warehouse, table) for table in STORED}
    # Of one that is not whole no marker can be made: its rows do not say what they differ from.
    whole = (row for row in _rows(warehouse, BROKERS, (*KEYS, GONE)) if row[GONE] is None)
    unmarked = {row["snapshot_id"]: (row["cluster_id"], row["taken_at"]) for row in (*whole, *orphaned.values())}
    hidden = _unreadable(opened)
    # Those with a marker of their own first: of two of one time, a killed collect left the other.
    for identity in sorted(unmarked, key=lambda snapshot_id: (snapshot_id not in orphaned, snapshot_id)):
        if unmarked[identity] in keys or _may_be_in(hidden, identity):
            continue
        marker = orphaned.get(identity)
        if marker is not None and _is_complete(marker, counts) and marker["base_id"] in (None, *known):
            rows.append(pa.Table.from_pylist([marker], SNAPSHOTS.schema))
        elif marker is None and (made := _made_again(warehouse, identity, counts[PARTITIONS.name][identity])):
            rows.append(made)
        else:
            continue
        keys.add(unmarked[identity])
        known.add(identity)
        ids[marker is None].append(identity)
    if rows:
        transactions = [marker_transaction(*unmarked[snapshot_id]) for snapshot_id in (*ids[0], *ids[1])]
        append(opened, pa.concat_tables(rows), dict.fromkeys(transactions, 1))
    return ids


def _made_again(warehouse: Warehouse, identity: str, partitions: int) -> pa.Table | None:
    """The marker of a snapshot, made of its rows in the other tables; None where a collect was killed before the last of them."""
    stored = existing_table(warehouse, PARTITIONS.name).transaction_version(identity) is not None
    if not (stored or partitions):
        return None
    tables = {
        table.name: pa.Table.from_batches(_batches(warehouse, table, table.schema.names, [identity]), table.schema)
        for table in CONTENT
    }
    first = tables[BROKERS.name].slice(0, 1).select(["cluster_id", "taken_at", "day", "snapshot_id"]).to_pylist()[0]
    head = {**first, "controllers": [], "partial": list(UNKNOWN)}
    try:
        snapshot = to_snapshot({**tables, SNAPSHOTS.name: pa.Table.from_pylist([head], SNAPSHOTS.schema)})
    except InvalidSnapshot:
        return None
    return marker_row(identity, snapshot, tables)


def _rows_in(marker: Mapping[str, Any], table: Table) -> int | None:
    """How many rows a table has of a snapshot, by its row in `snapshots`; None where that does not say."""
    counted = {
        TOPICS.name: marker["topics"],
        PARTITIONS.name: marker["partitions"],
        **dict(marker["stored_rows"] or ()),
    }
    # One that was stored without a reading has no rows of one.
    return counted.get(table.name, 0 if table.name in OF_READINGS else None)


def _is_complete(marker: Mapping[str, Any], counts: Mapping[str, Counter[str]]) -> bool:
    wanted = {table.name: _rows_in(marker, table) for table in STORED}
    return all(count in (None, counts[name][marker["snapshot_id"]]) for name, count in wanted.items())


def rows_of_files(warehouse: Warehouse, table: Table, files: Iterable[DataFile]) -> list[dict[str, Any]]:
    """The rows of those of some data files of a table that can be read."""
    opened = existing_table(warehouse, table.name)
    return [row for file in files for row in _read(opened, file, table).to_pylist()]


def _orphans(warehouse: Warehouse, name: str) -> Iterator[DataFile]:
    """The data files below the folder of a landing table that its newest version does not name."""
    folder = warehouse.table_folder(name)
    if folder is None:
        return
    named = {file.path for file in data_files(existing_table(warehouse, name))}
    for file in sorted(folder.glob("day=*/*.parquet")):
        path = file.relative_to(folder).as_posix()
        day = _DAY.match(path)
        if path not in named and day is not None:
            yield DataFile(path, date.fromisoformat(day[1]), 0, None, None)


def _read(opened: "DeltaTable", file: DataFile, table: Table, ids: Collection[str] | None = None) -> pa.Table:
    """The rows of a file, of some snapshots if ids are given; none where it cannot be read."""
    try:
        batches = list(read_files(opened, [file], table.schema, None if ids is None else sorted(ids)))
    except InvalidWarehouse:
        batches = []
    return pa.Table.from_batches(batches, table.schema)


def _unreadable(opened: "DeltaTable") -> list[DataFile]:
    """Damaged files that the newest version names. Their rows are not made again: the file may be copied back."""
    return [file for file in data_files(opened) if is_damaged(opened, file)]


def _may_be_in(files: Collection[DataFile], identity: str) -> bool:
    return any(file.may_hold(identity, identity) for file in files)


KEYS: Final = ("cluster_id", "taken_at", "snapshot_id")


def _counts(warehouse: Warehouse, table: Table) -> Counter[str]:
    """The number of rows of each snapshot in a table."""
    counts: Counter[str] = Counter()
    for batch in _batches(warehouse, table, ("snapshot_id",)):
        for entry in pc.value_counts(batch.column(0)).to_pylist():
            counts[entry["values"]] += entry["counts"]
    return counts


def _rows(warehouse: Warehouse, table: Table, columns: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """Some columns of a table, of all its readable files."""
    for batch in _batches(warehouse, table, columns or table.schema.names):
        yield from batch.to_pylist()


def _batches(
    warehouse: Warehouse, table: Table, columns: Collection[str], ids: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    opened = existing_table(warehouse, table.name)
    schema = pa.schema([table.schema.field(name) for name in columns])
    wanted = None if ids is None else sorted(ids)
    for file in data_files(opened):
        if wanted is None or file.may_hold(wanted[0], wanted[-1]):
            try:
                yield from list(read_files(opened, [file], schema, wanted))
            except InvalidWarehouse:
                # A damaged file is reported by `pipeline check`, and does not stop the repair of the log.
                continue


def _forget_position(warehouse: Warehouse) -> None:
    """Remove the position of `follow` in the log of `snapshots`: the versions after it are others now."""
    if warehouse.folder is not None:
        shutil.rmtree(warehouse.folder / "checkpoints", ignore_errors=True)


def _named(ids: Collection[str]) -> str:
    """Some snapshots in words."""
    return f"{count_noun(len(ids), 'snapshot')} ({', '.join(sorted(ids)[:3])}{', …' if len(ids) > 3 else ''})"
