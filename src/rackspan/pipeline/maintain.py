"""Maintenance of a warehouse without Spark: small files become large ones, old days and files that no version needs are removed.

Begin with maintain(). Constraints: a reader that follows `runs` finds every file of the versions it reads, for an hour at least, and sees
the derived tables before or after as a whole; snapshots that are stored meanwhile stay. Method: compaction commits the same
rows in other files, as no change of data; retention removes whole days, `snapshots` first, so that what is left of a kill
belongs to no snapshot; a row in `runs` puts the derived tables into force; vacuum comes last and keeps the versions that the
newest row names. Bound: one file at a time in memory. Source: Delta protocol, "Add File and Remove File", "VACUUM" of
delta-rs. Tests: tests/pipeline/test_maintain.py.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from rackspan.errors import InvalidWarehouse, UsageError, WarehouseBusy
from rackspan.pipeline import runs as history
from rackspan.pipeline.delta.append import ConcurrentTransactionError, commit
from rackspan.pipeline.delta.local_disk import flush_log
from rackspan.pipeline.delta.replace import joined, without_rows
from rackspan.pipeline.delta.table import DataFile, data_files, one_line, rows_by_day, snapshot_counts
from rackspan.pipeline.hours.dropped import hours_resting_on
from rackspan.pipeline.hours.work import has_reading
from rackspan.pipeline.landing.drop import drop_damaged, undo_drop, what_goes
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.names import has_names, how_to_restore
from rackspan.pipeline.schemas import CLUSTERS, DERIVED, HISTORY, HOURLY, JUDGED, LANDING, RUNS, SNAPSHOTS, Table
from rackspan.pipeline.schemas.hours import OF_STATES
from rackspan.pipeline.table import how_to_repair
from rackspan.pipeline.warehouse import FilesRead, Warehouse, existing_table, naming_check, only_run

if TYPE_CHECKING:
    from deltalake import DeltaTable

TARGET_BYTES: Final = 256 * 1024 * 1024
"""Of a compacted file. A file of half of it is left as it is."""

VACUUM_HOURS: Final = 168.0
"""Delta's own default: what a version has removed stays so long, for readers at work and for time travel."""

VACUUM_HOURS_LEAST: Final = 1.0
"""A reader that follows `runs` may take so long."""

ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """What was done to one table: files of `days_dropped`, files joined into how many, and files deleted from the store."""

    name: str
    days_dropped: int = 0
    joined: int = 0
    into: int = 0
    deleted: int = 0
    damaged: tuple[str, ...] = ()
    """A line for each damaged file, which is left as it is, and for what a torn log has lost."""
    repaired: tuple[str, ...] = ()
    """What was repaired before."""


def maintain(
    warehouse: Warehouse,
    *,
    now: Callable[[], datetime],
    keep_days: int | None = None,
    vacuum_hours: float = VACUUM_HOURS,
    give_up: Callable[[str], None] | None = None,
    agree: Callable[[], None] | None = None,
    undo: Callable[[str], None] | None = None,
) -> list[MaintainedTable]:
    """Drop days before the last `keep_days`, compact, and delete files that no version of the last `vacuum_hours` has.

    With `give_up`, damaged files of landing tables are dropped, with the snapshots that are not whole without them; it gets a
    line for each. Before, it gets one for each file and snapshot that goes; if there is any, `agree` is called, and raises an error to keep them.
    With `undo`, what was dropped before is brought back, as far as its files are there.
    Errors: InvalidWarehouse; WarehouseBusy while a run is at work, or where one commits meanwhile on an object store;
    UsageError for numbers that would break readers.
    """
    if vacuum_hours < VACUUM_HOURS_LEAST:
        raise UsageError(f"--vacuum-hours {vacuum_hours:g}: a reader may take an hour; give 1 or more")
    if keep_days is not None and keep_days < 1:
        raise UsageError(f"--keep-days {keep_days}: nothing would be left; give 1 or more")
    warehouse = replace(warehouse, read=FilesRead())
    with only_run(warehouse), naming_check(warehouse):
        began = now()
        not_back: Sequence[str] = ()
        if undo is not None:
            found, not_back = undo_drop(warehouse)
            for line in found:
                undo(line)
        if give_up is not None:
            goes = what_goes(warehouse)
            for line in goes:
                give_up(line)
            if agree is not None and goes:
                agree()
            lines = _dropped(warehouse, began, now)
            for line in lines:
                give_up(line)
            if lines:
                give_up(
                    f"rackspan pipeline maintain --undo-drop --warehouse {warehouse.root} brings back for {vacuum_hours:g} hours what of it "
                    "can be read by then"
                )
        first = None if keep_days is None else (began - timedelta(days=keep_days)).date()
        # The marker first: what is left of a kill is rows without one, which no reader sees.
        done = [_maintained(warehouse, name, first) for name in (SNAPSHOTS.name, *(LANDING.keys() - {SNAPSHOTS.name}))]
        last = history.last_run(warehouse)
        if last is not None:
            done += _derived(warehouse, first, began, now)
        repair = warehouse.repair
        done[0] = replace(done[0], repaired=repair.lines, damaged=(*repair.lost, *not_back, *done[0].damaged))
        named: Mapping[str, int] = {} if last is None else _versions(warehouse)
        return [
            *(replace(table, deleted=_vacuumed(warehouse, table.name, vacuum_hours, named)) for table in done),
            *_of_names(warehouse, vacuum_hours),
        ]


