"""One run over a warehouse: decides which snapshots to judge, and puts all tables into force at once.

Begin with refresh(). The rows themselves are made and written by a function of type `Build`: Spark (jobs/build.py).

Constraints: a reader sees either everything a run made or nothing of it; each snapshot counts once; a run that dies or meets another
one changes nothing in force. Goal: only snapshots without rows are judged; others only where their cluster's policy, a table's version
or the snapshot before them has changed. Method: let the build write files that no table names yet; restore each table to the
version that the last run named and commit the files there, unless somebody else has committed meanwhile; then write the row
of `runs` that names the new versions. Bound: the log of `snapshots` and `judged`, and their rows of the days with news. Source:
our own. Tests: tests/pipeline/test_incremental.py, test_killed.py.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from rackspan.audit import ClusterPolicies
from rackspan.pipeline import runs as history
from rackspan.pipeline.delta.append import ConcurrentTransactionError, commit
from rackspan.pipeline.delta.replace import without_snapshots, written_files
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot, read_markers
from rackspan.pipeline.landing.neighbours import neighbours
from rackspan.pipeline.landing.read import ids_with_rows
from rackspan.pipeline.runs import Run
from rackspan.pipeline.schemas import JUDGED, TABLES, Table
from rackspan.pipeline.warehouse import Warehouse, existing_table, only_run

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True, slots=True)
class TableWork:
    """What a run has to write to one table. Snapshots are places in `RunWork.snapshots`.

    `version` is the one the table is at, `restored` the one it has to be restored to first, if any. The table has no rows of
    `new`; those of `again` are replaced. `whole_days` are days all of whose rows are replaced.
    """

    table: Table
    version: int
    new: tuple[int, ...]
    again: tuple[int, ...] = ()
    whole_days: frozenset[date] = frozenset()
    restored: int | None = None

    @property
    def judged(self) -> tuple[int, ...]:
        return tuple(sorted({*self.new, *self.again}))


@dataclass(frozen=True, slots=True)
class RunWork:
    """Everything a run has to make. `snapshots` are in order of cluster and time; some are only compared with the next one."""

    run_id: str
    snapshots: tuple[StoredSnapshot, ...]
    tables: Mapping[str, TableWork]

    @property
    def partitions(self) -> int:
        """The partitions of all snapshots together."""
        return sum(one.partitions for one in self.snapshots)

    def pairs(self, judged: Collection[int]) -> list[tuple[int, int]]:
        """Each of these snapshots and the one before it of its cluster, the earlier first."""
        wanted = set(judged)
        return [
            (number - 1, number)
            for number, (before, after) in enumerate(pairwise(self.snapshots), start=1)
            if before.cluster_id == after.cluster_id and number in wanted
        ]


Build: TypeAlias = Callable[[RunWork, ClusterPolicies], None]
"""Writes the rows of each table's work as Parquet files, at TABLE/RUN_ID/day=YYYY-MM-DD/NAME.parquet; commits nothing."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run. `run` is None where there was nothing to do. `rows` were written, by table."""

    run: str | None
    snapshots: int = 0
    remade: int = 0
    reason: str | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    up_to_date: int = 0
    seconds: float = 0.0
    corrected: int = 0
    """Snapshots that were compared with another one than before, because that came late."""
    newest: datetime | None = None
    """When the newest of the snapshots judged for the first time was taken."""


