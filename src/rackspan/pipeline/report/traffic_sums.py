"""Sums up the tables of hours for a report, batch by batch with Arrow, so that no table has to fit into memory.

Each function reads one table once. Bytes and money are plain sums; what is null is in no sum, and is counted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rackspan.advice.advice import Concern
from rackspan.pipeline.hours.work import HOUR, hour_of
from rackspan.pipeline.report.aggregates import ReadColumns, nulls_first
from rackspan.report.traffic import (
    ADVICE_MAX,
    BILLED_MAX,
    HOURS_MAX,
    AdvisedStep,
    Billed,
    BilledPart,
    PathFlow,
    RackFlow,
    TrafficReport,
)

LINK: Final = ("path", "source_rack", "destination_rack", "basis", "assumption")
BILLED: Final = ("topic", "group_id", "currency", "reason")
ADVICE: Final = (
    *("rank", "concern", "kind", "topic", "group_id", "reason", "bytes_a_month", "money_a_month", "currency"),
    *("command", "cost", "undo", "assumption"),
)


@dataclass(frozen=True, slots=True)
class HourTables:
    """The tables of hours that a report reads."""

    traffic: ReadColumns
    bill: ReadColumns
    advice: ReadColumns


@dataclass(slots=True)
class _Flows:
    """The bytes of one cluster by LINK, the hours that have rows, and the topics that are not complete."""

    links: Counter[tuple[str, str | None, str | None, str, str]] = field(default_factory=Counter)
    hours: set[datetime] = field(default_factory=set)
    incomplete: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _BillSum:
    """Sums of rows of the bill."""

    money: dict[str, float] = field(default_factory=dict)
    size_bytes: int = 0
    reasons: dict[str, int | None] = field(default_factory=dict)

    def add(self, other: "_BillSum") -> None:
        self.size_bytes += other.size_bytes
        for currency, money in other.money.items():
            self.money[currency] = self.money.get(currency, 0.0) + money
        for reason, size in other.reasons.items():
            before = self.reasons.get(reason, 0)
            self.reasons[reason] = None if size is None or before is None else before + size

    def part(self, name: str | None) -> BilledPart:
        return BilledPart(name, dict(sorted(self.money.items())), self.size_bytes, dict(sorted(self.reasons.items())))


@dataclass(slots=True)
class _Bill:
    """The bill of one cluster: of all, of each topic and of each group."""

    whole: _BillSum = field(default_factory=_BillSum)
    topics: dict[str, _BillSum] = field(default_factory=dict)
    groups: dict[str | None, _BillSum] = field(default_factory=dict)
    hours: set[datetime] = field(default_factory=set)


def first_hour(read_at: datetime) -> datetime:
    """The first hour whose bytes are shown, if the newest reading was taken at a time."""
    return _last_hour(read_at) - (HOURS_MAX - 1) * HOUR


def traffic_reports(tables: HourTables, read_at: Mapping[str, datetime]) -> dict[str, TrafficReport]:
    """The traffic of each cluster. `read_at` is when its newest reading was taken, in UTC."""
    flows = _flows(tables.traffic, read_at)
    bills = _bills(tables.bill, read_at)
    advice = _advice(tables.advice, read_at)
    return {
        cluster_id: TrafficReport(
            read_at=at,
            first_hour=first_hour(at),
            last_hour=_last_hour(at),
            hours=len(flows[cluster_id].hours),
            flows=_rack_flows(flows[cluster_id].links),
            paths=_path_flows(flows[cluster_id].links),
            topics_incomplete=tuple(sorted(flows[cluster_id].incomplete)),
            hours_billed=len(bills[cluster_id].hours),
            bill=bills[cluster_id].whole.part(None),
            by_topic=_billed(bills[cluster_id].topics),
            by_group=_billed(bills[cluster_id].groups),
            advice=tuple([step for step in advice[cluster_id] if step.concern is Concern.MONEY][:ADVICE_MAX]),
            advice_counts=Counter(step.concern for step in advice[cluster_id]),
        )
        for cluster_id, at in read_at.items()
    }


def _last_hour(read_at: datetime) -> datetime:
    """Bytes pass before a reading: one at the start of an hour ends the hour before."""
    return hour_of(read_at - timedelta(microseconds=1))


def _flows(read: ReadColumns, read_at: Mapping[str, datetime]) -> dict[str, _Flows]:
    found = {cluster_id: _Flows() for cluster_id in read_at}
    for cluster_id, rows in _shown(read, ("topic", *LINK, "bytes", "complete"), read_at, _within_hours):
        sums = found[cluster_id]
        sums.hours.update(pc.unique(rows["hour"]).to_pylist())
        sums.incomplete.update(pc.unique(rows.filter(pc.invert(rows["complete"]))["topic"]).to_pylist())
        for row in rows.group_by(list(LINK)).aggregate([("bytes", "sum")]).to_pylist():
            key = row["path"], row["source_rack"], row["destination_rack"], row["basis"], row["assumption"]
            sums.links[key] += row["bytes_sum"] or 0
    return found


def _bills(read: ReadColumns, read_at: Mapping[str, datetime]) -> dict[str, _Bill]:
    found = {cluster_id: _Bill() for cluster_id in read_at}
    counted = [("bytes", "sum"), ("money", "sum"), ("bytes", "count"), ([], "count_all")]
    for cluster_id, rows in _shown(read, (*BILLED, "bytes", "money"), read_at, _within_hours):
        bill = found[cluster_id]
        bill.hours.update(pc.unique(rows["hour"]).to_pylist())
        for row in rows.group_by(list(BILLED)).aggregate(counted).to_pylist():
            known = {} if row["money_sum"] is None else {row["currency"]: row["money_sum"]}
            unknown = row["bytes_count"] < row["count_all"]
            size = row["bytes_sum"] or 0
            reasons = {} if row["reason"] is None else {row["reason"]: None if unknown else size}
            for each in (
                bill.whole,
                bill.topics.setdefault(row["topic"], _BillSum()),
                bill.groups.setdefault(row["group_id"], _BillSum()),
            ):
                each.add(_BillSum(known, size, reasons))
    return found


def _advice(read: ReadColumns, read_at: Mapping[str, datetime]) -> dict[str, list[AdvisedStep]]:
    """The advice of the hour of the newest reading, in its order."""
    found: dict[str, list[AdvisedStep]] = {cluster_id: [] for cluster_id in read_at}
    for cluster_id, rows in _shown(read, ADVICE, read_at, _of_newest_hour):
        for row in rows.select(ADVICE).to_pylist():
            group = row.pop("group_id")
            found[cluster_id].append(AdvisedStep(**{**row, "concern": Concern(row["concern"]), "group": group}))
    return {cluster_id: sorted(steps, key=lambda step: step.rank) for cluster_id, steps in found.items()}


def _shown(
    read: ReadColumns,
    columns: Iterable[str],
    read_at: Mapping[str, datetime],
    chosen: Callable[[pa.ChunkedArray, datetime], Any],
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each cluster whose hours are chosen, some at a time and none empty."""
    for batch in read(("cluster_id", "hour", *columns)):
        rows = pa.Table.from_batches([batch])
        for cluster_id in pc.unique(rows["cluster_id"]).to_pylist():
            if cluster_id in read_at:
                mask = pc.and_(pc.equal(rows["cluster_id"], cluster_id), chosen(rows["hour"], read_at[cluster_id]))
                if len(mine := rows.filter(mask)):
                    yield cluster_id, mine


