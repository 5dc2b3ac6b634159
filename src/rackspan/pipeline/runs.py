"""The tables `runs` and `judged`: which version of each table readers follow, and which snapshots the tables have.

A run commits its derived tables, then `judged`, then its row in `runs`. Readers read each table at the version that the newest row
names, so they see all tables of one run or none, although Delta has no transaction over several tables. What a killed run
left is in versions that no row names; the next run restores the named ones first.
"""

import hashlib
import json
import secrets
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rackspan import __version__
from rackspan.errors import InvalidWarehouse, WarehouseBusy
from rackspan.pipeline.delta.append import ConcurrentTransactionError, NewFile, append, commit, new_files
from rackspan.pipeline.delta.local_disk import flush_log, repair_log
from rackspan.pipeline.delta.replace import without_rows
from rackspan.pipeline.delta.table import (
    add_columns,
    create_table,
    data_files,
    is_damaged,
    one_line,
    open_table,
    read_files,
    snapshot_counts,
)
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.schemas import DERIVED, HOURLY, JUDGED, RUNS, TABLES, Table
from rackspan.pipeline.schemas.hours import ADVICE, BILL
from rackspan.pipeline.warehouse import FilesRead, Warehouse, existing_table, rows_kept
from rackspan.traffic import PriceFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

TRANSACTION: Final = "rackspan-run"
"""The application id of every commit of a run: of two runs that write at once, Delta refuses the second."""

RUN_FOLDERS: Final = "[0-9]" * 10 + "-*"
"""What a run writes for a table is in a folder of its id, from where no commit moves it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `runs`. `number` is its place in the history, from 1."""

    number: int
    run_id: str
    kind: str
    started_at: datetime
    ended_at: datetime
    policy: Mapping[str, Any]
    made_by: Mapping[str, str]
    versions: Mapping[str, int]
    rows: Mapping[str, int] = field(default_factory=dict)
    snapshots: int = 0
    remade: int = 0
    reason: str | None = None
    quarantined: Mapping[str, str] = field(default_factory=dict)
    """Why snapshots could not be judged, by id."""
    prices: str | None = None
    """The price file, as JSON."""
    rackspan_version: str = __version__


def new_run_id(number: int) -> str:
    """A run's id: its number, by which ids sort, and a random part, since a killed run's number is used again."""
    return f"{number:010}-{secrets.token_hex(4)}"


def run_number(run_id: str) -> int:
    """The number that a run's id begins with."""
    return int(run_id.partition("-")[0])


def last_run(warehouse: Warehouse) -> Run | None:
    """The newest run, None before the first. Errors: InvalidWarehouse."""
    table = open_table(warehouse.table(RUNS.name))
    return None if table is None else newest_row(table)


def newest_row(table: "DeltaTable") -> Run | None:
    """The newest row of the table `runs`."""
    files = data_files(table)
    if not files:
        return None
    newest = max(files, key=lambda file: file.most or "~")
    rows = [row for batch in read_files(table, [newest], RUNS.schema) for row in batch.to_pylist()]
    row = max(rows, key=lambda row: str(row["run_id"]))
    if newest.most is not None and row["run_id"] != newest.most:
        raise InvalidWarehouse(f"{table.table_uri}: {newest.path} is damaged: it has other rows than its log says")
    return _run(row)


