"""What is known of which time, worked out by loops: it imports nothing of the pipeline.

A snapshot says something for three periods. Without a period of its collector it has the median of the ten distances before it, among the
snapshots that are stored with it or before it; an hour if there is none. A time belongs to the newest snapshot at or before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

PERIODS = 3
MICROSECOND = timedelta(microseconds=1)


def known_until(taken_at: datetime, stored: Iterable[datetime], period_seconds: float | None = None) -> datetime:
    """Until when a snapshot says something, if no other one follows. `stored` are the times of its cluster."""
    if period_seconds is not None:
        return taken_at + timedelta(seconds=PERIODS * period_seconds)
    before = sorted({taken_at, *(at for at in stored if at <= taken_at)})
    distances = [(after - earlier) // MICROSECOND for earlier, after in pairwise(before)][-10:]
    period = median(distances) if distances else 3_600_000_000
    return taken_at + int(PERIODS * period) * MICROSECOND


def of_one_append(times: Sequence[datetime]) -> dict[datetime, datetime]:
    """The same of snapshots of one cluster that were stored together, without a period, by their times."""
    return {taken_at: known_until(taken_at, times) for taken_at in times}


def snapshot_of(at: datetime, known: Mapping[datetime, datetime]) -> datetime | None:
    """The time of the snapshot that a time belongs to; None if nothing is known of it. `known`: until when each says something."""
    newest = None
    for taken_at in sorted(known):
        if taken_at <= at:
            newest = taken_at
    return newest if newest is not None and at <= known[newest] else None


def spans(known: Mapping[datetime, datetime]) -> list[tuple[datetime, datetime, datetime | None]]:
    """The time from the first to the last snapshot in spans, each with the snapshot that it belongs to, None if nothing is known."""
    found: list[tuple[datetime, datetime, datetime | None]] = []
    for taken_at, following in pairwise(sorted(known)):
        until = min(following, known[taken_at])
        found.append((taken_at, until, taken_at))
        if until < following:
            found.append((until, following, None))
    return found