def _within_hours(hours: pa.ChunkedArray, read_at: datetime) -> Any:
    first, last = (pa.scalar(hour, hours.type) for hour in (first_hour(read_at), _last_hour(read_at)))
    return pc.and_(pc.greater_equal(hours, first), pc.less_equal(hours, last))


def _of_newest_hour(hours: pa.ChunkedArray, read_at: datetime) -> Any:
    return pc.equal(hours, pa.scalar(hour_of(read_at), hours.type))


def _rack_flows(links: Mapping[tuple[str, str | None, str | None, str, str], int]) -> tuple[RackFlow, ...]:
    """By source and destination; what is not known comes last."""
    found: dict[tuple[str | None, str | None], Counter[str]] = {}
    for (_, source, destination, basis, _), size in links.items():
        found.setdefault((source, destination), Counter())[basis] += size
    return tuple(
        RackFlow(*pair, dict(found[pair]))
        for pair in sorted(found, key=lambda pair: [(r is None, r or "") for r in pair])
    )


def _path_flows(links: Mapping[tuple[str, str | None, str | None, str, str], int]) -> tuple[PathFlow, ...]:
    """The paths with the most bytes across racks first."""
    found: dict[tuple[str, str], tuple[Counter[bool | None], set[str]]] = {}
    for (path, source, destination, basis, assumption), size in links.items():
        sums, assumptions = found.setdefault((path, basis), (Counter(), set()))
        sums[None if source is None or destination is None else source != destination] += size
        assumptions.add(assumption)
    flows = (
        PathFlow(path, basis, sums[True], sums[False], sums[None], tuple(sorted(assumptions)))
        for (path, basis), (sums, assumptions) in found.items()
    )
    return tuple(sorted(flows, key=lambda flow: (-flow.across, -flow.rack_unknown, flow.path, flow.basis)))


def _billed(sums: Mapping[Any, _BillSum]) -> Billed:
    """The most expensive first, then those with most bytes; what is of no group comes last."""

    def place(name: str | None) -> tuple[Any, ...]:
        each = sums[name]
        return name is None, -sum(each.money.values()), -each.size_bytes, nulls_first([name])

    ordered = sorted(sums, key=place)
    named = [name for name in ordered if name is not None]
    own = {*named[:BILLED_MAX], None}
    parts = tuple(sums[name].part(name) for name in ordered if name in own)
    rest = [sums[name] for name in ordered if name not in own]
    if not rest:
        return Billed(parts)
    others = _BillSum()
    for each in rest:
        others.add(each)
    return Billed(parts, others.part(None), len(rest))
