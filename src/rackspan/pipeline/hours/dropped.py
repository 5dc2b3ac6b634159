"""The hours that rest on snapshots which are dropped, and the snapshots to judge again so that the next run makes those hours again.

Constraint: an hour rests on the snapshots in it, the last one before and the first one after it. Tests: tests/pipeline/hours/test_dropped.py, test_again.py.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from rackspan.pipeline.hours.work import HOUR, hour_id, hour_of
from rackspan.pipeline.landing.markers import StoredSnapshot


@dataclass(frozen=True, slots=True)
class DroppedHours:
    """Ids of hours by day, and of the snapshots whose judgement, as of new ones, makes again those that still have any rows."""

    by_day: dict[date, set[str]] = field(default_factory=dict)
    judged_again: set[str] = field(default_factory=set)


def hours_resting_on(lost: Iterable[tuple[str, datetime]], stored: Sequence[StoredSnapshot]) -> DroppedHours:
    """Those from the snapshot before each lost one, a cluster and time, to the one after it.

    `stored` are the snapshots that are left and that the hours are made of. A new snapshot concerns the hours from the one before it on, so the one after
    a lost one is judged again; or the one before it, if nothing follows.
    """
    found = DroppedHours()
    by_cluster: dict[str, list[StoredSnapshot]] = {}
    for snapshot in sorted(stored, key=lambda snapshot: snapshot.taken_at):
        by_cluster.setdefault(snapshot.cluster_id, []).append(snapshot)
    for cluster_id, at in lost:
        left = by_cluster.get(cluster_id, [])
        place = bisect_left([snapshot.taken_at for snapshot in left], at)
        before, after = left[max(0, place - 1) : place], left[place : place + 1]
        found.judged_again.update(snapshot.snapshot_id for snapshot in (after or before))
        hour = hour_of(before[0].taken_at if before else at)
        last = after[0].taken_at if after else at
        while hour <= last:
            found.by_day.setdefault(hour.date(), set()).add(hour_id(cluster_id, hour))
            hour += HOUR
    return found