def leave_out_unreadable(runs: "DeltaTable") -> list[str]:
    """Take files with rows of earlier runs that cannot be read out of the table `runs`. Returns a line for each.

    The newest row, which readers follow, has to be readable. Errors: InvalidWarehouse, UnreadableStore.
    """
    newest = newest_row(runs)
    damaged = [file for file in data_files(runs) if is_damaged(runs, file)]
    if newest is None or not damaged:
        return []
    commit(runs, [], {TRANSACTION: newest.number}, removed=damaged)
    return [f"table {RUNS.name}: {file.path} is damaged; the row of an earlier run is left out" for file in damaged]


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The tables `judged` and `runs`, and the newest run. `lost` tables have to be made anew, `lines` say why."""

    judged: "DeltaTable"
    runs: "DeltaTable"
    last: Run | None
    lost: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    derived: "Mapping[str, DeltaTable]" = field(default_factory=dict)
    """The derived tables, each as of when the run began until the run commits to it."""


def open_history(warehouse: Warehouse, rebuilt: Collection[str] = ()) -> RunHistory:
    """The history, its tables created where missing, their logs repaired. For the one active run. Errors: InvalidWarehouse.

    A table that is gone, or older than the newest run says, is begun anew; so is one of `rebuilt` that cannot be opened.
    """
    every = {table.name: table for table in (RUNS, JUDGED, *DERIVED.values())}
    lines = []
    for name in every:
        folder = warehouse.table_folder(name)
        torn = [] if folder is None else repair_log(folder)
        if torn:
            lines.append(f"table {name}: {', '.join(torn)} in its log was torn, and is kept with the ending .torn")
    if RUNS.name in rebuilt and not _has_rows(warehouse):
        _begin_anew(warehouse, RUNS)
    runs = _ready(warehouse, RUNS, open_table(warehouse.table(RUNS.name)))
    last = newest_row(runs)
    found = {name: _found(warehouse, name, last, name in rebuilt) for name in every if name != RUNS.name}
    lost = [name for name, (_, is_lost) in found.items() if is_lost]
    if JUDGED.name in lost:
        # It lists which snapshots the others have rows of.
        lost = list(found)
    if lost and last is not None:
        lines += [f"table {name}: lost, so its rows are made again" for name in lost]
        last = _without_tables(warehouse, runs, last, lost)
    for name in lost:
        _begin_anew(warehouse, every[name])
    ready = {
        name: _ready(warehouse, every[name], None if name in lost else opened) for name, (opened, _) in found.items()
    }
    if warehouse.read is not None:
        warehouse.read.opened.update({(name, None): table for name, table in {**ready, RUNS.name: runs}.items()})
    return RunHistory(ready.pop(JUDGED.name), runs, last, tuple(lost), tuple(lines), ready)


def _ready(warehouse: Warehouse, table: Table, opened: "DeltaTable | None") -> "DeltaTable":
    """A table with every column it is declared with, created where it is missing."""
    if opened is None:
        create_table(warehouse.table(table.name), table.declared, table.meaning, by_day=table is not RUNS)
        return existing_table(warehouse, table.name)
    add_columns(opened, table.declared)
    return opened


def _has_rows(warehouse: Warehouse) -> bool:
    """Whether the newest row of `runs` can be read."""
    try:
        return last_run(warehouse) is not None
    except InvalidWarehouse:
        return False


def _found(warehouse: Warehouse, name: str, last: Run | None, rebuilt: bool) -> "tuple[DeltaTable | None, bool]":
    """A table, if it is there, and whether it is lost: without the version that the newest run names."""
    named = 0 if last is None else last.versions.get(name, 0)
    try:
        opened = open_table(warehouse.table(name))
        if rebuilt and opened is not None and last is not None and name in last.versions:
            same_files(opened, warehouse, {**DERIVED, JUDGED.name: JUDGED}[name], named)
            for file in data_files(opened) if name == JUDGED.name else ():
                snapshot_counts(opened, file, whole=True)
    except InvalidWarehouse as error:
        if rebuilt:
            return None, True
        raise InvalidWarehouse(f"{error}; {how_to_rebuild(warehouse, name)}") from None
    if opened is None:
        return None, last is not None and name in last.versions
    behind = int(opened.version()) < named
    return opened, behind or _has_another_layout(opened, {**DERIVED, JUDGED.name: JUDGED}[name])


def _has_another_layout(opened: "DeltaTable", table: Table) -> bool:
    """Whether a release made the table whose rows cannot have a column that every row has now."""
    there = {field.name for field in opened.schema().fields}
    return any(not column.nullable and column.name not in there for column in table.columns)


def how_to_rebuild(warehouse: Warehouse, name: str) -> str:
    """The command that makes a table again, as the end of a message."""
    return (
        f"rackspan pipeline rebuild {name + ' ' if name in DERIVED else ''}--warehouse {warehouse.root} makes it again"
    )


def _without_tables(warehouse: Warehouse, runs: "DeltaTable", last: Run, lost: Collection[str]) -> Run:
    """Commit a row that names no version of some tables, before they are begun anew: their versions begin at 0 again."""
    number = last.number + 1
    made = replace(
        last,
        number=number,
        run_id=new_run_id(number),
        kind="rebuild",
        made_by={name: made for name, made in last.made_by.items() if name not in lost},
        versions={name: version for name, version in last.versions.items() if name not in lost},
        rows={},
        snapshots=0,
        remade=0,
        reason=f"lost: {', '.join(lost)}",
    )
    if made.versions != last.versions or made.made_by != last.made_by:
        commit_run(warehouse, runs, made)
        return made
    return last


def _begin_anew(warehouse: Warehouse, table: Table) -> None:
    """Remove a table that cannot be used, in one step. Errors: InvalidWarehouse on an object store."""
    folder = warehouse.table_folder(table.name)
    if folder is None:
        raise InvalidWarehouse(
            f"{warehouse.root}: table {table.name} cannot be used; delete everything below {warehouse.table(table.name)} with your "
            "store's own tool, then run rackspan pipeline rebuild again"
        )
    for left in folder.parent.glob(f".{table.name}.removed-*"):
        shutil.rmtree(left, ignore_errors=True)
    if folder.is_dir():
        removed = folder.with_name(f".{table.name}.removed-{secrets.token_hex(4)}")
        folder.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)


def commit_run(warehouse: Warehouse, runs: "DeltaTable", run: Run) -> None:
    """Write the row that readers follow. Errors: InvalidWarehouse where another run was faster."""
    row = {
        "run_id": run.run_id,
        "kind": run.kind,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "rackspan_version": run.rackspan_version,
        "policy": json.dumps(run.policy, ensure_ascii=False, sort_keys=True),
        "prices": run.prices,
        "made_by": list(run.made_by.items()),
        "versions": list(run.versions.items()),
        "rows": list(run.rows.items()),
        "snapshots": run.snapshots,
        "remade": run.remade,
        "reason": run.reason,
        "quarantined": list(run.quarantined.items()),
    }
    try:
        append(runs, pa.Table.from_pylist([row], RUNS.schema), {TRANSACTION: run.number}, run_id=run.run_id)
    except ConcurrentTransactionError:
        raise concurrent(warehouse) from None


def concurrent(warehouse: Warehouse) -> WarehouseBusy:
    """The error of a run that met another one's commits."""
    return WarehouseBusy(
        f"{warehouse.root}: another rackspan pipeline run wrote its tables at the same time; nothing of this one counts, "
        "run again"
    )