def _of_names(warehouse: Warehouse, vacuum_hours: float) -> list[MaintainedTable]:
    """The table of the names of clusters, if there is one. The others are maintained although it cannot be read."""
    try:
        if not has_names(warehouse):
            return []
        done = _maintained(warehouse, CLUSTERS.name, None)
        return [replace(done, deleted=_vacuumed(warehouse, CLUSTERS.name, vacuum_hours, {}))]
    except WarehouseBusy:
        raise
    except InvalidWarehouse as error:
        return [MaintainedTable(CLUSTERS.name, damaged=(f"{error}; {how_to_restore(warehouse)}",))]


def _dropped(warehouse: Warehouse, began: datetime, now: Callable[[], datetime]) -> list[str]:
    """Give up damaged files of landing tables, then the derived rows of snapshots that are not stored any more, and of the hours of them.

    The next run makes again the hours that what is left says something of.
    """
    for _ in range(ATTEMPTS):
        try:
            lines = drop_damaged(warehouse)
            break
        except ConcurrentTransactionError:
            continue
    else:
        raise WarehouseBusy(f"{warehouse.root}: other programs change its tables all the time; stop one of them")
    last = history.last_run(warehouse)
    if last is None:
        return lines
    judged = existing_table(warehouse, JUDGED.name, last.versions.get(JUDGED.name))
    markers = read_markers(warehouse)
    stored = {snapshot.snapshot_id: snapshot for snapshot in markers.of_days(markers.count_by_day())}
    times = history.judged_times(judged)
    lost = [at for snapshot_id, at in times.items() if snapshot_id not in stored]
    if lost:
        of_readings = hours_resting_on(lost, [snapshot for snapshot in stored.values() if has_reading(snapshot)])
        of_states = hours_resting_on(lost, [stored[snapshot_id] for snapshot_id in times.keys() & stored.keys()])
        left = stored.keys() - of_readings.judged_again - of_states.judged_again
        days = rows_by_day(data_files(judged))
        gone = {day: ids for day in days if (ids := _resting_on(history.judged_bases(judged, [day]), left))}
        _derived(warehouse, None, began, now, _Dropped(gone, of_readings.by_day, of_states.by_day))
    return lines


@dataclass(frozen=True, slots=True)
class _Dropped:
    """The ids of the snapshots, and of the hours of readings and of states, whose rows are dropped, by day."""

    snapshots: Mapping[date, Collection[str]]
    hours_of_readings: Mapping[date, Collection[str]]
    hours_of_states: Mapping[date, Collection[str]]

    def of_table(self, name: str) -> Mapping[date, Collection[str]]:
        if name not in HOURLY:
            return self.snapshots
        return self.hours_of_states if name in OF_STATES else self.hours_of_readings


def _resting_on(bases: Mapping[str, str | None], stored: Collection[str]) -> set[str]:
    """The judged snapshots of a day that are not among `stored`, and those whose rows differ from one of them.

    The next run judges those again that are stored.
    """
    gone: set[str] = set()
    for snapshot_id in sorted(bases):
        if snapshot_id not in stored or bases[snapshot_id] in gone:
            gone.add(snapshot_id)
    return gone


def _versions(warehouse: Warehouse) -> Mapping[str, int]:
    newest = history.last_run(warehouse)
    return {} if newest is None else newest.versions


def _derived(
    warehouse: Warehouse,
    first: date | None,
    began: datetime,
    now: Callable[[], datetime],
    gone: _Dropped | None = None,
) -> list[MaintainedTable]:
    """The derived tables and `judged`, put into force by a row of `runs`. The rows `gone` are dropped."""
    past = history.open_history(warehouse)
    assert past.last is not None  # noqa: S101 - nothing is derived before the first run; this is for the type checker
    runs, last = past.runs, past.last
    history.restore_judged(warehouse, past.judged, last)
    number = last.number + 1
    run_id = history.new_run_id(number)
    done, versions = [], dict(last.versions)
    for name in (*DERIVED, JUDGED.name):
        table = existing_table(warehouse, name)
        named = last.versions.get(name, 0)
        if int(table.version()) != named and not history.same_files(table, warehouse, _schema_of(name), named):
            history.restore(warehouse, table, _schema_of(name), named, run_id)
        dropped = gone is not None and _drop_rows(warehouse, name, gone.of_table(name), run_id)
        done.append(_maintained(warehouse, name, first, (number, run_id)))
        if dropped or done[-1].days_dropped or done[-1].joined:
            versions[name] = int(existing_table(warehouse, name).version())
    if versions != last.versions:
        made = replace(
            last,
            number=number,
            run_id=run_id,
            kind="maintain",
            started_at=began,
            ended_at=now(),
            versions=versions,
            rows={},
            snapshots=0,
            remade=0,
            reason=None,
        )
        history.commit_run(warehouse, runs, made)
    left_out = history.leave_out_unreadable(existing_table(warehouse, RUNS.name))
    return [*done, replace(_maintained(warehouse, RUNS.name, None), repaired=(*past.lines, *left_out))]


