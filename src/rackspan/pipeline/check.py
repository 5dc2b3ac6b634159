"""Judges a warehouse: what is torn, damaged, missing, doubled or late, each with the command that repairs it. No Spark, no writes.

Begin with check(). Constraints: whatever makes a reader or a run fail, or show less than was stored, is a problem; each has a remedy
after which the check is clean. Method: logs first, without which nothing is known about a table; then files against their
log; then rows against markers; with `whole`, rows against a judgement of every snapshot (judging/again.py) and hours made again
(hours/again.py). Bound: the ids of every table; with `whole`, all columns of one cluster and day, and of one task of hours. Tests: tests/pipeline/test_check.py.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict

from rackspan.documents import Count
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.local_disk import former_name, pending_files, torn_files
from rackspan.pipeline.delta.table import data_files, open_table, read_files, snapshot_counts
from rackspan.pipeline.hours.again import other_hours
from rackspan.pipeline.judging.again import other_rows
from rackspan.pipeline.landing.markers import StoredSnapshot, lost_rows, read_markers
from rackspan.pipeline.landing.names import cluster_names, how_to_restore
from rackspan.pipeline.landing.read import find_damage
from rackspan.pipeline.runs import Run, judged_bases, newest_row
from rackspan.pipeline.schemas import (
    CLUSTERS,
    DERIVED,
    HISTORY,
    HOURLY,
    JUDGED,
    LANDING,
    OUTAGE_IMPACT,
    PARTITION_DURABILITY,
    RUNS,
    SNAPSHOTS,
    TABLES,
)
from rackspan.pipeline.warehouse import FilesRead, Warehouse
from rackspan.sources.source import ClusterName
from rackspan.text import count_noun, utc_text

if TYPE_CHECKING:
    from deltalake import DeltaTable

NAMED_MAX: Final = 3

_BACKUP: Final = "copy its folder _delta_log back from a backup: no command can make it again"
_STOPPED: Final = "see why its collector stopped, and start it again"


ProblemKind: TypeAlias = Literal[
    "torn-log",
    "unreadable-log",
    "missing-version",
    "damaged-file",
    "quarantined",
    "doubled",
    "missing-rows",
    "other-rows",
    "late",
]


@dataclass(frozen=True, slots=True)
class WarehouseProblem:
    """One thing to act on: of a table, or of a cluster. `remedy` begins with the command, if one repairs it."""

    kind: ProblemKind
    problem: str
    remedy: str
    table: str | None = None
    cluster: str | None = None
    name: str | None = None
    """What the cluster is called; null where it has no name."""


@dataclass(frozen=True, slots=True)
class ClusterFreshness:
    """The newest snapshot of a cluster until now, and how many it has."""

    cluster_id: str
    newest: datetime
    age_seconds: float
    snapshots: Count
    name: str | None = None
    """The last name under which it was collected; null where it had none."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The verdict. `tables` has the rows that each table's log names."""

    problems: tuple[WarehouseProblem, ...]
    clusters: tuple[ClusterFreshness, ...] = ()
    tables: Mapping[str, int] = field(default_factory=dict)


class CheckDocument(TypedDict):
    """The problems of a warehouse, and what to do."""

    warehouse: str
    problems: list[WarehouseProblem]
    clusters: list[ClusterFreshness]
    tables: dict[str, Count]


