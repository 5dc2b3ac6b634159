"""One run over a warehouse: decides which snapshots to judge, and puts all tables into force at once.

Begin with refresh(). The rows themselves are made and written by a function of type `Build`: Spark (spark/build.py).

Constraints: a reader sees either everything a run made or nothing of it; each snapshot counts once; a run that dies or meets another
one changes nothing in force. Goal: only snapshots without rows are judged; others only where their cluster's policy, a table's version
or the snapshot before them has changed. Method: let the build write files that no table names yet; restore each table to the
version that the last run named and commit the files there, unless somebody else has committed meanwhile; then write the row
of `runs` that names the new versions. Bound: the log of `snapshots` and `judged`, and their rows of the days with news. Source:
our own. Tests: tests/pipeline/test_incremental.py, test_parts.py, test_killed.py.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import Any, Protocol, TypeAlias

from rackspan.audit import ClusterPolicies
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import runs as history
from rackspan.pipeline.delta.append import NewFile
from rackspan.pipeline.delta.table import data_files, rows_by_day
from rackspan.pipeline.hours.work import HoursWork, concerned_hours, has_reading, with_reading, with_whole
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot, read_markers
from rackspan.pipeline.landing.neighbours import neighbours
from rackspan.pipeline.landing.read import Damage, find_damage, ids_with_rows
from rackspan.pipeline.landing.store import store_known_until
from rackspan.pipeline.policies import Outdated, outdated_rows, policies_document
from rackspan.pipeline.runs import ReplacedRows, Run, RunHistory, committed, standing
from rackspan.pipeline.schemas import DERIVED, HOURLY, JUDGED, OUTAGE_IMPACT, PARTITION_DURABILITY, TABLES, Table
from rackspan.pipeline.schemas.hours import OF_STATES
from rackspan.pipeline.warehouse import NOT_REPAIRED, Repair, Warehouse, existing_table, naming_check, only_run
from rackspan.traffic import PriceFile, prices_json


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
    damaged: frozenset[str] = frozenset()
    """Data files that are not read, as TABLE/PATH."""

    rebuilt: frozenset[str] = frozenset()
    """Tables all of whose rows are made again, because they were damaged or on request."""

    unreadable: frozenset[str] = frozenset()
    """Judged snapshots, by id, that cannot be read now: none is compared with one before them."""

    whole: bool = False
    """Whether every snapshot gets all of its rows, instead of those that differ from the snapshot before."""

    @property
    def bases(self) -> Mapping[str, str | None]:
        """For each snapshot the one that its rows differ from, by id: the one before it on the same day, if it can be read.

        So rows are true until the next of their key, back to the last snapshot that has no base.
        """
        bases: dict[str, str | None] = {snapshot.snapshot_id: None for snapshot in self.snapshots}
        for before, after in () if self.whole else pairwise(self.snapshots):
            # Of whatever cluster, which an id does not have: all rows are right too.
            between = any(before.snapshot_id < identity < after.snapshot_id for identity in self.unreadable)
            if (before.cluster_id, before.day) == (after.cluster_id, after.day) and not between:
                bases[after.snapshot_id] = before.snapshot_id
        return bases

    @property
    def differing(self) -> frozenset[int]:
        """The judged snapshots that can have rows: not those that are stored as equal to the snapshot before them."""
        judged = {place for table in self.tables.values() for place in table.judged}
        bases = self.bases
        return frozenset(
            place
            for place in judged
            if (base_id := bases[self.snapshots[place].snapshot_id]) is None
            or not (self.snapshots[place].unchanged and self.snapshots[place].base_id == base_id)
        )

    @property
    def partitions(self) -> int:
        """The partitions of all snapshots together."""
        return sum(snapshot.partitions for snapshot in self.snapshots)

    def places(self, ids: Collection[str]) -> tuple[int, ...]:
        """The places of the snapshots with these ids."""
        return tuple(place for place, snapshot in enumerate(self.snapshots) if snapshot.snapshot_id in ids)

    def pairs(self, judged: Collection[int]) -> list[tuple[int, int]]:
        """Each of these snapshots and the one before it of its cluster, the earlier first."""
        wanted = set(judged)
        return [
            (number - 1, number)
            for number, (before, after) in enumerate(pairwise(self.snapshots), start=1)
            if before.cluster_id == after.cluster_id and number in wanted
        ]


Files: TypeAlias = Mapping[str, Sequence[NewFile]]
"""Files by table, which no version of it names yet."""


class Build(Protocol):
    """Writes the rows of each table as Parquet files below TABLE/RUN_ID, and returns them by table; commits nothing."""

    def judged(self, work: RunWork, policies: ClusterPolicies) -> Files:
        """The rows of snapshots."""

    def hours(self, work: HoursWork, policies: ClusterPolicies) -> Files:
        """The rows of hours. The tables of snapshots have those of this run by then."""


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
    left: int = 0
    """Snapshots without rows that are left to the next run."""
    corrected: int = 0
    """Snapshots that were compared with another one than before, because that came late."""
    partitions: int = 0
    """Partitions of the snapshots that were read."""
    judged: Sequence[StoredSnapshot] = ()
    """The snapshots judged for the first time."""
    quarantined: Mapping[str, str] = field(default_factory=dict)
    """Why snapshots could not be judged, by id."""
    repair: Repair = NOT_REPAIRED

    @property
    def newest(self) -> datetime | None:
        """When the newest of the snapshots judged for the first time was taken."""
        return max((snapshot.taken_at for snapshot in self.judged), default=None)

    def with_next(self, following: "RunReport") -> "RunReport":
        """The report of this run and the one after it, which had no other work than what this one had left."""
        rows = {name: self.rows.get(name, 0) + following.rows.get(name, 0) for name in (*self.rows, *following.rows)}
        return replace(
            following,
            snapshots=self.snapshots + following.snapshots,
            remade=self.remade,
            reason=self.reason,
            rows=rows,
            up_to_date=self.up_to_date,
            seconds=self.seconds + following.seconds,
            partitions=self.partitions + following.partitions,
            repair=self.repair,
        )


def refresh(
    warehouse: Warehouse,
    policies: ClusterPolicies,
    build: Build,
    *,
    now: Callable[[], datetime],
    seconds: Callable[[], float],
    kind: str = "run",
    only: Collection[str] | None = None,
    rebuild: Collection[str] = (),
    partitions_max: int | None = None,
    prices: PriceFile | None = None,
) -> RunReport:
    """Bring every table up to date with the snapshots; with `only`, judge no other snapshots than those with these ids.

    `prices` make the bill; every hour is made again where they are others than before.
    With `partitions_max`, of the snapshots without rows only the earliest are judged, which have so many partitions together.
    Every row of the tables `rebuild` is made again, by the prices of the newest run if none are given. Snapshots that are not whole are
    left out, and reported. Errors: InvalidWarehouse where it is damaged, cannot be written, or where another run is active.
    """
    began, started_at = seconds(), now()
    with only_run(warehouse), naming_check(warehouse):
        refreshing = _begun(warehouse, policies, build, rebuild, prices)
        if refreshing.every_hour:
            store_known_until(warehouse)
        plan = refreshing.built(_Wanted(only, partitions_max))
        report = RunReport(
            None,
            up_to_date=plan.up_to_date,
            left=plan.left,
            quarantined=plan.quarantined,
            repair=replace(warehouse.repair, lines=(*warehouse.repair.lines, *refreshing.past.lines)),
        )
        if not plan.changes(refreshing.past.last) and not refreshing.every_hour:
            return replace(report, seconds=seconds() - began)
        run = refreshing.put_into_force(plan, kind, started_at, now)
    return replace(
        report,
        run=run.run_id,
        snapshots=run.snapshots,
        remade=run.remade,
        reason=run.reason,
        rows=run.rows,
        quarantined=run.quarantined,
        seconds=seconds() - began,
        corrected=_corrected(plan.work, plan.again),
        partitions=plan.work.partitions,
        judged=plan.new,
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which of the snapshots without rows a run judges: those with the ids `only`, or the earliest of so many partitions."""

    only: Collection[str] | None = None
    partitions_max: int | None = None

    def earliest(self, new: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """The snapshots that are judged, at least one."""
        if self.partitions_max is None:
            return list(new)
        in_time = sorted(new, key=lambda snapshot: snapshot.taken_at)
        totals = accumulate(snapshot.partitions for snapshot in in_time)
        return in_time[: max(1, sum(total <= self.partitions_max for total in totals))]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The work of a run, without the snapshots that are not whole."""

    work: RunWork
    new: Sequence[StoredSnapshot]
    again: Sequence[StoredSnapshot]
    reason: str | None
    """Why those of `again` are judged again."""
    stored: int
    left: int
    damage: Damage
    markers: Markers
    rebased: Sequence[StoredSnapshot] = ()
    """Judged before, and now stored as what differs from another snapshot."""
    returned: Sequence[StoredSnapshot] = ()
    """Those of `again` that could not be read by the last run."""
    of_states: Sequence[StoredSnapshot] = ()
    """Those of `again` whose states may be others than before."""
    files: Mapping[str, Sequence[NewFile]] = field(default_factory=dict)
    """What the build wrote, by table."""

    @property
    def up_to_date(self) -> int:
        """The snapshots that have rows already, and keep them."""
        return self.stored - len(self.new) - self.left - len(self.again) - len(self.damage.snapshots)

    @property
    def quarantined(self) -> Mapping[str, str]:
        """Why snapshots are left out, by id; a damaged file of `snapshots` by its path."""
        return {**self.damage.snapshots, **(self.markers.damaged or {})}

    def changes(self, last: Run | None) -> bool:
        """Whether the history gets a row for it."""
        before = {} if last is None else last.quarantined
        return bool(self.new or self.again or self.work.tables or before.keys() != self.quarantined.keys())


def _begun(
    warehouse: Warehouse, policies: ClusterPolicies, build: Build, rebuild: Collection[str], prices: PriceFile | None
) -> "_Refresh":
    """Open the history and take back what a killed run has left."""
    if warehouse.read is not None:
        # Somebody may have put another table in the place of one since the run before.
        warehouse.read.opened.clear()
    past = history.open_history(warehouse, rebuild)
    history.refuse_newer_rows(warehouse, past.last, rebuild)
    history.restore_judged(warehouse, past.judged, past.last)
    history.remove_leftovers(warehouse, past.last)
    if rebuild and prices is None:
        prices = history.prices_of(past.last)
    return _Refresh(warehouse, policies, build, past, frozenset(rebuild), prices)


@dataclass(frozen=True)
class _Refresh:
    """One run under way. Each step takes what the one before it returned: built(), put_into_force()."""

    warehouse: Warehouse
    policies: ClusterPolicies
    build: Build
    past: RunHistory
    rebuild: frozenset[str]
    prices: PriceFile | None

    @cached_property
    def number(self) -> int:
        return 1 if self.past.last is None else self.past.last.number + 1

    @cached_property
    def document(self) -> Mapping[str, Any]:
        return policies_document(self.policies)

    @cached_property
    def prices_text(self) -> str | None:
        return None if self.prices is None else prices_json(self.prices)

    @cached_property
    def made_by(self) -> Mapping[str, str]:
        return history.made_by(self.document, self.prices_text)

    @cached_property
    def every_hour(self) -> bool:
        """Whether all hours are made again: on request, because a table of them was lost, or by other prices or versions."""
        last = self.past.last
        if HOURLY.keys() & {*self.rebuild, *self.past.lost}:
            return True
        return last is not None and any(last.made_by.get(name) != self.made_by[name] for name in HOURLY)

    def built(self, wanted: _Wanted) -> _Plan:
        """Plan the run and build its rows, again without snapshots that prove to be not whole."""
        damage = Damage({}, {})
        read = self.warehouse.read
        kept_before = read is not None and bool(read.snapshots)
        while True:
            plan = self._planned(wanted, damage)
            found = find_damage(self.warehouse, plan.work.snapshots)
            if not found.snapshots:
                damaged = frozenset({*damage.files, *found.files})
                plan = replace(plan, work=replace(plan.work, damaged=damaged))
                try:
                    files = self.build.judged(plan.work, self.policies) if plan.work.differing else {}
                    return replace(plan, files=files)
                except InvalidWarehouse:
                    # What the ids of a file do not show.
                    found = find_damage(self.warehouse, plan.work.snapshots, whole=True)
                    if not found.snapshots:
                        if read is None or not kept_before:
                            raise
                        # A file of markers was whole when an earlier batch read it.
                        read.snapshots.clear()
                        kept_before = False
                    history.remove_leftovers(self.warehouse, self.past.last)
            damage = Damage({**damage.files, **found.files}, {**damage.snapshots, **found.snapshots})

    def _planned(self, wanted: _Wanted, damage: Damage) -> _Plan:
        last = self.past.last
        markers = replace(read_markers(self.warehouse, skip_damaged=True), hidden=damage.snapshots.keys())
        # The rest are damaged files of `snapshots`.
        waiting = {
            snapshot_id for snapshot_id in (() if last is None else last.quarantined) if "/" not in snapshot_id
        } - damage.snapshots.keys()
        waits = self._without_rows(markers, None if wanted.only is None else {*wanted.only, *waiting})
        new = wanted.earliest(waits)
        outdated = outdated_rows(last, self.document, TABLES.keys() & {*self.rebuild, *self.past.lost})
        # With `only` there may be others without rows, of batches to come.
        without_rows = waits if wanted.only is None or not outdated else self._without_rows(markers, None)
        again = outdated.others(markers, without_rows)
        ids = {snapshot.snapshot_id for snapshot in (*waits, *again)}
        # Judged before they were damaged; what has changed since then is made up for.
        returned = [snapshot for snapshot in markers.named(waiting) if snapshot.snapshot_id not in ids]
        outdated = replace(outdated, returned=frozenset(snapshot.snapshot_id for snapshot in returned))
        again = [*again, *returned]
        unreadable = frozenset(ids_with_rows(self.past.judged, sorted(damage.snapshots)))
        work, rebased = self._work(self._with_rows(markers, [*new, *again]), outdated, new, again, unreadable)
        return _Plan(
            work,
            new,
            again,
            outdated.reason(again) if again else None,
            stored=sum(markers.count_by_day().values()),
            left=len(waits) - len(new),
            damage=damage,
            markers=markers,
            rebased=rebased,
            returned=returned,
            of_states=[
                snapshot
                for name in (PARTITION_DURABILITY.name, OUTAGE_IMPACT.name)
                for snapshot in outdated.of_table(name, again)
            ],
        )

    def _without_rows(self, markers: Markers, only: Collection[str] | None) -> list[StoredSnapshot]:
        """The stored snapshots that the tables do not have yet."""
        if only is not None:
            known = ids_with_rows(self.past.judged, sorted(only))
            return markers.named(set(only) - known)
        counts = rows_by_day(data_files(self.past.judged))
        days = [day for day, count in markers.count_by_day().items() if counts.get(day) != count]
        ids = self._judged_bases(days)
        return [snapshot for snapshot in markers.of_days(days) if snapshot.snapshot_id not in ids]

    def _with_rows(self, markers: Markers, judged_now: Sequence[StoredSnapshot]) -> Markers:
        """The snapshots that have rows, or get them now. Those that are left to another run are not there for this one: a row that
        differs from one of theirs would be found by no reader until then, nor may they stand between two that have rows.
        """
        ids = {snapshot.snapshot_id for snapshot in judged_now}

        @cache
        def bases(day: date) -> Mapping[str, str | None]:
            return self._judged_bases([day])

        def has_rows(snapshot: StoredSnapshot) -> bool:
            return snapshot.snapshot_id in ids or snapshot.snapshot_id in bases(snapshot.day)

        return replace(markers, chosen=has_rows)

    def _judged_bases(self, days: Sequence[date]) -> Mapping[str, str | None]:
        return history.judged_bases(self.past.judged, days, self.warehouse.read)

    def _work(
        self,
        markers: Markers,
        outdated: Outdated,
        new: Sequence[StoredSnapshot],
        again: Sequence[StoredSnapshot],
        unreadable: frozenset[str],
    ) -> tuple[RunWork, list[StoredSnapshot]]:
        """The work of a run, and the snapshots that it stores as what differs from another one than before."""
        near = neighbours(markers, [*new, *again])
        # Those that now follow another snapshot than before, because one came late.
        following = list(near.following)
        made = {snapshot.snapshot_id: snapshot for snapshot in (*near.previous, *new, *again, *following)}
        work = RunWork(
            history.new_run_id(self.number),
            tuple(sorted(made.values(), key=lambda snapshot: (snapshot.cluster_id, snapshot.taken_at))),
            {},
            rebuilt=outdated.rebuilt,
            unreadable=unreadable,
        )
        judged_by_day = {
            day: self._judged_bases([day]) for day in sorted({snapshot.day for snapshot in (*again, *following)})
        }
        bases = work.bases
        rebased = [
            snapshot
            for snapshot in (*again, *following)
            if judged_by_day[snapshot.day].get(snapshot.snapshot_id) != bases[snapshot.snapshot_id]
        ]
        tables = {}
        places_new = work.places({snapshot.snapshot_id for snapshot in new})
        for name, table in TABLES.items():
            replaced = {snapshot.snapshot_id for snapshot in (*outdated.of_table(name, again), *following, *rebased)}
            if new or replaced:
                version, restored = standing(self.warehouse, self.past, table)
                whole_days = frozenset(day for day, ids in judged_by_day.items() if ids.keys() <= replaced)
                tables[name] = TableWork(table, version, places_new, work.places(replaced), whole_days, restored)
        return replace(work, tables=tables), rebased

    def put_into_force(self, plan: _Plan, kind: str, started_at: datetime, now: Callable[[], datetime]) -> Run:
        """Commit what was built, make the hours of it, and put everything into force by the row of `runs`."""
        work, last = plan.work, self.past.last
        commits = {
            name: committed(self.warehouse, _replaced(work, table_work), plan.files.get(name, ()))
            for name, table_work in work.tables.items()
        }
        rebased, bases = self._judged_again(plan)
        judged_version = history.add_judged(self.warehouse, self.past.judged, plan.new, rebased, bases, work.run_id)
        hours, files, unread = self._hours_built(plan)
        if hours:
            commits |= self._hours_committed(hours, files)
        versions = {name: 0 if last is None else last.versions.get(name, 0) for name in DERIVED}
        versions |= {name: version for name, (version, _) in commits.items()}
        run = Run(
            self.number,
            work.run_id,
            kind,
            started_at,
            now(),
            self.document,
            self.made_by,
            {**versions, JUDGED.name: judged_version},
            rows={name: rows for name, (_, rows) in commits.items()},
            snapshots=len(plan.new),
            remade=len(plan.again),
            reason=plan.reason,
            quarantined={**plan.quarantined, **unread},
            prices=self.prices_text,
        )
        history.commit_run(self.warehouse, self.past.runs, run)
        return run

    def _judged_again(self, plan: _Plan) -> tuple[Sequence[StoredSnapshot], Mapping[str, str | None]]:
        """The snapshots whose rows in `judged` are replaced, and what the rows of each differ from."""
        if not self.every_hour:
            return plan.rebased, plan.work.bases
        # Those of an earlier rackspan get their `known_until`.
        bases = {**self._judged_bases(list(plan.markers.count_by_day())), **plan.work.bases}
        lacking = plan.markers.named(history.without_known_until(self.past.judged))
        rebased = {snapshot.snapshot_id: snapshot for snapshot in (*lacking, *plan.rebased)}
        return list(rebased.values()), bases

    def _hours_built(self, plan: _Plan) -> tuple[HoursWork, Files, Mapping[str, str]]:
        """Plan and build the hours, again without readings that prove to be damaged; and why those are left out, by id."""
        unread: dict[str, str] = {}
        while True:
            work = self._hours_work(plan)
            if not work:
                return work, {}, unread
            try:
                return work, self.build.hours(work, self.policies), unread
            except InvalidWarehouse:
                read = [snapshot for reading in work.of_readings for snapshot in reading.snapshots]
                found = find_damage(self.warehouse, read, whole=True)
                if found.snapshots.keys() <= unread.keys():
                    raise
                unread |= found.snapshots
                markers = replace(plan.markers, hidden={*plan.markers.hidden, *unread})
                damaged = plan.work.damaged | found.files.keys()
                plan = replace(plan, markers=markers, work=replace(plan.work, damaged=damaged))

    def _hours_work(self, plan: _Plan) -> HoursWork:
        """The hours that the snapshots of a run concern, or every one."""
        markers = plan.markers

        @cache
        def bases(day: date) -> Mapping[str, str | None]:
            return self._judged_bases([day])

        def is_judged(snapshot: StoredSnapshot) -> bool:
            return snapshot.snapshot_id in bases(snapshot.day)

        of_states = replace(markers, chosen=is_judged)
        of_readings = with_reading(markers)
        if self.every_hour:
            days = markers.count_by_day()
            given = of_states.of_days(days), of_readings.of_days(days)
        else:
            given = (
                [*plan.new, *plan.of_states],
                [snapshot for snapshot in (*plan.new, *plan.returned) if has_reading(snapshot)],
            )
        states = concerned_hours(of_states, given[0], ended=True)
        return HoursWork(
            plan.work.run_id,
            tuple(concerned_hours(of_readings, given[1])),
            with_whole(states, of_states, bases),
            self.prices,
            plan.work.damaged,
            self.every_hour,
        )

    def _hours_committed(self, work: HoursWork, files: Files) -> dict[str, tuple[int, int]]:
        """Commit the rows of the hours. Returns for each table its version and the rows written."""
        found = {}
        for name, table in HOURLY.items():
            ids = work.ids_by_day(of_states=name in OF_STATES)
            if not ids and not work.every_hour:
                continue
            version, restored = standing(self.warehouse, self.past, table)
            opened = existing_table(self.warehouse, name, restored)
            # Every row may be of hours that no reading concerns any more.
            whole = frozenset(rows_by_day(data_files(opened)) if work.every_hour else ())
            every = {identity for of_day in ids.values() for identity in of_day}
            replaced = ReplacedRows(
                table, work.run_id, version, restored, every, ids.keys() - whole, whole, name in self.rebuild
            )
            found[name] = committed(self.warehouse, replaced, files.get(name, ()))
        return found


def _corrected(work: RunWork, again: Sequence[StoredSnapshot]) -> int:
    """The snapshots that only follow another one than before."""
    ids = {snapshot.snapshot_id for snapshot in again}
    corrected = (
        sum(work.snapshots[place].snapshot_id not in ids for place in table.again) for table in work.tables.values()
    )
    return max(corrected, default=0)


def _replaced(work: RunWork, table_work: TableWork) -> ReplacedRows:
    snapshots = [work.snapshots[place] for place in table_work.judged] if table_work.again else []
    return ReplacedRows(
        table_work.table,
        work.run_id,
        table_work.version,
        table_work.restored,
        {snapshot.snapshot_id for snapshot in snapshots if snapshot.day not in table_work.whole_days},
        {snapshot.day for snapshot in snapshots} - table_work.whole_days,
        table_work.whole_days,
        table_work.table.name in work.rebuilt,
    )