def refresh(
    warehouse: Warehouse,
    policies: ClusterPolicies,
    build: Build,
    *,
    now: Callable[[], datetime],
    seconds: Callable[[], float],
    kind: str = "run",
    only: Collection[str] | None = None,
) -> RunReport:
    """Bring every table up to date with the snapshots; with `only`, judge no other snapshots than those with these ids.

    Errors: InvalidWarehouse where it is damaged, cannot be written, or where another run is active.
    """
    began, started_at = seconds(), now()
    with only_run(warehouse):
        judged, runs = history.open_history(warehouse)
        last = history.newest_row(runs)
        history.restore_judged(warehouse, judged, last)
        history.remove_leftovers(warehouse, last)
        markers = read_markers(warehouse)
        document = history.policies_document(policies)
        new = _without_rows(markers, judged, only)
        stored_count = sum(markers.count_by_day().values())
        outdated = _outdated(last, document)
        again = _others(markers, new, outdated) if outdated else []
        if not new and not again:
            return RunReport(None, up_to_date=stored_count, seconds=seconds() - began)
        number = 1 if last is None else last.number + 1
        run_id = history.new_run_id(number)
        work = _work(warehouse, markers, judged, run_id, last, outdated, new, again)
        build(work, policies)
        commits = {name: _committed(warehouse, work, one, number) for name, one in work.tables.items()}
        versions = {name: 0 if last is None else last.versions.get(name, 0) for name in TABLES}
        versions |= {name: version for name, (version, _) in commits.items()}
        run = Run(
            number,
            run_id,
            kind,
            started_at,
            now(),
            document,
            history.made_by(document),
            versions,
            rows={name: rows for name, (_, rows) in commits.items()},
            snapshots=len(new),
            remade=len(again),
            reason=outdated.reason(again) if again else None,
        )
        run = replace(run, versions={**versions, JUDGED.name: history.add_judged(warehouse, judged, new, run)})
        history.commit_run(warehouse, runs, run)
    return RunReport(
        run_id,
        run.snapshots,
        run.remade,
        run.reason,
        run.rows,
        stored_count - len(new) - len(again),
        seconds() - began,
        corrected=_corrected(work, again),
        newest=max((one.taken_at for one in new), default=None),
    )


def _without_rows(markers: Markers, judged: "DeltaTable", only: Collection[str] | None) -> list[StoredSnapshot]:
    """The stored snapshots that the tables do not have yet."""
    if only is not None:
        known = ids_with_rows(judged, sorted(only))
        return markers.named(set(only) - known)
    counts = history.judged_counts(judged)
    days = [day for day, count in markers.count_by_day().items() if counts.get(day) != count]
    ids = history.judged_ids(judged, days)
    return [one for one in markers.of_days(days) if one.snapshot_id not in ids]


