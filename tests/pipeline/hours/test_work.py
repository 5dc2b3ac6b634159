"""The hours that a run makes again are those between the snapshots around a new one: against plain loops over all snapshots.

Markers stand in memory, in files of random groups, as a collector, a compaction and a late snapshot leave them.
"""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any, cast

import pytest

from rackspan.pipeline.delta.table import DataFile
from rackspan.pipeline.hours.work import HOUR, ClusterHours, concerned_hours, hour_of, with_whole
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot
from rackspan.pipeline.landing.rows import time_text

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


def stored(cluster_id: str, at: datetime) -> StoredSnapshot:
    return StoredSnapshot(f"{time_text(at)}-{cluster_id}", cluster_id, at, at.date(), 1, 1, 1, "m", at)


def markers_of(rng: random.Random, snapshots: Sequence[StoredSnapshot]) -> Markers:
    """The snapshots in files of one day each, some of one snapshot and some of all that is left of a day."""
    files: list[DataFile] = []
    read: dict[str, Sequence[StoredSnapshot]] = {}
    for day, of_day in groupby(
        sorted(snapshots, key=lambda one: (one.day, rng.random())), key=lambda snapshot: snapshot.day
    ):
        left = list(of_day)
        while left:
            count = rng.choice((1, 1, 3, len(left)))
            rows, left = left[:count], left[count:]
            ids = [snapshot.snapshot_id for snapshot in rows]
            files.append(DataFile(f"{len(files)}", day, len(rows), min(ids), max(ids)))
            read[files[-1].path] = rows
    return Markers(cast("Any", None), files, read=read)


def by_plain_loops(
    snapshots: Sequence[StoredSnapshot], given: Sequence[StoredSnapshot], *, ended: bool
) -> list[tuple[str, date, list[datetime], list[StoredSnapshot]]]:
    found = []
    for cluster_id in sorted({snapshot.cluster_id for snapshot in given}):
        in_time = sorted(
            (snapshot for snapshot in snapshots if snapshot.cluster_id == cluster_id), key=lambda one: one.taken_at
        )
        hours = set()
        for place, snapshot in enumerate(in_time):
            if snapshot in given:
                around = in_time[max(0, place - 1) : place + 2]
                hour = hour_of(around[0].taken_at)
                while hour <= around[-1].taken_at:
                    hours.add(hour)
                    hour += HOUR
        if ended:
            hours = {hour for hour in hours if any(one.taken_at >= hour + HOUR for one in in_time)}
        for day in sorted({hour.date() for hour in hours}):
            of_day = sorted(hour for hour in hours if hour.date() == day)
            before = [one for one in in_time if one.taken_at < of_day[0]][-1:]
            inside = [one for one in in_time if of_day[0] <= one.taken_at < of_day[-1] + HOUR]
            after = [one for one in in_time if one.taken_at >= of_day[-1] + HOUR][:1]
            found.append((cluster_id, day, of_day, [*before, *inside, *after]))
    return found


def shown(hours: Sequence[ClusterHours]) -> list[tuple[str, date, list[datetime], list[StoredSnapshot]]]:
    return [(each.cluster_id, each.day, list(each.hours), list(each.snapshots)) for each in hours]


@pytest.mark.parametrize("ended", [False, True])
def test_the_hours_of_random_histories_are_those_of_plain_loops(ended: bool) -> None:
    rng = random.Random(7)
    for _ in range(400):
        minutes = rng.choice((20, 240, 3_000))
        times = {(cluster_id, rng.randrange(minutes)) for cluster_id in "abc" for _ in range(rng.choice((0, 1, 4, 12)))}
        snapshots = [stored(cluster_id, MIDNIGHT + timedelta(minutes=minute)) for cluster_id, minute in sorted(times)]
        given = [snapshot for snapshot in snapshots if rng.random() < 0.3]
        markers = markers_of(rng, snapshots)
        assert shown(concerned_hours(markers, given, ended=ended)) == by_plain_loops(snapshots, given, ended=ended)


def test_a_late_snapshot_within_one_hour_concerns_that_hour_where_it_has_ended() -> None:
    at = [MIDNIGHT + timedelta(minutes=minutes) for minutes in (4, 5, 6, 70)]
    snapshots = [stored("a", time) for time in at]
    markers = markers_of(random.Random(1), snapshots)
    ((_, _, hours, needed),) = shown(concerned_hours(markers, [snapshots[1]], ended=True))
    assert (hours, needed) == ([MIDNIGHT], snapshots)
    assert concerned_hours(markers_of(random.Random(1), snapshots[:3]), [snapshots[1]], ended=True) == []


def test_hours_have_the_times_of_the_whole_snapshots_of_their_cluster_and_days() -> None:
    """Neither of one that is stored as changes, nor of one that is not judged yet, nor of another cluster or day."""
    hours = {"a": (-25, 1, 2, 3, 4, 25), "b": (1,)}
    snapshots = [stored(cluster_id, MIDNIGHT + HOUR * at) for cluster_id in hours for at in hours[cluster_id]]
    changes, waiting = snapshots[2], snapshots[3]
    bases = {one.snapshot_id: None if one is not changes else "base" for one in snapshots if one is not waiting}
    of_a = ClusterHours("a", (MIDNIGHT + HOUR,), (snapshots[1], snapshots[4]))
    (found,) = with_whole([of_a], markers_of(random.Random(1), snapshots), lambda _day: bases)
    assert found.whole == (snapshots[1].taken_at, snapshots[4].taken_at)
