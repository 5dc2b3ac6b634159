"""Gives up what damaged data files of the landing tables held: the last resort, on request of `maintain --drop-damaged`.

Constraints: every file is looked at before anything is dropped, and one that its store does not give ends it there; snapshots that are
whole stay; what other files have is brought back first; after a kill the next try does the rest; what was dropped can be
brought back as long as no vacuum has deleted its files.
Damaged files leave their logs; rows of the same snapshots in files that no version names any more are appended, and markers
made again where a snapshot's rows are whole; the markers of all others are dropped, then their rows. The caller drops the
derived rows. Each commit of it bears the mark DROPPED, by which `undo_drop` finds the files. Tests: tests/pipeline/landing/test_drop.py.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.append import commit
from rackspan.pipeline.delta.replace import without_rows
from rackspan.pipeline.delta.table import DataFile, data_files, is_damaged, marked_versions
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.read import find_damage
from rackspan.pipeline.landing.recover import UNKNOWN, bring_back, rows_of_files
from rackspan.pipeline.schemas import LANDING, SNAPSHOTS, STORED, Table
from rackspan.pipeline.warehouse import Warehouse, existing_table
from rackspan.text import count_noun

if TYPE_CHECKING:
    from deltalake import DeltaTable

DROPPED: Final = "drop-damaged"
"""The mark of the commits that drop."""


def what_goes(warehouse: Warehouse) -> list[str]:
    """A line for each damaged file and for each snapshot that is not whole without it, before anything is dropped.

    What older files have of these snapshots is not looked for: fewer may go. Errors: InvalidWarehouse, UnreadableStore.
    """
    lines = [
        f"{name}: {file.path} is damaged: {count_noun(file.rows, 'row', ',')}"
        for name, (_, files) in _damaged(warehouse).items()
        for file in files
    ]
    markers = read_markers(warehouse, skip_damaged=True)
    stored = {snapshot.snapshot_id: snapshot for snapshot in markers.of_days(markers.count_by_day())}
    broken = find_damage(warehouse, list(stored.values()), whole=True).snapshots
    return [
        *lines,
        *(
            f"snapshot {identity} of {stored[identity].cluster_id} is not whole: {why}"
            for identity, why in broken.items()
        ),
    ]


def drop_damaged(warehouse: Warehouse) -> list[str]:
    """Drop damaged files and the snapshots that are not whole without them. Returns a line for each.

    Errors: InvalidWarehouse; UnreadableStore, with nothing dropped.
    """
    lines = []
    for name, (opened, files) in _damaged(warehouse).items():
        commit(opened, [], {}, removed=files, run_id=DROPPED)
        lines.append(f"{name}: {count_noun(len(files), 'damaged file')} dropped")
    found, _ = bring_back(warehouse, tuple(LANDING), torn=False)
    stored = _stored(warehouse)
    broken = find_damage(warehouse, stored).snapshots
    lost = {snapshot.snapshot_id: snapshot for snapshot in stored if snapshot.snapshot_id in broken}
    _drop(warehouse, {snapshot.snapshot_id: snapshot.day for snapshot in lost.values()})
    gone = [
        f"snapshot {snapshot.snapshot_id} of {snapshot.cluster_id} was not whole, and is dropped"
        for snapshot in lost.values()
    ]
    return [*lines, *found, *gone]


def undo_drop(warehouse: Warehouse) -> tuple[list[str], list[str]]:
    """Bring back the snapshots that were dropped and are whole by now, from the files that no vacuum has deleted.

    A file that was damaged counts if it can be read by now, since it was copied back. The next run judges the snapshots. Returns a
    line for each table that got rows, and for each snapshot that is not back. Errors: InvalidWarehouse, UnreadableStore.
    """
    dropped = {name: _dropped_files(warehouse, name) for name in LANDING}
    rows = rows_of_files(warehouse, SNAPSHOTS, dropped[SNAPSHOTS.name])
    ids = {row["snapshot_id"] for row in rows}
    # Markers that were made again of the rows give way to the ones that were lost, which know the controllers.
    remade = {each.snapshot_id: each.day for each in _stored(warehouse) if each.partial == UNKNOWN}
    _drop(warehouse, {identity: day for identity, day in remade.items() if identity in ids}, (SNAPSHOTS,), mark=None)
    found, _ = bring_back(warehouse, tuple(LANDING), files=dropped)
    stored = {(each.cluster_id, each.taken_at) for each in _stored(warehouse)}
    lost = {row["snapshot_id"]: row for row in rows if (row["cluster_id"], row["taken_at"]) not in stored}
    # Rows of a snapshot without a marker are none that a reader sees.
    _drop(warehouse, {identity: row["day"] for identity, row in lost.items()})
    back = found or ["nothing that --drop-damaged has dropped can be brought back"]
    return back, [
        f"snapshot {identity} of {row['cluster_id']} is not back: a file of it is damaged or deleted; copy it back from a backup first"
        for identity, row in lost.items()
    ]


def _damaged(warehouse: Warehouse) -> "Mapping[str, tuple[DeltaTable, list[DataFile]]]":
    """The landing tables with damaged files, after a look at every file of all of them."""
    tables = {name: existing_table(warehouse, name) for name in LANDING}
    damaged = {
        name: (opened, [file for file in data_files(opened) if is_damaged(opened, file)])
        for name, opened in tables.items()
    }
    return {name: (opened, files) for name, (opened, files) in damaged.items() if files}


def _stored(warehouse: Warehouse) -> list[StoredSnapshot]:
    markers = read_markers(warehouse)
    return markers.of_days(markers.count_by_day())


def _drop(
    warehouse: Warehouse,
    lost: Mapping[str, date],
    tables: Sequence[Table] = (SNAPSHOTS, *STORED),
    mark: str | None = DROPPED,
) -> None:
    """Drop the markers and then the rows of some snapshots, given with their days."""
    for table in tables if lost else ():
        opened = existing_table(warehouse, table.name)
        removed, kept = without_rows(opened, lost.keys(), (), set(lost.values()))
        if removed:
            commit(opened, kept, {}, removed=removed, run_id=mark)


def _dropped_files(warehouse: Warehouse, name: str) -> list[DataFile]:
    """The files that commits with the mark DROPPED have removed from a table, as far as its log says."""
    opened = existing_table(warehouse, name)
    live = {file.path for file in data_files(opened)}
    dropped: dict[str, DataFile] = {}
    for version in marked_versions(opened, DROPPED):
        try:
            before, after = (data_files(existing_table(warehouse, name, at)) for at in (version - 1, version))
        except InvalidWarehouse:
            # The log before it is deleted, and so are the files.
            continue
        paths = {file.path for file in after} | live
        dropped |= {file.path: file for file in before if file.path not in paths}
    return list(dropped.values())