def judged_bases(
    judged: "DeltaTable", days: Collection[date] | None = None, read: FilesRead | None = None
) -> dict[str, str | None]:
    """For each snapshot of some days, or of all, that the tables have the one that its rows differ from, by id."""
    files = data_files(judged)
    known = {} if read is None else rows_kept(read.judged, files)
    schema = pa.schema([JUDGED.schema.field(name) for name in ("snapshot_id", "base_id")])
    found: dict[str, str | None] = {}
    for file in files:
        if days is None or file.day in days:
            if file.path not in known:
                rows = (row for batch in read_files(judged, [file], schema) for row in batch.to_pylist())
                known[file.path] = [(row["snapshot_id"], row["base_id"]) for row in rows]
            found.update(known[file.path])
    return found


def without_known_until(judged: "DeltaTable") -> list[str]:
    """The ids of the snapshots that an earlier rackspan has judged, whose rows lack `known_until`."""
    schema = pa.schema([JUDGED.schema.field(name) for name in ("snapshot_id", "known_until")])
    rows = pa.Table.from_batches(read_files(judged, data_files(judged), schema), schema)
    ids: list[str] = rows.filter(rows["known_until"].is_null())["snapshot_id"].to_pylist()
    return ids


def judged_times(judged: "DeltaTable") -> dict[str, tuple[str, datetime]]:
    """The cluster and the time in UTC of each snapshot that the tables have, by id."""
    schema = pa.schema([JUDGED.schema.field(name) for name in ("snapshot_id", "cluster_id", "taken_at")])
    return {
        row["snapshot_id"]: (row["cluster_id"], row["taken_at"].astimezone(UTC))
        for batch in read_files(judged, data_files(judged), schema)
        for row in batch.to_pylist()
    }


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """The rows of one table that a run replaces: those of the units `ids` on `days`, and all of `whole_days`."""

    table: Table
    run_id: str
    version: int
    restored: int | None
    ids: Collection[str]
    days: Collection[date]
    whole_days: frozenset[date] = frozenset()
    skip_damaged: bool = False
    """Whether the rows of a damaged file are made again, but for those of snapshots that are not whole."""