def check(warehouse: Warehouse, *, now: datetime, whole: bool = False, max_age: timedelta | None = None) -> CheckReport:
    """Judge a warehouse. Errors: InvalidWarehouse where it is none.

    With `whole`, every data file is read completely, every snapshot is judged again, and every hour is made again.
    """
    checked = _Check(replace(warehouse, read=FilesRead()), whole)
    problems = [*checked.logs()]
    if SNAPSHOTS.name not in checked.opened:
        if SNAPSHOTS.name not in {problem.table for problem in problems}:
            problems += checked.lost_markers()
        if not problems:
            raise InvalidWarehouse(
                f"{warehouse.root}: not a warehouse (it has no table snapshots); fill one with rackspan pipeline collect"
            )
        return CheckReport(tuple(problems))
    last, of_runs = checked.newest_run()
    problems += of_runs
    problems += checked.lost_tables(problems)
    problems += checked.files()
    stored, of_snapshots = checked.snapshots(last)
    problems += of_snapshots
    problems += (found := list(checked.derived(last, stored)))
    if whole and not found:
        problems += (found := list(checked.judged_again(last, stored)))
    if whole and not found:
        problems += checked.hours_again(last)
    names, of_names = _names(warehouse)
    problems += of_names
    clusters = tuple(_freshness(stored, names, now))
    problems += _late(warehouse, clusters, names, max_age)
    if max_age is not None:
        problems += checked.not_judged(last, [each for each in stored if now - each.taken_at > max_age], max_age)
    # Damaged derived tables first: --drop-damaged removes rows from them too.
    problems.sort(key=lambda problem: problem.table in LANDING)
    if last is not None and last.prices is not None:
        # A run without prices makes the bill without them.
        problems = [
            replace(problem, remedy=f"{problem.remedy} --prices FILE") if problem.remedy == checked.run else problem
            for problem in problems
        ]
    tables = {name: sum(file.rows for file in data_files(opened)) for name, opened in checked.opened.items()}
    return CheckReport(tuple(problems), clusters, tables)