def _drop_rows(warehouse: Warehouse, name: str, gone: Mapping[date, Collection[str]], run_id: str) -> bool:
    """Drop the rows of some snapshots, or hours, from a derived table. Returns whether it had any."""
    table = existing_table(warehouse, name)
    ids = {identity for ones in gone.values() for identity in ones}
    removed, kept = without_rows(table, ids, (), gone.keys()) if gone else ([], [])
    if removed:
        commit(table, kept, {}, removed=removed, run_id=run_id)
    return bool(removed)


def _maintained(
    warehouse: Warehouse, name: str, first: date | None, run: tuple[int, str] | None = None
) -> MaintainedTable:
    """Drop the days before `first` and join small files, in one commit."""
    for _ in range(ATTEMPTS):
        table = existing_table(warehouse, name)
        files = data_files(table)
        old = [file for file in files if first is not None and file.day is not None and file.day < first]
        damaged = _damaged(warehouse, table, [file for group in _groups(files) for file in group])
        groups = _groups([file for file in files if file not in old and file.path not in damaged])
        removed = [*old, *(file for group in groups for file in group)]
        result = MaintainedTable(
            name,
            len({file.day for file in old}),
            len(removed) - len(old),
            len(groups),
            damaged=tuple(damaged.values()),
        )
        if not removed:
            return result
        added = [joined(table, group) for group in groups]
        transactions = {} if run is None else {history.TRANSACTION: run[0]}
        try:
            commit(
                table,
                added,
                transactions,
                removed=removed,
                run_id=None if run is None else run[1],
                data_change=bool(old),
            )
        except ConcurrentTransactionError:
            if run is not None:
                raise history.concurrent(warehouse) from None
            continue
        return result
    raise WarehouseBusy(f"{warehouse.root}: other programs change table {name} all the time; stop one of them")


def _damaged(warehouse: Warehouse, table: "DeltaTable", files: Sequence[DataFile]) -> Mapping[str, str]:
    """Those of the files to be joined that are damaged, by path, with a line."""
    name = table.table_uri.rstrip("/").rpartition("/")[2]
    damaged = {}
    # Rows of the others are of no snapshot and of no hour, and few: a file of them that is damaged is found when it is read.
    for file in files if name not in (RUNS.name, CLUSTERS.name) else ():
        try:
            snapshot_counts(table, file, whole=True)
        except InvalidWarehouse as error:
            damaged[file.path] = f"{error}; it is left as it is; {how_to_repair(warehouse, name)}"
    return damaged


def _groups(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Files of one day that are to become one, each group in order of time."""
    groups: list[list[DataFile]] = []
    sizes: list[int] = []
    for file in sorted(files, key=lambda file: (file.day or date.min, file.least or "")):
        if file.size_bytes * 2 > TARGET_BYTES:
            continue
        if groups and groups[-1][0].day == file.day and sizes[-1] + file.size_bytes <= TARGET_BYTES:
            groups[-1].append(file)
            sizes[-1] += file.size_bytes
        else:
            groups.append([file])
            sizes.append(file.size_bytes)
    return [group for group in groups if len(group) > 1]


def _vacuumed(warehouse: Warehouse, name: str, hours: float, named: Mapping[str, int]) -> int:
    """Delete files that neither the last hours' versions nor the one in force have, and old entries of the log."""
    from deltalake.exceptions import DeltaError

    table = existing_table(warehouse, name)
    folder = warehouse.table_folder(name)
    try:
        deleted = table.vacuum(
            retention_hours=int(hours),
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
            keep_versions=[named[name]] if name in named else None,
        )
        table.update_incremental()
        # Entries are removed only up to a checkpoint, which has to be on the disk by then.
        table.create_checkpoint()
        if folder is not None:
            flush_log(folder)
        table.cleanup_metadata()
    except (DeltaError, OSError) as error:
        raise InvalidWarehouse(f"{warehouse.root}: table {name} cannot be vacuumed: {one_line(error)}") from None
    if folder is not None:
        history.remove_empty_folders(folder)
    return len(deleted)


def _schema_of(name: str) -> Table:
    return {**DERIVED, **HISTORY}[name]