def committed(warehouse: Warehouse, replaced: ReplacedRows, added: Sequence[NewFile]) -> tuple[int, int]:
    """Commit what the build wrote for a table. Returns the table's version, which is on the disk, and the rows written.

    Errors: WarehouseBusy where somebody else has committed since the run began.
    """
    table = existing_table(warehouse, replaced.table.name)
    if table.version() != replaced.version:
        raise concurrent(warehouse)
    expected = replaced.version
    if replaced.restored is not None:
        expected += restore(warehouse, table, replaced.table, replaced.restored, replaced.run_id)
    removed, kept = without_rows(
        table, replaced.ids, replaced.whole_days, replaced.days, skip_damaged=replaced.skip_damaged
    )
    if added or removed:
        try:
            transaction = {TRANSACTION: run_number(replaced.run_id)}
            commit(table, [*added, *kept], transaction, removed=removed, run_id=replaced.run_id)
        except ConcurrentTransactionError:
            raise concurrent(warehouse) from None
        expected += 1
    if table.version() != expected:
        raise concurrent(warehouse)
    return expected, sum(file.rows for file in added)


def standing(warehouse: Warehouse, past: RunHistory, table: Table) -> tuple[int, int | None]:
    """The version a derived table was at when the run began, and the one it has to be restored to if a killed run has left rows there."""
    current, named = past.derived[table.name], 0 if past.last is None else past.last.versions.get(table.name, 0)
    version = int(current.version())
    if version == named or same_files(current, warehouse, table, named):
        return version, None
    return version, named


def add_judged(
    warehouse: Warehouse,
    judged: "DeltaTable",
    new: Sequence[StoredSnapshot],
    rebased: Sequence[StoredSnapshot],
    bases: Mapping[str, str | None],
    run_id: str,
) -> int:
    """Record that the tables have these snapshots, and what the rows of each differ from. Returns the version of `judged` that says so.

    `rebased` are there already, with another base or without `known_until`.
    """
    stored = [*new, *rebased]
    if stored:
        rows = [
            {
                "cluster_id": snapshot.cluster_id,
                "taken_at": snapshot.taken_at,
                "day": snapshot.day,
                "snapshot_id": snapshot.snapshot_id,
                "base_id": bases[snapshot.snapshot_id],
                "known_until": snapshot.known_until,
                "run_id": run_id,
            }
            for snapshot in stored
        ]
        removed, kept = without_rows(
            judged, {snapshot.snapshot_id for snapshot in rebased}, (), {snapshot.day for snapshot in rebased}
        )
        try:
            added = [*new_files(judged, pa.Table.from_pylist(rows, JUDGED.schema)), *kept]
            commit(judged, added, {TRANSACTION: run_number(run_id)}, removed=removed, run_id=run_id)
        except ConcurrentTransactionError:
            raise concurrent(warehouse) from None
    return int(judged.version())


def restore_judged(warehouse: Warehouse, judged: "DeltaTable", last: Run | None) -> None:
    """Take back what a killed run recorded."""
    named = 0 if last is None else last.versions.get(JUDGED.name, 0)
    if judged.version() != named and not same_files(judged, warehouse, JUDGED, named):
        restore(warehouse, judged, JUDGED, named)


