"""The hours that a run has to make: those that a snapshot stored or judged again concerns, with the readings that each needs.

Constraints: an hour's rows are a function of the stored readings (or snapshots) in it, the last one before and the first one after it. So whatever
order they come in, the hours from the one before to the one after a new one are made again, and no others. Bound: the markers of the days with news,
and outward from there to the next reading of each cluster. Source: our own. Tests: tests/pipeline/hours/test_work.py.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Final

from rackspan.audit import ClusterPolicies, RackPolicy
from rackspan.pipeline.delta.table import DataFile, data_files
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot, read_markers
from rackspan.pipeline.landing.read import files_near, files_of
from rackspan.pipeline.landing.rows import HASH_LENGTH, time_text
from rackspan.pipeline.schemas import OUTAGE_IMPACT, PARTITION_DURABILITY, SNAPSHOTS, STORED
from rackspan.pipeline.schemas.readings import READINGS
from rackspan.pipeline.warehouse import Warehouse, existing_table
from rackspan.traffic import PriceFile

HOUR: Final = timedelta(hours=1)
LEAST: Final = timedelta(microseconds=1)
"""The least by which times of snapshots differ."""
TASK_PARTITIONS: Final = 200_000
"""The most partitions, once for each reading of the hours, that a task has, unless the hours of one cluster and day have more."""


@dataclass(frozen=True, slots=True)
class ClusterHours:
    """Hours of one cluster and day. `snapshots` are in order of time, from the last before the first hour to the first after the last."""

    cluster_id: str
    hours: tuple[datetime, ...]
    snapshots: tuple[StoredSnapshot, ...]
    whole: tuple[datetime, ...] = ()
    """Of hours of states: when snapshots of these days were taken of which all rows are stored."""

    @property
    def day(self) -> date:
        return self.hours[0].date()


@dataclass(frozen=True, slots=True)
class HoursWork:
    """The hours that a run makes: of readings, and of states, which are made once a snapshot after the hour is judged."""

    run_id: str
    of_readings: tuple[ClusterHours, ...] = ()
    of_states: tuple[ClusterHours, ...] = ()
    prices: PriceFile | None = None
    damaged: frozenset[str] = frozenset()
    """Data files that are not read, as TABLE/PATH."""
    every_hour: bool = False
    """Whether all rows of all tables are replaced."""

    def __bool__(self) -> bool:
        return bool(self.of_readings or self.of_states or self.every_hour)

    def ids_by_day(self, *, of_states: bool) -> Mapping[date, frozenset[str]]:
        """The ids of the hours of states, or of readings, by day."""
        found: dict[date, set[str]] = {}
        for each in self.of_states if of_states else self.of_readings:
            found.setdefault(each.day, set()).update(hour_id(each.cluster_id, hour) for hour in each.hours)
        return {day: frozenset(ids) for day, ids in found.items()}


@dataclass(frozen=True, slots=True)
class HourTask:
    """One task: hours of one day. `files` are those to read, by table; they may hold other rows too."""

    number: int
    root: str
    run_id: str
    of_readings: tuple[ClusterHours, ...] = ()
    of_states: tuple[ClusterHours, ...] = ()
    chain: tuple[StoredSnapshot, ...] = ()
    """The snapshots of the readings and all that they build on, in order of time."""
    files: Mapping[str, Sequence[DataFile]] = field(default_factory=dict)
    policies: Mapping[str, RackPolicy] = field(default_factory=dict)
    """By cluster."""
    prices: PriceFile | None = None

    @property
    def day(self) -> date:
        return (*self.of_readings, *self.of_states)[0].day

    @property
    def partitions(self) -> int:
        """How many rows of partitions the task reads, about."""
        return sum(snapshot.partitions for each in (*self.of_readings, *self.of_states) for snapshot in each.snapshots)


def hour_of(at: datetime) -> datetime:
    """The start of the hour that a time is in."""
    return at.replace(minute=0, second=0, microsecond=0)


def hour_id(cluster_id: str, hour: datetime) -> str:
    """The hour, then a hash of the cluster: as ids of snapshots they sort by time, and are no longer than statistics hold."""
    return f"{time_text(hour)}{hashlib.sha256(cluster_id.encode()).hexdigest()[:HASH_LENGTH]}"


def with_whole(
    hours: Sequence[ClusterHours], markers: Markers, bases: Callable[[date], Mapping[str, str | None]]
) -> tuple[ClusterHours, ...]:
    """Hours of states with the times of their whole snapshots. `bases` has for each judged snapshot what its rows differ from, of a day."""
    whole: dict[str, list[StoredSnapshot]] = {}
    for snapshot in markers.of_days({day for each in hours for day in (each.day, each.snapshots[0].day)}):
        if bases(snapshot.day).get(snapshot.snapshot_id, "not judged") is None:
            whole.setdefault(snapshot.cluster_id, []).append(snapshot)
    return tuple(
        replace(
            each,
            whole=tuple(
                snapshot.taken_at
                for snapshot in whole.get(each.cluster_id, ())
                if snapshot.day in (each.day, each.snapshots[0].day)
            ),
        )
        for each in hours
    )


def with_reading(markers: Markers) -> Markers:
    """The stored snapshots that have a reading."""
    return replace(markers, chosen=has_reading)


def has_reading(snapshot: StoredSnapshot) -> bool:
    """Whether a snapshot was stored with a reading."""
    return READINGS.name in snapshot.stored_rows


def concerned_hours(markers: Markers, given: Sequence[StoredSnapshot], *, ended: bool = False) -> list[ClusterHours]:
    """The hours that some snapshots concern, with the snapshots among `markers` that the hours need.

    With `ended`, only hours after which there is a snapshot of the cluster.
    """
    if not given:
        return []
    firsts = {
        snapshot.cluster_id: snapshot
        for snapshot in sorted(given, key=lambda snapshot: snapshot.taken_at, reverse=True)
    }
    lasts = {snapshot.cluster_id: snapshot for snapshot in sorted(given, key=lambda snapshot: snapshot.taken_at)}
    firsts |= markers.before(_times(firsts))
    lasts |= markers.after(_times(lasts))
    starts = {cluster_id: hour_of(first.taken_at) for cluster_id, first in firsts.items()}
    ends = {cluster_id: hour_of(last.taken_at) + HOUR - LEAST for cluster_id, last in lasts.items()}
    following = markers.after(ends)
    if ended:
        starts = {
            cluster_id: start
            for cluster_id, start in starts.items()
            if cluster_id in following or start + HOUR < ends[cluster_id]
        }
    if not starts:
        return []
    near = markers.between(min(starts.values()), max(ends[cluster_id] for cluster_id in starts))
    known = _by_cluster([*markers.before(starts).values(), *near, *following.values()])
    ids = {snapshot.snapshot_id for snapshot in given}
    touched = {cluster_id: _touched(known[cluster_id], ids) for cluster_id in starts}
    return [
        each
        for cluster_id in sorted(touched)
        for each in _by_day(cluster_id, sorted(touched[cluster_id]), known[cluster_id], ended)
    ]


def _times(snapshots: Mapping[str, StoredSnapshot]) -> dict[str, datetime]:
    return {cluster_id: snapshot.taken_at for cluster_id, snapshot in snapshots.items()}


def _by_cluster(snapshots: Iterable[StoredSnapshot]) -> dict[str, list[StoredSnapshot]]:
    """Each snapshot once, by cluster in order of time."""
    found: dict[str, list[StoredSnapshot]] = {}
    for snapshot in sorted(
        {snapshot.snapshot_id: snapshot for snapshot in snapshots}.values(), key=lambda snapshot: snapshot.taken_at
    ):
        found.setdefault(snapshot.cluster_id, []).append(snapshot)
    return found


def hour_tasks(
    warehouse: Warehouse, work: HoursWork, policies: ClusterPolicies, versions: Mapping[str, int] | None = None
) -> list[HourTask]:
    """The tasks of a run: hours of one day each, of about as many partitions. Errors: InvalidWarehouse.

    `versions` of the tables that hours of states are made of; without them the newest ones.
    """
    warehouse = replace(warehouse, damaged=work.damaged)
    every = [snapshot for each in work.of_readings for snapshot in each.snapshots]
    known = read_markers(warehouse, skip_damaged=True).with_bases(every) if every else {}
    landing = {table.name: files_of(warehouse, table, list(known.values())) for table in (*STORED, SNAPSHOTS) if every}
    tasks: list[HourTask] = []
    for of_task in _cut(work.of_readings):
        ids = {snapshot.snapshot_id for each in of_task for snapshot in each.snapshots}
        chain = _with_bases(known, ids)
        files = {name: files_near(of_table, chain) for name, of_table in landing.items()}
        of_clusters = {each.cluster_id: policies.of_cluster(each.cluster_id) for each in of_task}
        tasks.append(
            HourTask(
                len(tasks),
                warehouse.root,
                work.run_id,
                tuple(of_task),
                chain=tuple(chain),
                files=files,
                policies=of_clusters,
                prices=work.prices,
            )
        )
    stored = {
        table.name: data_files(existing_table(warehouse, table.name, (versions or {}).get(table.name)))
        for table in (PARTITION_DURABILITY, OUTAGE_IMPACT)
        if work.of_states
    }
    for of_task in _cut(work.of_states):
        # A row is true from the last whole snapshot before the hours on, which is of the day of the first.
        days = {day for each in of_task for day in (each.day, each.snapshots[0].day)}
        last = max(snapshot.snapshot_id for each in of_task for snapshot in each.snapshots)
        files = {
            name: [file for file in of_table if file.day in days and file.may_hold("", last)]
            for name, of_table in stored.items()
        }
        tasks.append(HourTask(len(tasks), warehouse.root, work.run_id, of_states=tuple(of_task), files=files))
    return tasks


def _touched(near: Sequence[StoredSnapshot], ids: Collection[str]) -> set[datetime]:
    """The hours from the snapshot before each of some to the one after it."""
    hours: set[datetime] = set()
    for place, snapshot in enumerate(near):
        if snapshot.snapshot_id in ids:
            first, last = near[max(0, place - 1)], near[min(place + 1, len(near) - 1)]
            hours.update(_hours(first.taken_at, last.taken_at))
    return hours


def _hours(first: datetime, last: datetime) -> Iterator[datetime]:
    hour = hour_of(first)
    while hour <= last:
        yield hour
        hour += HOUR


def _by_day(
    cluster_id: str, hours: Sequence[datetime], snapshots: Sequence[StoredSnapshot], ended: bool
) -> Iterator[ClusterHours]:
    """The hours of each day with the snapshots that they need."""
    if ended:
        hours = [hour for hour in hours if snapshots[-1].taken_at >= hour + HOUR]
    times = [snapshot.taken_at for snapshot in snapshots]
    for _, of_day in groupby(hours, key=lambda hour: hour.date()):
        day = tuple(of_day)
        first, end = bisect_left(times, day[0]), bisect_left(times, day[-1] + HOUR)
        yield ClusterHours(cluster_id, day, tuple(snapshots[max(0, first - 1) : end + 1]))


def _cut(hours: Sequence[ClusterHours]) -> Iterator[list[ClusterHours]]:
    """Hours of one day, in parts of at most TASK_PARTITIONS."""
    for _, of_day in groupby(sorted(hours, key=lambda each: (each.day, each.cluster_id)), key=lambda each: each.day):
        part: list[ClusterHours] = []
        held = 0
        for each in of_day:
            partitions = sum(snapshot.partitions for snapshot in each.snapshots)
            if part and held + partitions > TASK_PARTITIONS:
                yield part
                part, held = [], 0
            part.append(each)
            held += partitions
        yield part


def _with_bases(known: Mapping[str, StoredSnapshot], ids: Collection[str]) -> list[StoredSnapshot]:
    """Some snapshots and all that they build on, in order of time."""
    wanted: set[str] = set()
    for identity in ids:
        at: str | None = identity
        while at is not None and at in known and at not in wanted:
            wanted.add(at)
            at = known[at].base_id
    return [snapshot for identity, snapshot in known.items() if identity in wanted]