class _Check:
    """The steps of a check. `opened` has the tables whose logs are whole, the derived ones at the version in force."""

    def __init__(self, warehouse: Warehouse, whole: bool) -> None:
        self.opened: dict[str, DeltaTable] = {}
        self._warehouse, self._whole = warehouse, whole
        self._damaged: set[str] = set()
        """Tables with a damaged file, whose rows are not counted."""
        self._unread: set[str] = set()
        """Landing tables that cannot be opened: nothing is judged, or made, again without them."""
        self._not_whole: set[str] = set()
        self._readable = warehouse
        """The warehouse without its damaged landing files."""
        root = warehouse.root
        self.run = f"rackspan pipeline run --warehouse {root}"
        self._rebuild_all = f"rackspan pipeline rebuild --warehouse {root}"
        self._maintain = f"rackspan pipeline maintain --warehouse {root} leaves out the row of this earlier run, which no reader needs"
        self._drop = (
            f"rackspan pipeline maintain --drop-damaged --warehouse {root} gives up what is damaged; first copy the file back from a "
            "backup, if there is one"
        )

    def remedy(self, name: str) -> str:
        """The command for a damaged file of a table."""
        if name in LANDING:
            return self._drop
        return (
            f"rackspan pipeline rebuild {name} --warehouse {self._warehouse.root}"
            if name in DERIVED
            else self._rebuild_all
        )

    def logs(self) -> Iterator[WarehouseProblem]:
        """Open every table; a problem for each torn or unreadable log."""
        for name in (*LANDING, *DERIVED, *HISTORY):
            folder = self._warehouse.table_folder(name)
            pending = [] if folder is None else pending_files(folder)
            torn = [] if folder is None else torn_files(folder)
            if torn or pending:
                names = ", ".join(former_name(file) for file in (*torn, *pending))
                why = f"{names} in its log is torn" if torn else f"a repair of its log ({names}) was interrupted"
                yield WarehouseProblem("torn-log", why, self.run, name)
                continue
            try:
                opened = open_table(self._warehouse.table(name))
                if opened is not None:
                    data_files(opened)
                    self.opened[name] = opened
            except InvalidWarehouse as error:
                yield WarehouseProblem(
                    "unreadable-log", str(error), _BACKUP if name in LANDING else self.remedy(name), name
                )

    def lost_tables(self, known: Collection[WarehouseProblem]) -> Iterator[WarehouseProblem]:
        """A problem for each landing table that is gone, and in which the stored snapshots have rows. Others have `known` ones."""
        self._unread = {name for problem in known if (name := problem.table) is not None and name in LANDING}
        gone = LANDING.keys() - self.opened.keys() - self._unread
        for name, count in sorted(lost_rows(self._warehouse, gone).items()):
            self._unread.add(name)
            line = f"it is gone, and the stored snapshots have {count_noun(count, 'row', ',')} in it"
            yield WarehouseProblem("unreadable-log", line, _BACKUP, name)

    def lost_markers(self) -> Iterator[WarehouseProblem]:
        """A problem where the table of the markers is gone and other landing tables have rows."""
        rows = sum(file.rows for name in LANDING.keys() & self.opened.keys() for file in data_files(self.opened[name]))
        if rows:
            line = f"it is gone, and the other tables have {count_noun(rows, 'row', ',')} of stored snapshots"
            yield WarehouseProblem("unreadable-log", line, _BACKUP, SNAPSHOTS.name)

    def newest_run(self) -> tuple[Run | None, list[WarehouseProblem]]:
        """The run in force. The derived tables are opened at the versions that it names."""
        if RUNS.name not in self.opened:
            return None, []
        try:
            last = newest_row(self.opened[RUNS.name])
        except InvalidWarehouse as error:
            # Without it no version of a derived table is in force.
            self.opened = {name: opened for name, opened in self.opened.items() if name in LANDING}
            return None, [WarehouseProblem("damaged-file", str(error), self._rebuild_all, RUNS.name)]
        problems = []
        for name, version in {} if last is None else last.versions.items():
            if name in self.opened and self.opened[name].version() == version:
                continue
            try:
                opened = open_table(self._warehouse.table(name), version)
            except InvalidWarehouse:
                opened = None
            if (opened is None and name in self.opened) or (name not in (*self.opened, *LANDING) and opened is None):
                self.opened.pop(name, None)
                line = f"version {version}, which the newest run names, cannot be read"
                problems.append(WarehouseProblem("missing-version", line, self.remedy(name), name))
            elif opened is not None and name in self.opened:
                self.opened[name] = opened
        return last, problems

    def files(self) -> Iterator[WarehouseProblem]:
        """A problem for each data file that is gone or is not as its log says."""
        for name, opened in self.opened.items():
            for file in data_files(opened):
                try:
                    if name == RUNS.name:
                        list(read_files(opened, [file], RUNS.schema))
                    else:
                        # Every command reads all columns of `judged`.
                        snapshot_counts(opened, file, whole=self._whole or name == JUDGED.name)
                except InvalidWarehouse as error:
                    self._damaged.add(name)
                    # The newest row of `runs` can be read here: others are history, which nothing makes again.
                    yield WarehouseProblem(
                        "damaged-file", str(error), self._maintain if name == RUNS.name else self.remedy(name), name
                    )

    def snapshots(self, last: Run | None) -> tuple[list[StoredSnapshot], list[WarehouseProblem]]:
        """The stored snapshots that are whole, and a problem for those that are not."""
        markers = read_markers(self._warehouse, skip_damaged=True)
        stored = markers.of_days(markers.count_by_day())
        problems = []
        twice = [
            key
            for key, count in Counter((snapshot.cluster_id, snapshot.taken_at) for snapshot in stored).items()
            if count > 1
        ]
        if twice:
            line = f"{len(twice)} snapshots are there twice, such as that of {twice[0][0]} at {twice[0][1].isoformat()}"
            problems.append(WarehouseProblem("doubled", line, self._drop, SNAPSHOTS.name))
        damage = (
            find_damage(self._warehouse, stored, whole=self._whole) if LANDING.keys() <= self.opened.keys() else None
        )
        for reason, count in Counter({} if damage is None else damage.snapshots.values()).items():
            ids = (
                [snapshot_id for snapshot_id, why in damage.snapshots.items() if why == reason]
                if damage is not None
                else []
            )
            line = f"{count} snapshots are not whole ({_some(ids)}): {reason}"
            problems.append(WarehouseProblem("quarantined", line, self._drop, SNAPSHOTS.name))
        lost = {} if damage is None else damage.snapshots
        self._not_whole = set(lost)
        left_out = {*(markers.damaged or {}), *({} if damage is None else damage.files)}
        self._readable = replace(self._warehouse, damaged=frozenset(left_out))
        waiting = (
            []
            if last is None
            else [
                snapshot_id
                for snapshot_id in last.quarantined
                if snapshot_id not in {**lost, **(markers.damaged or {})}
            ]
        )
        if waiting:
            line = f"{len(waiting)} snapshots were left out by the last run and are whole again ({_some(waiting)})"
            problems.append(WarehouseProblem("quarantined", line, self.run, SNAPSHOTS.name))
        return [snapshot for snapshot in stored if snapshot.snapshot_id not in lost], problems

    def derived(self, last: Run | None, stored: Sequence[StoredSnapshot]) -> Iterator[WarehouseProblem]:
        """A problem for each derived table that lacks rows of judged snapshots, or has them twice."""
        if last is None or JUDGED.name not in self.opened or JUDGED.name in self._damaged:
            return
        judged = self._counts(JUDGED.name)
        bases = judged_bases(self.opened[JUDGED.name])
        loose = [snapshot_id for snapshot_id, base_id in bases.items() if base_id is not None and base_id not in bases]
        if loose:
            line = (
                f"{len(loose)} snapshots have rows that differ from those of a snapshot that has none ({_some(loose)})"
            )
            yield WarehouseProblem("missing-rows", line, self._rebuild_all, JUDGED.name)
        doubled = [snapshot_id for snapshot_id, count in judged.items() if count > 1]
        if doubled:
            line = f"{len(doubled)} snapshots are there twice ({_some(doubled)})"
            yield WarehouseProblem("doubled", line, self._rebuild_all, JUDGED.name)
        without = judged.keys() - {snapshot.snapshot_id for snapshot in stored} - self._not_whole
        if without and SNAPSHOTS.name not in self._damaged:
            line = f"{len(without)} snapshots that are not stored any more ({_some(sorted(without))})"
            yield WarehouseProblem("missing-rows", line, self._drop, JUDGED.name)
        for name, wanted in (
            ("partition_durability", lambda snapshot: snapshot.partitions),
            ("outage_impact", lambda _: None),
        ):
            if name not in self.opened or name in self._damaged:
                continue
            counts = self._counts(name)
            wrong = [
                snapshot.snapshot_id
                for snapshot in stored
                if bases.get(snapshot.snapshot_id, "not judged") is None
                and (
                    counts[snapshot.snapshot_id] != wanted(snapshot)
                    if wanted(snapshot) is not None
                    else not counts[snapshot.snapshot_id]
                )
            ]
            if wrong:
                line = f"{len(wrong)} judged snapshots have other rows than they should ({_some(wrong)})"
                yield WarehouseProblem("missing-rows", line, self.remedy(name), name)

    def not_judged(
        self, last: Run | None, late: Sequence[StoredSnapshot], max_age: timedelta
    ) -> Iterator[WarehouseProblem]:
        """A problem where no run has judged some of the snapshots that are older than `max_age`."""
        if last is not None and (JUDGED.name not in self.opened or JUDGED.name in self._damaged):
            return
        judged = {} if last is None else judged_bases(self.opened[JUDGED.name])
        left_out = () if last is None else last.quarantined
        waiting = [each.snapshot_id for each in late if each.snapshot_id not in {**judged, **dict.fromkeys(left_out)}]
        if waiting:
            when = "there was no run yet" if last is None else f"the newest run began at {utc_text(last.started_at)}"
            minutes = f"{max_age.total_seconds() / 60:.0f} minutes"
            line = f"no run has judged {count_noun(len(waiting), 'snapshot')} of more than {minutes} ago ({_some(waiting)}): {when}"
            yield WarehouseProblem("late", line, self.run, JUDGED.name)

    def judged_again(self, last: Run | None, stored: Sequence[StoredSnapshot]) -> Iterator[WarehouseProblem]:
        """A problem for each derived table whose rows are not those of judging each snapshot whole."""
        needed = {*TABLES, *HISTORY}
        if last is None or self._unread or not needed <= self.opened.keys() or needed & self._damaged:
            return
        judged = judged_bases(self.opened[JUDGED.name])
        readable = [snapshot for snapshot in stored if snapshot.snapshot_id in judged]
        wrong: dict[str, list[str]] = {}
        for name, snapshot_id in other_rows(self._readable, last, readable):
            wrong.setdefault(name, []).append(snapshot_id)
        for name, ids in wrong.items():
            line = f"at {len(ids)} snapshots it has other rows than judging them gives ({_some(ids)})"
            yield WarehouseProblem("other-rows", line, self.remedy(name), name)

    def hours_again(self, last: Run | None) -> Iterator[WarehouseProblem]:
        """A problem for each table of hours whose rows are not those of making the hours again."""
        # With a damaged marker file it is unknown which snapshots an hour was made of.
        needed = {SNAPSHOTS.name, PARTITION_DURABILITY.name, OUTAGE_IMPACT.name, *HISTORY}
        if last is None or self._unread or not needed <= self.opened.keys() or needed & self._damaged:
            return
        names = [name for name in HOURLY if name in self.opened and name in last.versions and name not in self._damaged]
        wrong: dict[str, list[str]] = {}
        for name, hour in other_hours(self._readable, last, {*self._not_whole, *last.quarantined}, names):
            wrong.setdefault(name, []).append(hour)
        for name, hours in wrong.items():
            line = f"in {len(hours)} hours it has other rows than making them again gives ({_some(hours)})"
            yield WarehouseProblem("other-rows", line, self.remedy(name), name)

    def _counts(self, name: str) -> Counter[str]:
        opened = self.opened[name]
        counts: Counter[str] = Counter()
        for file in data_files(opened):
            counts += snapshot_counts(opened, file)
        return counts