def restore(warehouse: Warehouse, opened: "DeltaTable", table: Table, version: int, run_id: str | None = None) -> int:
    """Commit the files of an earlier version as the newest one. Returns the number of commits. Errors: InvalidWarehouse."""
    from deltalake import CommitProperties
    from deltalake.exceptions import DeltaError

    mark = None if run_id is None else CommitProperties(custom_metadata={"userMetadata": run_id})
    try:
        opened.restore(version, commit_properties=mark)
    except DeltaError as error:
        raise InvalidWarehouse(
            f"{warehouse.root}: table {table.name} cannot be restored to version {version}: {one_line(error)}"
        ) from None
    opened.update_incremental()
    folder = warehouse.table_folder(table.name)
    if folder is not None:
        flush_log(folder)
    # The earlier version has its own columns too.
    return 1 + add_columns(opened, table.schema)


def remove_leftovers(warehouse: Warehouse, last: Run | None) -> None:
    """Remove the files of killed runs that no table names. On a local disk alone, where the lock excludes other runs."""
    number = 0 if last is None else last.number
    for name in DERIVED:
        folder = warehouse.table_folder(name)
        for entry in () if folder is None else folder.glob(RUN_FOLDERS):
            if run_number(entry.name) > number:
                shutil.rmtree(entry)


def remove_empty_folders(table: Path) -> None:
    """Remove the folders of runs whose files a vacuum has deleted."""
    for folder in table.glob(RUN_FOLDERS):
        for entry in (*folder.iterdir(), folder):
            if entry.is_dir() and not any(entry.iterdir()):
                entry.rmdir()


def same_files(current: "DeltaTable", warehouse: Warehouse, table: Table, version: int) -> bool:
    """Whether the current version of a table has the data files of another one, as after a restore."""
    return set(existing_table(warehouse, table.name, version).file_uris()) == set(current.file_uris())


def prices_of(run: Run | None) -> PriceFile | None:
    """The prices by which a run made the bill, if it had any."""
    # Imported here: only a rebuild without prices of its own reads them.
    from rackspan.traffic.price_file import price_file

    return None if run is None or run.prices is None else price_file(run.prices)


def made_by(document: Mapping[str, Any], prices: str | None = None) -> dict[str, str]:
    """For each derived table what its rows depend on besides the snapshots: its version, and a hash of the policies, or of the prices.

    `document` is one of `policies_document`.
    """
    text = json.dumps(document, sort_keys=True)
    # Hours of states follow the policies by the snapshots that are judged again.
    inputs = {
        **dict.fromkeys(TABLES, text),
        **dict.fromkeys(HOURLY, ""),
        BILL.name: prices or "",
        # Past hours keep the advice of the policy of their time; `advise --warehouse` judges risks anew.
        ADVICE.name: prices or "",
    }
    return {
        name: f"{table.version}-{hashlib.sha256(f'{name} {inputs[name]}'.encode()).hexdigest()[:16]}"
        for name, table in DERIVED.items()
    }


def refuse_newer_rows(warehouse: Warehouse, last: Run | None, replaced: Collection[str]) -> None:
    """Two releases that take turns would each judge everything again. Errors: InvalidWarehouse, unless a table is `replaced`."""
    for name, table in DERIVED.items():
        version = 0 if last is None else int(last.made_by.get(name, "0-").partition("-")[0])
        if version > table.version and name not in replaced:
            raise InvalidWarehouse(
                f"{warehouse.root}: a newer rackspan made the rows of {name} (version {version}; this one makes {table.version}): "
                f"upgrade, or rackspan pipeline rebuild {name} --warehouse {warehouse.root}"
            )


def _run(row: Mapping[str, Any]) -> Run:
    return Run(
        number=run_number(row["run_id"]),
        run_id=row["run_id"],
        kind=row["kind"],
        started_at=row["started_at"].astimezone(UTC),
        ended_at=row["ended_at"].astimezone(UTC),
        policy=json.loads(row["policy"]),
        made_by=dict(row["made_by"]),
        versions=dict(row["versions"]),
        rows=dict(row["rows"]),
        snapshots=row["snapshots"],
        remade=row["remade"],
        reason=row["reason"],
        quarantined=dict(row["quarantined"] or ()),
        prices=row["prices"],
        rackspan_version=row["rackspan_version"],
    )
