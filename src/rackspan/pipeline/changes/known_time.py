"""Known time: times of which a warehouse says something, and by which snapshot. Every reader follows it, views.py in SQL.

Constraints: a time belongs to the newest snapshot of its cluster at or before it, whichever collector stored it, and is known until
that snapshot's `known_until`, which is stored with it. So a snapshot changes what is known from its time to the next one's, and nothing else.
Times are microseconds since 1970 UTC. Tests: tests/pipeline/changes/test_known_time.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from rackspan.model.partitions import Int64s
from rackspan.model.snapshot import GAP_PERIODS

DISTANCES: Final = 10
"""A snapshot without a period has the median of so many distances before it. A single late one does not change that."""

ONLY_SNAPSHOT_MICROS: Final = 3_600_000_000
"""The period of a snapshot with none before it."""

NOT_STORED: Final = np.iinfo(np.int64).min
"""In place of a `known_until` that was not stored."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ABSENT: Final = np.iinfo(np.int64).max


class _OfCluster(Protocol):
    @property
    def taken_at(self) -> datetime: ...

    @property
    def known_until(self) -> datetime: ...


OfCluster = TypeVar("OfCluster", bound=_OfCluster)


def last_known(snapshots: Sequence[OfCluster], at: datetime) -> OfCluster | None:
    """The snapshot that a time belongs to, of those of one cluster in order of time; None where nothing is known of that time."""
    until = [snapshot for snapshot in snapshots if snapshot.taken_at <= at]
    return until[-1] if until and at <= until[-1].known_until else None


@dataclass(frozen=True, slots=True)
class KnownTime:
    """Known time between the first and the last snapshot of one cluster. `ends`: until when of all but the last, at most to the next one."""

    times: Int64s
    ends: Int64s

    @property
    def lasted(self) -> Int64s:
        """How long each snapshot but the last says something."""
        lasted: Int64s = self.ends - self.times[:-1]
        return lasted

    def until(self, at: Int64s) -> Int64s:
        """How many microseconds are known from the first snapshot to each time."""
        sums = np.concatenate(([0], np.cumsum(self.lasted)))
        place = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, len(self.times) - 1)
        since = np.clip(at - self.times[place], 0, np.append(self.lasted, 0)[place])
        found: Int64s = sums[place] + since
        return found


def known_time(times: Int64s, known_until: Int64s) -> KnownTime:
    """The known time of snapshots of one cluster, in order of time."""
    return KnownTime(times, np.minimum(times[1:], known_until[:-1]))


def with_known_until(rows: pa.Table) -> pa.Table:
    """Rows of `snapshots` or `judged`, all of a cluster, with the `known_until` that those of an earlier rackspan lack."""
    rows = rows.combine_chunks()
    place, column = rows.column_names.index("known_until"), rows.column("known_until")
    if not column.null_count:
        return rows
    clusters = rows.column("cluster_id").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    times = rows.column("taken_at").cast(pa.int64()).to_numpy()
    known = column.cast(pa.int64()).fill_null(NOT_STORED).to_numpy()
    return rows.set_column(place, "known_until", pa.array(filled(clusters, times, known)).cast(column.type))


def filled(clusters: Int64s, times: Int64s, known_until: Int64s) -> Int64s:
    """`known_until` of snapshots in any order, made where it is NOT_STORED by the distances before each. `clusters`: a number for each cluster."""
    missing = known_until == NOT_STORED
    if not missing.any():
        return known_until
    order = np.lexsort((times, clusters))
    at, of = times[order], clusters[order]
    places = np.flatnonzero(missing[order])
    back = places[:, None] - np.arange(DISTANCES)
    inside = (back > 0) & (of[np.maximum(back, 0)] == of[np.maximum(back - 1, 0)])
    # No distance counts beyond the first snapshot of the cluster.
    inside = np.logical_and.accumulate(inside, axis=1)
    distances = np.where(inside, at[np.maximum(back, 0)] - at[np.maximum(back - 1, 0)], _ABSENT)
    distances.sort(axis=1)
    count = inside.sum(axis=1)
    rows = np.arange(len(places))
    low, high = distances[rows, np.maximum(count - 1, 0) // 2], distances[rows, count // 2]
    periods = np.where(count > 0, np.where(count > 0, low, 0) + np.where(count > 0, high, 0), 2 * ONLY_SNAPSHOT_MICROS)
    made = known_until.copy()
    made[order[places]] = at[places] + GAP_PERIODS * periods // 2
    return made


def micros(at: datetime) -> int:
    """A time as microseconds since 1970, exactly."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def time_of(at: int) -> datetime:
    """The time of some microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=at)
