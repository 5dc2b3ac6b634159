"""The snapshots directly before and after given ones of the same cluster, which is what `drift` compares."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from rackspan.pipeline.landing.markers import Markers, StoredSnapshot

FEW: Final = 3
"""Of one cluster: so many are looked up one by one, which opens fewer files than a listing of their days."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The snapshots before and after the given ones; the given ones themselves are not among them."""

    previous: tuple[StoredSnapshot, ...]
    following: tuple[StoredSnapshot, ...]


def neighbours(markers: Markers, given: Sequence[StoredSnapshot]) -> Neighbours:
    """The neighbours of the given snapshots."""
    most = max(Counter(snapshot.cluster_id for snapshot in given).values(), default=0)
    previous, following = (_one_by_one if most <= FEW else _by_day)(markers, given)
    ids = {snapshot.snapshot_id for snapshot in given}
    return Neighbours(
        *(
            tuple(snapshot for snapshot in ones.values() if snapshot.snapshot_id not in ids)
            for ones in (previous, following)
        )
    )


def _one_by_one(
    markers: Markers, given: Sequence[StoredSnapshot]
) -> tuple[dict[str, StoredSnapshot], dict[str, StoredSnapshot]]:
    previous: dict[str, StoredSnapshot] = {}
    following: dict[str, StoredSnapshot] = {}
    left = sorted(given, key=lambda snapshot: snapshot.taken_at)
    while left:
        each = {snapshot.cluster_id: snapshot.taken_at for snapshot in reversed(left)}
        previous |= {snapshot.snapshot_id: snapshot for snapshot in markers.before(each).values()}
        following |= {snapshot.snapshot_id: snapshot for snapshot in markers.after(each).values()}
        left = [snapshot for snapshot in left if snapshot.taken_at != each[snapshot.cluster_id]]
    return previous, following


def _by_day(
    markers: Markers, given: Sequence[StoredSnapshot]
) -> tuple[dict[str, StoredSnapshot], dict[str, StoredSnapshot]]:
    """From a listing of the days of the given ones; only the first and the last of a day need a look at other days."""
    listed = markers.of_days({snapshot.day for snapshot in given})
    ids = {snapshot.snapshot_id for snapshot in given}
    previous: dict[str, StoredSnapshot] = {}
    following: dict[str, StoredSnapshot] = {}
    firsts: dict[date, dict[str, datetime]] = {}
    lasts: dict[date, dict[str, datetime]] = {}
    for place, snapshot in enumerate(listed):
        if snapshot.snapshot_id not in ids:
            continue
        before = listed[place - 1] if place else None
        after = listed[place + 1] if place + 1 < len(listed) else None
        if before is not None and (before.cluster_id, before.day) == (snapshot.cluster_id, snapshot.day):
            previous[before.snapshot_id] = before
        else:
            firsts.setdefault(snapshot.day, {})[snapshot.cluster_id] = snapshot.taken_at
        if after is not None and (after.cluster_id, after.day) == (snapshot.cluster_id, snapshot.day):
            following[after.snapshot_id] = after
        else:
            lasts.setdefault(snapshot.day, {})[snapshot.cluster_id] = snapshot.taken_at
    for times in firsts.values():
        previous |= {snapshot.snapshot_id: snapshot for snapshot in markers.before(times).values()}
    for times in lasts.values():
        following |= {snapshot.snapshot_id: snapshot for snapshot in markers.after(times).values()}
    return previous, following
