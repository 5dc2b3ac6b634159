"""Seconds of an hour in each state, and what min.insync.racks refused, from the rows that `partition_durability` and `outage_impact` store.

Constraints: seconds equal those of the rows at each snapshot, each true until the next snapshot but not beyond its `known_until`. Method: a stored
row is true until the next row of its key, or until the next snapshot of which all rows are stored; what is known of a span is a
difference of sums over the snapshots, in whole microseconds. Bound: the stored rows of a cluster and two days. Source: our own. Tests: tests/pipeline/hours/test_durability.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rackspan.model.partitions import Int64s
from rackspan.pipeline.changes.difference import key_codes
from rackspan.pipeline.changes.known_time import KnownTime, known_time, micros, time_of
from rackspan.pipeline.hours.work import HOUR
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.schemas import GONE

Rows: TypeAlias = Iterator[tuple[str, dict[str, Any]]]

OK: Final = "ok"
REFUSING: Final = "under-min-racks"
MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Spans:
    """Stored rows, each with the time in which it is true, in microseconds."""

    rows: pa.Table
    start: Int64s
    end: Int64s

    def within(self, start: int, end: int) -> "Spans":
        """Those that are true in some time, cut to it. Rows that are gone say nothing."""
        begins, ends = np.maximum(self.start, start), np.minimum(self.end, end)
        chosen = pa.array(begins < ends)
        there = pc.and_(chosen, pc.invert(self.rows.column(GONE).combine_chunks().fill_null(False)))
        mask = there.to_numpy(zero_copy_only=False)
        return Spans(self.rows.filter(there), begins[mask], ends[mask])


def spans_of(rows: pa.Table, key: Sequence[str], whole: Sequence[datetime], end: datetime) -> Spans:
    """The rows of one cluster and their spans. `whole` are the times of snapshots of which all rows are stored; `end` ends the last."""
    rows = rows.combine_chunks()
    at = rows.column("valid_from").cast(pa.int64()).to_numpy()
    codes = key_codes(rows, key) if len(rows) else np.zeros(0, np.int64)
    order = np.lexsort((at, codes))
    codes, at = codes[order], at[order]
    last = np.append(codes[1:] != codes[:-1], True)[: len(order)]
    until = np.append(at[1:], 0)[: len(order)].astype(np.int64)
    restated = np.array([*sorted(map(micros, whole)), micros(end)], np.int64)
    next_whole = restated[np.minimum(np.searchsorted(restated, at, side="right"), len(restated) - 1)]
    until = np.where(last, next_whole, np.minimum(until, next_whole))
    return Spans(rows.take(pa.array(order)), at, until)


def state_rows(
    hours: Sequence[datetime],
    snapshots: Sequence[StoredSnapshot],
    durability: Spans,
    impact: Spans,
) -> Rows:
    """The rows of some hours of one cluster. `snapshots` are those of the hours with one on either side, in order of time."""
    for hour in hours:
        concerned = _concerned(snapshots, hour)
        start, end = micros(hour), micros(hour + HOUR)
        known = _known(concerned)
        first = max(start, int(known.times[0]))
        sure = _lasted(known, np.array([first]), np.array([end]))[0]
        for state, seconds in (("known", sure), ("unknown", end - first - sure)):
            if seconds:
                yield "durability_time", _time_row(hour, None, None, state, None, int(seconds))
        cut = durability.within(start, end)
        yield from _partition_rows(hour, cut, known)
        yield from _rack_rows(hour, impact.within(start, end), known)
        yield from _refusal_rows(hour, cut, known)


def _concerned(snapshots: Sequence[StoredSnapshot], hour: datetime) -> list[StoredSnapshot]:
    """The snapshots of an hour, the last before it and the first after it."""
    earlier = [snapshot for snapshot in snapshots if snapshot.taken_at < hour][-1:]
    inside = [snapshot for snapshot in snapshots if hour <= snapshot.taken_at < hour + HOUR]
    later = [snapshot for snapshot in snapshots if snapshot.taken_at >= hour + HOUR][:1]
    return [*earlier, *inside, *later]


def _known(snapshots: Sequence[StoredSnapshot]) -> KnownTime:
    """The last of the snapshots only ends what is known of the one before it."""
    times = (
        [micros(at) for at in of] for of in zip(*((each.taken_at, each.known_until) for each in snapshots), strict=True)
    )
    return known_time(*(np.array(of, np.int64) for of in times))


def _lasted(known: KnownTime, start: Int64s, end: Int64s) -> Int64s:
    return known.until(end) - known.until(start)


def _time_row(
    hour: datetime, topic: str | None, partition: int | None, state: str, lost_rack: str | None, lasted: int
) -> dict[str, Any]:
    return {
        "hour": hour,
        "topic": topic,
        "partition": partition,
        "state": state,
        "lost_rack": lost_rack,
        "seconds": lasted / MICROS,
    }


def _partition_rows(hour: datetime, spans: Spans, known: KnownTime) -> Rows:
    states = spans.rows.column("state")
    bad = pc.not_equal(states, OK).to_numpy(zero_copy_only=False) if len(spans.rows) else np.zeros(0, np.bool_)
    sums: dict[tuple[str, int, str], int] = {}
    rows = spans.rows.filter(pa.array(bad))
    lasted = _lasted(known, spans.start[bad], spans.end[bad])
    columns = (rows.column(name).to_pylist() for name in ("topic", "partition", "state"))
    for topic, partition, state, part in zip(*columns, lasted.tolist(), strict=True):
        sums[topic, partition, state] = sums.get((topic, partition, state), 0) + part
    for (topic, partition, state), total in sums.items():
        if total:
            yield "durability_time", _time_row(hour, topic, partition, state, None, total)


def _rack_rows(hour: datetime, spans: Spans, known: KnownTime) -> Rows:
    """Time in which the loss of one rack would not have been survived."""
    sums: dict[str, int] = {}
    lasted = _lasted(known, spans.start, spans.end)
    columns = (spans.rows.column(name).to_pylist() for name in ("lost_racks", "topic", "survived"))
    for racks, topic, survived, part in zip(*columns, lasted.tolist(), strict=True):
        if topic is None and survived is False and len(racks) == 1:
            sums[racks[0]] = sums.get(racks[0], 0) + part
    for rack, total in sums.items():
        if total:
            yield "durability_time", _time_row(hour, None, None, "not-survived", rack, total)


def _refusal_rows(hour: datetime, spans: Spans, known: KnownTime) -> Rows:
    """The spans of each topic in which partitions refused, as far as snapshots say so."""
    names = ("topic", "state", "replica_racks", "isr_racks")
    columns = (spans.rows.column(name).to_pylist() for name in names)
    found: list[tuple[str, int, int, frozenset[str]]] = []
    for topic, state, held, in_sync, start, end in zip(*columns, spans.start.tolist(), spans.end.tolist(), strict=True):
        if state == REFUSING:
            missing = frozenset(held) - frozenset(in_sync)
            found += [(topic, *span, missing) for span in _known_parts(known, start, end)]
    for topic, of_topic in groupby(sorted(found, key=lambda each: each[:3]), key=lambda each: each[0]):
        for since, until, partitions, missing in _joined([(start, end, racks) for _, start, end, racks in of_topic]):
            yield (
                "refusals",
                {
                    "hour": hour,
                    "topic": topic,
                    "since": time_of(since),
                    "until": time_of(until),
                    "partitions": partitions,
                    "racks_missing": sorted(missing),
                },
            )


def _known_parts(known: KnownTime, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a span that snapshots say something of."""
    for since, until in zip(known.times.tolist(), known.ends.tolist(), strict=False):
        if max(since, start) < min(until, end):
            yield max(since, start), min(until, end)


def _joined(
    spans: Sequence[tuple[int, int, frozenset[str]]],
) -> Iterator[tuple[int, int, int, frozenset[str]]]:
    """Spans of one topic that touch or overlap as one, with the most at a time and the racks of all. In order of time."""
    steps: dict[int, int] = {}
    racks: dict[int, set[str]] = {}
    for start, end, missing in spans:
        steps[start] = steps.get(start, 0) + 1
        steps[end] = steps.get(end, 0) - 1
        racks.setdefault(start, set()).update(missing)
    since, held, most, missing_racks = 0, 0, 0, set[str]()
    for at in sorted(steps):
        if not held:
            since, most, missing_racks = at, 0, set()
        held += steps[at]
        most = max(most, held)
        missing_racks |= racks.get(at, set())
        if not held:
            yield since, at, most, frozenset(missing_racks)
