"""One run over a warehouse: decides which days to make again, and puts all of them into force at once.

Begin with refresh(). The rows themselves are made by a function of type `Build`: Spark (jobs/build.py).

Constraints: a reader sees either everything a run made or nothing of it; a day whose inputs are unchanged is not touched; a
run that dies changes nothing in force. Method: build into staging, rename the files to their places under names that are in
no manifest yet, rename the manifest. Bound: one pass over the names of snapshots and data files. Source: our own. Tests:
tests/pipeline/test_incremental.py, test_killed.py.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import pyarrow.parquet as pq

import rackspan
from rackspan.audit import RackPolicy
from rackspan.disk import to_disk
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import paths
from rackspan.pipeline.compaction import compacted
from rackspan.pipeline.manifest import (
    Manifest,
    TableDay,
    data_file,
    new_run,
    policy_document,
    read_manifest,
    remove_garbage,
    write_manifest,
)
from rackspan.pipeline.schemas import TABLES, Table
from rackspan.pipeline.warehouse import (
    Day,
    StoredSnapshot,
    Warehouse,
    claimed_staging,
    only_run,
    stored_snapshots,
    sweep_staging,
)

DayOfTable: TypeAlias = tuple[str, Day]


@dataclass(frozen=True, slots=True)
class Work:
    """One day to make for one table. `inputs` is the fingerprint of everything its rows depend on, except `previous`.

    `previous` is the last snapshot of the cluster before the day, for tables that look back.
    """

    table: Table
    day: Day
    snapshots: tuple[StoredSnapshot, ...]
    inputs: str
    previous: StoredSnapshot | None = None


Build: TypeAlias = Callable[[Mapping[str, list[Work]], RackPolicy, Path], None]
"""Makes every table's work, by table, below a folder: `TABLE/unit=N/*.parquet` for the Nth of the table's work."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run. `run` is None where there was nothing to do. Days are pairs of table and Day."""

    run: str | None
    written: Mapping[DayOfTable, TableDay]
    skipped: tuple[DayOfTable, ...]
    seconds: float

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.written.values())


def refresh(
    warehouse: Warehouse,
    policy: RackPolicy,
    build: Build,
    *,
    now: Callable[[], datetime],
    seconds: Callable[[], float],
) -> RunReport:
    """Bring every table up to date with the snapshots. Days whose snapshots are gone keep their rows.

    Errors: InvalidWarehouse where it is no warehouse, damaged, of another version, or where another run is active.
    """
    began = seconds()
    with only_run(warehouse):
        sweep_staging(warehouse)
        before = read_manifest(warehouse)
        all_work = work(stored_snapshots(warehouse), policy)
        to_do = [one for one in all_work if _must_be_made(warehouse, one, before)]
        made = _made(warehouse, policy, build, before, to_do, new_run(now())) if to_do else before
        if warehouse.tables.is_dir():
            remove_garbage(warehouse, made)
    written = {(one.table.name, one.day): made.tables[one.table.name][one.day] for one in to_do}
    return RunReport(
        run=made.run if to_do else None,
        written=written,
        skipped=tuple(key for one in all_work if (key := (one.table.name, one.day)) not in written),
        seconds=seconds() - began,
    )


def work(snapshots: Mapping[Day, list[StoredSnapshot]], policy: RackPolicy) -> list[Work]:
    """Every day of every table, up to date or not."""
    last = {before: stored[-1] for before, stored in snapshots.items()}
    previous = {day: last[before] for before, day in pairwise(snapshots) if before.cluster_id == day.cluster_id}
    return [
        Work(
            table,
            day,
            tuple(stored),
            fingerprint(table, stored, policy),
            previous.get(day) if table.looks_back else None,
        )
        for table in TABLES.values()
        for day, stored in snapshots.items()
    ]


def fingerprint(table: Table, snapshots: list[StoredSnapshot], policy: RackPolicy) -> str:
    """A hash of everything the rows depend on: snapshots by name and size, policy, table, version of rackspan.

    A stored snapshot never changes, so its content is not read again.
    """
    inputs = {
        "rackspan": rackspan.__version__,
        "table": [table.name, table.version],
        "policy": policy_document(policy),
        "snapshots": [[one.folder.name, _sizes(one.folder)] for one in snapshots],
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _must_be_made(warehouse: Warehouse, one: Work, before: Manifest) -> bool:
    in_force = before.day(one.table.name, one.day)
    if in_force is None or in_force.inputs != one.inputs or _comes_after_another(one, in_force):
        return True
    return not all((warehouse.tables / file).is_file() for file in in_force.files)


def previous_snapshot(one: Work) -> str | None:
    """The snapshot before the day in the form of the manifest: its time, and a hash of its file sizes."""
    if one.previous is None:
        return None
    sizes = json.dumps(_sizes(one.previous.folder), sort_keys=True).encode()
    return f"{paths.timestamp_text(one.previous.taken_at)} {hashlib.sha256(sizes).hexdigest()[:16]}"


def _comes_after_another(one: Work, in_force: TableDay) -> bool:
    """Whether the day has to be compared with another previous snapshot than before.

    Where that snapshot was deleted, an earlier one would give fewer changes than the rows have, so they stay.
    """
    now, then = (previous_snapshot(one) or "", in_force.previous or "")
    return now != then and now.partition(" ")[0] >= then.partition(" ")[0]


def _made(
    warehouse: Warehouse, policy: RackPolicy, build: Build, before: Manifest, to_do: list[Work], run: str
) -> Manifest:
    by_table: dict[str, list[Work]] = {}
    for one in to_do:
        by_table.setdefault(one.table.name, []).append(one)
    warehouse.tables.mkdir(exist_ok=True)
    try:
        with claimed_staging(warehouse) as staging:
            build(by_table, policy, staging)
            made = {
                name: {
                    one.day: _adopted(warehouse, run, one, staging / name / f"unit={n}") for n, one in enumerate(works)
                }
                for name, works in by_table.items()
            }
            after = compacted(warehouse, before.replaced(run, made, policy), staging).after(before)
            write_manifest(warehouse, after)
    except OSError as error:
        raise InvalidWarehouse(f"{warehouse.root}: cannot be written: {error.strerror}; make room or rights") from None
    return after


def _adopted(warehouse: Warehouse, run: str, one: Work, staged: Path) -> TableDay:
    """Move a day's files to their places. No manifest names them yet, so no reader sees them."""
    rows, files = 0, []
    for number, file in enumerate(sorted(staged.glob("*.parquet")) if staged.is_dir() else ()):
        name = data_file(one.table.name, one.day, run, number)
        place = warehouse.tables / name
        rows += pq.ParquetFile(file).metadata.num_rows
        place.parent.mkdir(parents=True, exist_ok=True)
        to_disk(file)
        file.rename(place)
        to_disk(place.parent)
        files.append(name)
    return TableDay(one.inputs, one.table.version, rows, tuple(files), previous_snapshot(one))


def _sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in folder.iterdir() if file.suffix == ".parquet"}
