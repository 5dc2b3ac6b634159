"""Judges stored snapshots again, each whole, and compares with the rows at each of them: what `pipeline check --whole` does.

Nothing is written, and no Spark is needed: one process judges a cluster and day after another. Errors of this code in common
with a run's are not found; what is found are changes that were not stored, lost, doubled or stored for another snapshot.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from rackspan.pipeline.changes.difference import changes
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.judging.task import judged_rows
from rackspan.pipeline.judging.tasks import judge_tasks
from rackspan.pipeline.landing.bases import VOLATILE
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.policies import policies_of
from rackspan.pipeline.runs import Run
from rackspan.pipeline.schemas import DRIFT, TABLES, Table, own_columns
from rackspan.pipeline.table import TableFiles, table_files
from rackspan.pipeline.warehouse import Warehouse


def other_rows(warehouse: Warehouse, run: Run, stored: Sequence[StoredSnapshot]) -> Iterator[tuple[str, str]]:
    """Each derived table and judged snapshot whose rows are not those of judging it whole. Errors: InvalidWarehouse.

    `stored` are the judged snapshots that can be read, in order of cluster and time. `drift` is compared by the tests only, since it
    depends on snapshots that may be gone by now.
    """
    tables = [table for table in TABLES.values() if table is not DRIFT]
    files = {table.name: table_files(warehouse, table, run) for table in tables}
    policies = policies_of(run.policy)
    for _, of_day in groupby(stored, key=lambda snapshot: (snapshot.cluster_id, snapshot.day)):
        snapshots = tuple(of_day)
        places = tuple(range(len(snapshots)))
        work = RunWork("", snapshots, {table.name: TableWork(table, 0, places) for table in tables}, whole=True)
        for task in judge_tasks(warehouse, work, policies):
            wanted: dict[tuple[str, str], list[pa.Table]] = {}
            for name, snapshot, rows in judged_rows(task):
                wanted.setdefault((name, snapshot.stored.snapshot_id), []).append(rows)
            for table in tables:
                found = _found(files[table.name], {snapshot.stored.snapshot_id for snapshot in task.judged})
                for snapshot in task.judged:
                    identity = snapshot.stored.snapshot_id
                    if _differ(table, found.get(identity), wanted.get((table.name, identity), [])):
                        yield table.name, identity


def _found(files: TableFiles, ids: set[str]) -> dict[str, pa.Table]:
    """The rows at each of some snapshots, by id."""
    columns = ["snapshot_id", *(column.name for column in own_columns(files.table))]
    return {
        rows.column("snapshot_id")[0].as_py(): rows.drop_columns("snapshot_id")
        for rows in files.at_each_snapshot(columns, ids)
    }


def _differ(table: Table, found: pa.Table | None, wanted: Sequence[pa.Table]) -> bool:
    whole = [rows for rows in wanted if len(rows)]
    if found is None or not whole:
        return bool(whole) or found is not None
    return len(changes(found, pa.concat_tables(whole), table.grain[2:], VOLATILE)) > 0
