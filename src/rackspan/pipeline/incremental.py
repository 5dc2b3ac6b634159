"""One run over a warehouse: decides which snapshots to judge, and puts all tables into force at once.

Begin with refresh(). The rows themselves are made and written by a function of type `Build`: Spark (spark/build.py).

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
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rackspan.audit import ClusterPolicies
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import runs as history
from rackspan.pipeline.delta.append import NewFile
from rackspan.pipeline.delta.table import data_files
from rackspan.pipeline.hours.work import HoursWork, concerned_hours, has_reading, with_reading, with_whole
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot, read_markers
from rackspan.pipeline.landing.neighbours import neighbours
from rackspan.pipeline.landing.read import Damage, find_damage, ids_with_rows
from rackspan.pipeline.policies import Outdated, outdated_rows, policies_document
from rackspan.pipeline.runs import ReplacedRows, Run, RunHistory, committed, standing
from rackspan.pipeline.schemas import DERIVED, HOURLY, JUDGED, OUTAGE_IMPACT, PARTITION_DURABILITY, TABLES, Table
from rackspan.pipeline.schemas.hours import OF_STATES
from rackspan.pipeline.warehouse import NOT_REPAIRED, Repair, Warehouse, existing_table, naming_check, only_run
from rackspan.traffic import PriceFile, prices_json

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
    newest: datetime | None = None
    """When the newest of the snapshots judged for the first time was taken."""
    quarantined: Mapping[str, str] = field(default_factory=dict)
    """Why snapshots could not be judged, by id."""
    repair: Repair = NOT_REPAIRED

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
    Every row of the tables `rebuild` is made again, by the prices of the newest run if none are given. Snapshots that are not whole are left out, and reported. Errors:
    InvalidWarehouse where it is damaged, cannot be written, or where another run is active.
    """
    began, started_at = seconds(), now()
    with only_run(warehouse), naming_check(warehouse):
        past = history.open_history(warehouse, rebuild)
        last, document = past.last, policies_document(policies)
        history.refuse_newer_rows(warehouse, last, rebuild)
        prices = history.prices_of(last) if rebuild and prices is None else prices
        history.restore_judged(warehouse, past.judged, last)
        history.remove_leftovers(warehouse, last)
        made_by = history.made_by(document, None if prices is None else prices_json(prices))
        outdated = outdated_rows(last, document, TABLES.keys() & {*rebuild, *past.lost})
        plan = _built(warehouse, past, outdated, policies, build, _Wanted(only, partitions_max))
        every_hour = bool(HOURLY.keys() & {*rebuild, *past.lost}) or (
            last is not None and any(last.made_by.get(name) != made_by[name] for name in HOURLY)
        )
        repair = replace(warehouse.repair, lines=(*warehouse.repair.lines, *past.lines))
        report = RunReport(
            None,
            up_to_date=plan.stored - len(plan.new) - plan.left - len(plan.again) - len(plan.damage.snapshots),
            left=plan.left,
            quarantined=plan.quarantined,
            repair=repair,
        )
        if not plan.changes(last) and not every_hour:
            return replace(report, seconds=seconds() - began)
        work, number = plan.work, 1 if last is None else last.number + 1
        commits = {
            name: committed(warehouse, _replaced(work, table_work), number, plan.files.get(name, ()))
            for name, table_work in work.tables.items()
        }
        run = Run(
            number,
            work.run_id,
            kind,
            started_at,
            now(),
            document,
            made_by,
            {},
            snapshots=len(plan.new),
            remade=len(plan.again),
            reason=outdated.reason(plan.again) if plan.again else None,
            quarantined=plan.quarantined,
            prices=None if prices is None else prices_json(prices),
        )
        judged_version = history.add_judged(warehouse, past.judged, plan.new, plan.rebased, work.bases, run)
        hours, files, unread = _hours_built(warehouse, past.judged, plan, every_hour, prices, policies, build)
        if hours:
            commits |= _hours_committed(warehouse, hours, past, number, files, rebuild)
        versions = {name: 0 if last is None else last.versions.get(name, 0) for name in DERIVED}
        versions |= {name: version for name, (version, _) in commits.items()}
        run = replace(
            run,
            ended_at=now(),
            versions={**versions, JUDGED.name: judged_version},
            rows={name: rows for name, (_, rows) in commits.items()},
            quarantined={**plan.quarantined, **unread},
        )
        history.commit_run(warehouse, past.runs, run)
    return replace(
        report,
        run=work.run_id,
        snapshots=run.snapshots,
        remade=run.remade,
        reason=run.reason,
        rows=run.rows,
        quarantined=run.quarantined,
        seconds=seconds() - began,
        corrected=_corrected(work, plan.again),
        partitions=work.partitions,
        newest=max((snapshot.taken_at for snapshot in plan.new), default=None),
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
    def quarantined(self) -> Mapping[str, str]:
        """Why snapshots are left out, by id; a damaged file of `snapshots` by its path."""
        return {**self.damage.snapshots, **(self.markers.damaged or {})}

    def changes(self, last: Run | None) -> bool:
        """Whether the history gets a row for it."""
        before = {} if last is None else last.quarantined
        return bool(self.new or self.again or self.work.tables or before.keys() != self.quarantined.keys())


def _built(
    warehouse: Warehouse,
    past: RunHistory,
    outdated: Outdated,
    policies: ClusterPolicies,
    build: Build,
    wanted: _Wanted,
) -> _Plan:
    """Plan the run and build its rows, again without snapshots that prove to be not whole."""
    damage = Damage({}, {})
    kept_before = warehouse.read is not None and bool(warehouse.read.snapshots)
    while True:
        plan = _planned(warehouse, past, outdated, wanted, damage)
        found = find_damage(warehouse, plan.work.snapshots)
        if not found.snapshots:
            damaged = frozenset({*damage.files, *found.files})
            plan = replace(plan, work=replace(plan.work, damaged=damaged))
            try:
                return replace(plan, files=build.judged(plan.work, policies)) if plan.work.differing else plan
            except InvalidWarehouse:
                # What the ids of a file do not show.
                found = find_damage(warehouse, plan.work.snapshots, whole=True)
                if not found.snapshots:
                    if warehouse.read is None or not kept_before:
                        raise
                    # A file of markers was whole when an earlier batch read it.
                    warehouse.read.snapshots.clear()
                    kept_before = False
                history.remove_leftovers(warehouse, past.last)
        damage = Damage({**damage.files, **found.files}, {**damage.snapshots, **found.snapshots})


def _planned(warehouse: Warehouse, past: RunHistory, outdated: Outdated, wanted: _Wanted, damage: Damage) -> _Plan:
    last = past.last
    markers = replace(read_markers(warehouse, skip_damaged=True), hidden=damage.snapshots.keys())
    # The rest are damaged files of `snapshots`.
    waiting = {
        snapshot_id for snapshot_id in (() if last is None else last.quarantined) if "/" not in snapshot_id
    } - damage.snapshots.keys()
    waits = _without_rows(warehouse, markers, past.judged, None if wanted.only is None else {*wanted.only, *waiting})
    new = wanted.earliest(waits)
    again = outdated.others(markers, waits)
    ids = {snapshot.snapshot_id for snapshot in (*new, *again)}
    # Judged before they were damaged; what has changed since then is made up for.
    returned = [snapshot for snapshot in markers.named(waiting) if snapshot.snapshot_id not in ids]
    outdated = replace(outdated, returned=frozenset(snapshot.snapshot_id for snapshot in returned))
    again = [*again, *returned]
    run_id = history.new_run_id(1 if last is None else last.number + 1)
    unreadable = frozenset(ids_with_rows(past.judged, sorted(damage.snapshots)))
    work, rebased = _work(warehouse, markers, past, run_id, outdated, new, again, unreadable)
    stored = sum(markers.count_by_day().values())
    of_states = [
        snapshot
        for name in (PARTITION_DURABILITY.name, OUTAGE_IMPACT.name)
        for snapshot in outdated.of_table(name, again)
    ]
    return _Plan(work, new, again, stored, len(waits) - len(new), damage, markers, rebased, returned, of_states)


def _without_rows(
    warehouse: Warehouse, markers: Markers, judged: "DeltaTable", only: Collection[str] | None
) -> list[StoredSnapshot]:
    """The stored snapshots that the tables do not have yet."""
    if only is not None:
        known = ids_with_rows(judged, sorted(only))
        return markers.named(set(only) - known)
    counts = history.judged_counts(judged)
    days = [day for day, count in markers.count_by_day().items() if counts.get(day) != count]
    ids = history.judged_bases(judged, days, warehouse.read)
    return [snapshot for snapshot in markers.of_days(days) if snapshot.snapshot_id not in ids]


def _corrected(work: RunWork, again: Sequence[StoredSnapshot]) -> int:
    """The snapshots that only follow another one than before."""
    ids = {snapshot.snapshot_id for snapshot in again}
    corrected = (
        sum(work.snapshots[place].snapshot_id not in ids for place in table.again) for table in work.tables.values()
    )
    return max(corrected, default=0)


def _work(
    warehouse: Warehouse,
    markers: Markers,
    past: RunHistory,
    run_id: str,
    outdated: Outdated,
    new: Sequence[StoredSnapshot],
    again: Sequence[StoredSnapshot],
    unreadable: frozenset[str],
) -> tuple[RunWork, list[StoredSnapshot]]:
    """The work of a run, and the snapshots that it stores as what differs from another one than before."""
    near = neighbours(markers, [*new, *again])
    known = ids_with_rows(past.judged, [snapshot.snapshot_id for snapshot in near.following])
    # Those that now follow another snapshot than before, because one came late.
    following = [snapshot for snapshot in near.following if snapshot.snapshot_id in known]
    made = {snapshot.snapshot_id: snapshot for snapshot in (*new, *again, *following)}
    previous = [snapshot for snapshot in near.previous if snapshot.snapshot_id not in made]
    snapshots = tuple(
        sorted(
            {**{snapshot.snapshot_id: snapshot for snapshot in previous}, **made}.values(),
            key=lambda snapshot: (snapshot.cluster_id, snapshot.taken_at),
        )
    )
    place = {snapshot.snapshot_id: number for number, snapshot in enumerate(snapshots)}

    def places(stored: Sequence[StoredSnapshot]) -> tuple[int, ...]:
        return tuple(sorted(place[snapshot.snapshot_id] for snapshot in stored))

    judged_by_day = {
        day: history.judged_bases(past.judged, [day], warehouse.read)
        for day in sorted({snapshot.day for snapshot in (*again, *following)})
    }
    bases = RunWork(run_id, snapshots, {}, unreadable=unreadable).bases
    rebased = [
        snapshot
        for snapshot in (*again, *following)
        if judged_by_day[snapshot.day].get(snapshot.snapshot_id) != bases[snapshot.snapshot_id]
    ]
    tables = {}
    for name, table in TABLES.items():
        made_again = outdated.of_table(name, again)
        replaced = {snapshot.snapshot_id: snapshot for snapshot in (*made_again, *following, *rebased)}
        if not new and not replaced:
            continue
        version, restored = standing(warehouse, past, table)
        tables[name] = TableWork(
            table,
            version,
            places(new),
            places(list(replaced.values())),
            # Days all of whose rows are made again.
            frozenset(day for day, ids in judged_by_day.items() if ids.keys() <= replaced.keys()),
            restored,
        )
    return RunWork(run_id, snapshots, tables, rebuilt=outdated.rebuilt, unreadable=unreadable), rebased


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


def _hours_built(
    warehouse: Warehouse,
    judged: "DeltaTable",
    plan: _Plan,
    every_hour: bool,
    prices: PriceFile | None,
    policies: ClusterPolicies,
    build: Build,
) -> tuple[HoursWork, Files, Mapping[str, str]]:
    """Plan and build the hours, again without readings that prove to be damaged; and why those are left out, by id."""
    unread: dict[str, str] = {}
    while True:
        work = _hours_work(warehouse, judged, plan, every_hour, prices)
        if not work:
            return work, {}, unread
        try:
            return work, build.hours(work, policies), unread
        except InvalidWarehouse:
            found = find_damage(
                warehouse, [snapshot for each in work.of_readings for snapshot in each.snapshots], whole=True
            )
            if found.snapshots.keys() <= unread.keys():
                raise
            unread |= found.snapshots
            markers = replace(plan.markers, hidden={*plan.markers.hidden, *unread})
            damaged = plan.work.damaged | found.files.keys()
            plan = replace(plan, markers=markers, work=replace(plan.work, damaged=damaged))


def _hours_work(
    warehouse: Warehouse, judged: "DeltaTable", plan: _Plan, every_hour: bool, prices: PriceFile | None
) -> HoursWork:
    """The hours that the snapshots of a run concern, or every one."""
    markers = plan.markers

    @cache
    def bases(day: date) -> Mapping[str, str | None]:
        return history.judged_bases(judged, [day], warehouse.read)

    def is_judged(snapshot: StoredSnapshot) -> bool:
        return snapshot.snapshot_id in bases(snapshot.day)

    of_states = replace(markers, chosen=is_judged)
    of_readings = with_reading(markers)
    if every_hour:
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
        prices,
        plan.work.damaged,
        every_hour,
    )


def _hours_committed(
    warehouse: Warehouse, work: HoursWork, past: RunHistory, number: int, files: Files, rebuilt: Collection[str]
) -> dict[str, tuple[int, int]]:
    """Commit the rows of the hours. Returns for each table its version and the rows written."""
    found = {}
    for name, table in HOURLY.items():
        ids = work.ids_by_day(of_states=name in OF_STATES)
        if not ids and not work.every_hour:
            continue
        version, restored = standing(warehouse, past, table)
        opened = existing_table(warehouse, name, restored)
        # Every row may be of hours that no reading concerns any more.
        whole = frozenset(file.day for file in data_files(opened) if file.day is not None and work.every_hour)
        every = {identity for of_day in ids.values() for identity in of_day}
        replaced = ReplacedRows(
            table, work.run_id, version, restored, every, ids.keys() - whole, whole, name in rebuilt
        )
        found[name] = committed(warehouse, replaced, number, files.get(name, ()))
    return found