def _names(warehouse: Warehouse) -> tuple[Mapping[str, ClusterName], list[WarehouseProblem]]:
    """The names of clusters, by id, and a problem where they cannot be read."""
    try:
        return cluster_names(warehouse), []
    except InvalidWarehouse as error:
        return {}, [WarehouseProblem("unreadable-log", str(error), how_to_restore(warehouse), CLUSTERS.name)]


def _freshness(
    stored: Sequence[StoredSnapshot], names: Mapping[str, ClusterName], now: datetime
) -> Iterator[ClusterFreshness]:
    counts = Counter(snapshot.cluster_id for snapshot in stored)
    newest: dict[str, datetime] = {}
    # A snapshot of a time to come, by a clock that was wrong, says nothing of a collector that has stopped since.
    for snapshot in sorted(stored, key=lambda snapshot: (snapshot.taken_at <= now, snapshot.taken_at)):
        newest[snapshot.cluster_id] = snapshot.taken_at
    for cluster_id, taken_at in sorted(newest.items()):
        name = names[cluster_id].name if cluster_id in names else None
        yield ClusterFreshness(cluster_id, taken_at, (now - taken_at).total_seconds(), counts[cluster_id], name)


def _late(
    warehouse: Warehouse,
    clusters: Sequence[ClusterFreshness],
    names: Mapping[str, ClusterName],
    max_age: timedelta | None,
) -> Iterator[WarehouseProblem]:
    if max_age is None:
        return
    for cluster in clusters:
        if cluster.age_seconds > max_age.total_seconds():
            line = f"no snapshot for {cluster.age_seconds / 60:.0f} minutes"
            named = names.get(cluster.cluster_id)
            remedy = (
                _STOPPED if named is None else f"{_collect(warehouse, f'--cluster {quote(named.cluster)}')}; {_STOPPED}"
            )
            yield WarehouseProblem("late", line, remedy, cluster=cluster.cluster_id, name=cluster.name)
    if not clusters:
        remedy = f"{_collect(warehouse, '--all-clusters')} stores one of each cluster of rackspan.toml"
        yield WarehouseProblem("late", "no snapshot of any cluster", remedy)


def _collect(warehouse: Warehouse, of: str) -> str:
    return f"rackspan pipeline collect {of} --warehouse {warehouse.root}"


def _some(ids: Sequence[str]) -> str:
    return ", ".join(sorted(ids)[:NAMED_MAX]) + (", …" if len(ids) > NAMED_MAX else "")
