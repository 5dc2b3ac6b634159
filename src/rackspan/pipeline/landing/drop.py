"""Gives up what damaged data files of the landing tables held: the last resort, on request of `maintain --drop-damaged`.

Constraints: every file is looked at before anything is dropped, and one that its store does not give ends it there; snapshots that are whole stay; what other files have is brought back first; after a kill the next try does the rest.
Damaged files leave their logs; rows of the same snapshots in files that no version names any more are appended, and markers
made again where a snapshot's rows are whole; the markers of all others are dropped, then their rows. The caller drops the
derived rows. Tests: tests/pipeline/test_check.py.
"""

from rackspan.pipeline.delta.append import commit
from rackspan.pipeline.delta.replace import without_rows
from rackspan.pipeline.delta.table import data_files, is_damaged
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.read import find_damage
from rackspan.pipeline.landing.recover import bring_back
from rackspan.pipeline.schemas import LANDING, SNAPSHOTS, STORED
from rackspan.pipeline.warehouse import Warehouse, existing_table
from rackspan.text import count_noun


def drop_damaged(warehouse: Warehouse) -> list[str]:
    """Drop damaged files and the snapshots that are not whole without them. Returns a line for each.

    Errors: InvalidWarehouse; UnreadableStore, with nothing dropped.
    """
    lines = []
    tables = {name: existing_table(warehouse, name) for name in LANDING}
    damaged = {
        name: [file for file in data_files(opened) if is_damaged(opened, file)] for name, opened in tables.items()
    }
    for name, files in damaged.items():
        if files:
            commit(tables[name], [], {}, removed=files)
            lines.append(f"{name}: {count_noun(len(files), 'damaged file')} dropped")
    found, _ = bring_back(warehouse, tuple(LANDING), torn=False)
    markers = read_markers(warehouse)
    stored = markers.of_days(markers.count_by_day())
    broken = find_damage(warehouse, stored).snapshots
    lost = {snapshot.snapshot_id: snapshot for snapshot in stored if snapshot.snapshot_id in broken}
    for table in (SNAPSHOTS, *STORED) if lost else ():
        opened = existing_table(warehouse, table.name)
        removed, kept = without_rows(opened, lost.keys(), (), {snapshot.day for snapshot in lost.values()})
        if removed:
            commit(opened, kept, {}, removed=removed)
    gone = [
        f"snapshot {snapshot.snapshot_id} of {snapshot.cluster_id} was not whole, and is dropped"
        for snapshot in lost.values()
    ]
    return [*lines, *found, *gone]