@dataclass(frozen=True, slots=True)
class _Outdated:
    """What the last run made in another way than this one: all rows of `tables`, and those of clusters with another policy."""

    tables: frozenset[str]
    policies_before: Mapping[str, Any]
    policies: Mapping[str, Any]

    def __bool__(self) -> bool:
        return bool(self.tables) or self.policies_before != self.policies

    def with_another_policy(self, stored: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """Those of the snapshots whose clusters are judged by another policy than before."""
        clusters = {
            cluster_id
            for cluster_id in {one.cluster_id for one in stored}
            if history.document_of(self.policies_before, cluster_id) != history.document_of(self.policies, cluster_id)
        }
        return [one for one in stored if one.cluster_id in clusters]

    def of_table(self, name: str, again: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """The snapshots whose rows in a table are made again."""
        return list(again) if name in self.tables else self.with_another_policy(again)

    def reason(self, again: Sequence[StoredSnapshot]) -> str:
        """Why snapshots are judged again."""
        if self.tables:
            return f"another version of {', '.join(name for name in TABLES if name in self.tables)}"
        single = {*self.policies_before.get(history.CLUSTERS, ()), *self.policies.get(history.CLUSTERS, ())}
        clusters = sorted({one.cluster_id for one in again})
        return f"another policy of {', '.join(clusters)}" if single.issuperset(clusters) else "another policy"


def _outdated(last: Run | None, policies: Mapping[str, Any]) -> _Outdated:
    if last is None:
        return _Outdated(frozenset(), policies, policies)
    same_versions = history.made_by(last.policy)
    tables = frozenset(name for name in TABLES if last.made_by.get(name) != same_versions[name])
    return _Outdated(tables, last.policy, policies)


def _others(markers: Markers, new: Sequence[StoredSnapshot], outdated: _Outdated) -> list[StoredSnapshot]:
    """The snapshots that the tables have, and that are judged again."""
    ids = {one.snapshot_id for one in new}
    others = [one for one in markers.of_days(markers.count_by_day()) if one.snapshot_id not in ids]
    return others if outdated.tables else outdated.with_another_policy(others)


def _corrected(work: RunWork, again: Sequence[StoredSnapshot]) -> int:
    """The snapshots that only follow another one than before."""
    ids = {one.snapshot_id for one in again}
    corrected = (
        sum(work.snapshots[place].snapshot_id not in ids for place in one.again) for one in work.tables.values()
    )
    return max(corrected, default=0)


def _work(
    warehouse: Warehouse,
    markers: Markers,
    judged: "DeltaTable",
    run_id: str,
    last: Run | None,
    outdated: _Outdated,
    new: Sequence[StoredSnapshot],
    again: Sequence[StoredSnapshot],
) -> RunWork:
    near = neighbours(markers, [*new, *again])
    known = ids_with_rows(judged, [one.snapshot_id for one in near.following])
    # Those that now follow another snapshot than before, because one came late.
    following = [one for one in near.following if one.snapshot_id in known]
    made = {one.snapshot_id: one for one in (*new, *again, *following)}
    previous = [one for one in near.previous if one.snapshot_id not in made]
    snapshots = tuple(
        sorted(
            {**{one.snapshot_id: one for one in previous}, **made}.values(),
            key=lambda one: (one.cluster_id, one.taken_at),
        )
    )
    place = {one.snapshot_id: number for number, one in enumerate(snapshots)}

    def places(stored: Sequence[StoredSnapshot]) -> tuple[int, ...]:
        return tuple(sorted(place[one.snapshot_id] for one in stored))

    judged_by_day = {day: history.judged_ids(judged, [day]) for day in sorted({one.day for one in again})}
    tables = {}
    for name, table in TABLES.items():
        outdated_rows = outdated.of_table(name, again)
        replaced = {one.snapshot_id: one for one in (*outdated_rows, *(following if table.looks_back else ()))}
        if not new and not replaced:
            continue
        named = 0 if last is None else last.versions.get(name, 0)
        version, restored = _standing(warehouse, table, named)
        tables[name] = TableWork(
            table,
            version,
            places(new),
            places(list(replaced.values())),
            # Days all of whose rows are made again.
            frozenset(day for day, ids in judged_by_day.items() if ids <= replaced.keys()),
            restored,
        )
    return RunWork(run_id, snapshots, tables)


def _standing(warehouse: Warehouse, table: Table, named: int) -> tuple[int, int | None]:
    """The version a derived table is at, and the one it has to be restored to if a killed run has left rows there."""
    current = existing_table(warehouse, table.name)
    version = int(current.version())
    if version == named or history.same_files(current, warehouse, table, named):
        return version, None
    return version, named


def _committed(warehouse: Warehouse, work: RunWork, one: TableWork, number: int) -> tuple[int, int]:
    """Commit what the build wrote for a table. Returns the table's version, which is on the disk, and the rows written.

    Errors: InvalidWarehouse where somebody else has committed since the run began.
    """
    table = existing_table(warehouse, one.table.name)
    if table.version() != one.version:
        raise history.concurrent(warehouse)
    expected = one.version
    if one.restored is not None:
        expected += history.restore(warehouse, table, one.table, one.restored, work.run_id)
    added = written_files(table, work.run_id)
    snapshots = [work.snapshots[place] for place in one.judged] if one.again else []
    ids = {snapshot.snapshot_id for snapshot in snapshots if snapshot.day not in one.whole_days}
    days = {snapshot.day for snapshot in snapshots} - one.whole_days
    removed, kept = without_snapshots(table, ids, one.whole_days, days)
    if added or removed:
        try:
            commit(table, [*added, *kept], {history.TRANSACTION: number}, removed=removed, run_id=work.run_id)
        except ConcurrentTransactionError:
            raise history.concurrent(warehouse) from None
        expected += 1
    if table.version() != expected:
        raise history.concurrent(warehouse)
    return expected, sum(file.rows for file in added)
