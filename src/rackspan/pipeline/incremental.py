"""One run over a warehouse: which days must be made anew, and how they come into force all at once.

Begin with refresh(). It decides, moves and switches; making the rows is `Build`'s, which is Spark (jobs/) in earnest.

Constraints: a reader finds either everything a run made or nothing of it; a day whose inputs are what they were is not
touched; a run that dies leaves what was in force. Method: build into staging, rename the files to their places under
names no manifest knows, rename the manifest. Bound: one pass over the names of snapshots and data files.
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
    """One day to be made for one table. `inputs` is the fingerprint of all that its rows depend on, but for `previous`.

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
    """What a run did. `run` is None where there was nothing to do. Days are pairs of table and Day."""

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

    Errors: InvalidWarehouse where it is none, is damaged, of another version, or another run is at work.
    """
    began = seconds()
    with only_run(warehouse):
        sweep_staging(warehouse)
        before = read_manifest(warehouse)
        everything = work(stored_snapshots(warehouse), policy)
        to_do = [one for one in everything if _must_be_made(warehouse, one, before)]
        made = _made(warehouse, policy, build, before, to_do, new_run(now())) if to_do else before
        if warehouse.tables.is_dir():
            remove_garbage(warehouse, made)
    written = {(one.table.name, one.day): made.tables[one.table.name][one.day] for one in to_do}
    return RunReport(
        run=made.run if to_do else None,
        written=written,
        skipped=tuple(key for one in everything if (key := (one.table.name, one.day)) not in written),
        seconds=seconds() - began,
    )


def work(snapshots: Mapping[Day, list[StoredSnapshot]], policy: RackPolicy) -> list[Work]:
    """Every day of every table, done or not."""
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
    """Equal exactly if the rows would be: the snapshots by name and size, the policy, the table, the judge's version.

    A snapshot is never changed once it is in place, so its content need not be read again.
    """
    said = {
        "rackspan": rackspan.__version__,
        "table": [table.name, table.version],
        "policy": policy_document(policy),
        "snapshots": [[one.folder.name, _sizes(one.folder)] for one in snapshots],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _must_be_made(warehouse: Warehouse, one: Work, before: Manifest) -> bool:
    in_force = before.day(one.table.name, one.day)
    if in_force is None or in_force.inputs != one.inputs or _comes_after_another(one, in_force):
        return True
    return not all((warehouse.tables / file).is_file() for file in in_force.files)


def seen_before(one: Work) -> str | None:
    """The snapshot before the day as the manifest has it: its moment, and its sizes as one word."""
    if one.previous is None:
        return None
    sizes = json.dumps(_sizes(one.previous.folder), sort_keys=True).encode()
    return f"{paths.moment_text(one.previous.taken_at)} {hashlib.sha256(sizes).hexdigest()[:16]}"


def _comes_after_another(one: Work, in_force: TableDay) -> bool:
    """Whether the day must be compared with another snapshot than it was.

    Where the one it was compared with is gone, an earlier one would tell less than the rows do, so they stay.
    """
    now, then = (seen_before(one) or "", in_force.previous or "")
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
    """Move a day's files where they belong. No manifest names them yet, so nobody sees them come."""
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
    return TableDay(one.inputs, one.table.version, rows, tuple(files), seen_before(one))


def _sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in folder.iterdir() if file.suffix == ".parquet"}
