"""Rows of the hours of one cluster, from its readings: what passed between each two, divided into hours, and groups at the last of an hour.

Constraints: parts of a number of bytes add up to it; bytes over a gap are estimates that say so; what is not known is null and never 0.
Method: the functions of `traffic` and `clients` for each two readings in succession; parts by time, in whole numbers. Bound: two readings, and
the rows of the hours. Source: our own. Tests: tests/pipeline/hours/test_rows.py.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from rackspan.advice import advise
from rackspan.audit import RackPolicy
from rackspan.clients import ClientFinding, GroupReads, find_causes, measured_reads
from rackspan.model import ClusterSnapshot, RackId, TopicPartition
from rackspan.model.group import GroupDescription
from rackspan.pipeline.hours.stream_groups import StreamGroups
from rackspan.pipeline.hours.work import HOUR, hour_of
from rackspan.traffic import (
    Basis,
    ClusterReading,
    Interval,
    PriceFile,
    TrafficFlow,
    bill,
    consume_flows,
    read_bytes,
    reads_of,
)
from rackspan.traffic.flows import Link
from rackspan.traffic.logs import UNKNOWN_OFFSET
from rackspan.traffic.what_if import reading_at_home, reading_best_assigned

Rows: TypeAlias = Iterator[tuple[str, dict[str, Any]]]
"""A table's name and a row of it, without the keys of every row but the hour."""

OVER_A_GAP: Final = "divided evenly over a gap between readings"
"""Added to the assumption of what passed while no reading was taken."""

NOW: Final = "now"
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class Sum:
    """Bytes as far as they are known. `size_bytes` is None if no part is."""

    size_bytes: int | None = None
    complete: bool = True

    def add(self, size_bytes: int | None) -> None:
        if size_bytes is None:
            self.complete = False
        else:
            self.size_bytes = (self.size_bytes or 0) + size_bytes


@dataclass(slots=True)
class _Hour:
    """Sums of one hour so far, and its last reading."""

    links: dict[Link, Sum] = field(default_factory=dict)
    by_strategy: dict[tuple[str, str], tuple[Sum, Sum]] = field(default_factory=dict)
    """By group and strategy: all bytes, and those that cross racks."""
    lag_max: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    last: ClusterReading | None = None
    passed: Interval | None = None
    reads: Sequence[GroupReads] = ()
    findings: Sequence[ClientFinding] = ()


def hour_rows(
    readings: Iterable[ClusterReading],
    hours: Collection[datetime],
    prices: PriceFile | None = None,
    policy: RackPolicy = RackPolicy(),
) -> Rows:
    """The rows of some hours. `readings` are in order of time, those of the hours with one on either side."""
    made = {hour: _Hour() for hour in sorted(hours)}
    before: ClusterReading | None = None
    strategies, stream_groups = _Strategies(), StreamGroups()
    for after in readings:
        passed = None if before is None else Interval(before, after)
        if passed is not None:
            _add_bytes(made, passed, strategies, stream_groups)
        hour = made.get(hour_of(after.read_at))
        if hour is not None:
            _add_reading(hour, after, passed)
        before = after
        # What ended before this reading is complete, and not needed any more.
        for at in [at for at in made if at + HOUR <= after.read_at]:
            for name, row in _rows_of(made.pop(at), strategies, stream_groups, prices, policy):
                yield name, {"hour": at, **row}
    for at, open_hour in made.items():
        for name, row in _rows_of(open_hour, strategies, stream_groups, prices, policy):
            yield name, {"hour": at, **row}


def parts(size_bytes: int | None, start: datetime, end: datetime) -> Iterator[tuple[datetime, int | None]]:
    """The part of each hour of what passed from one time to another, by time. They add up to the whole."""
    whole = (end - start) // _MICROSECOND
    hour, at = hour_of(start), 0
    while hour < end:
        until = (min(end, hour + HOUR) - start) // _MICROSECOND
        if size_bytes is None:
            yield hour, None
        else:
            yield hour, size_bytes * until // whole - size_bytes * at // whole
        hour, at = hour + HOUR, until


class _Strategies:
    """What each group would read by each strategy; kept as long as it reads the same."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[GroupReads, tuple[RackId, ...], Mapping[str, GroupReads]]] = {}

    def of(self, reads: GroupReads, snapshot: ClusterSnapshot) -> Mapping[str, GroupReads]:
        key, racks = reads.group.group_id, sorted({broker.rack for broker in snapshot.brokers if broker.rack})
        known = self._known.get(key)
        if known is not None and known[0].members == reads.members and known[1] == tuple(racks):
            return known[2]
        assigned = reading_best_assigned(reads)
        found = {
            NOW: reads,
            "follower-fetch": reading_at_home(reads, snapshot),
            "assignment": assigned,
            "both": reading_at_home(assigned, snapshot),
        }
        self._known[key] = reads, tuple(racks), found
        return found


def _add_bytes(
    made: Mapping[datetime, _Hour], passed: Interval, strategies: _Strategies, stream_groups: StreamGroups
) -> None:
    """Add what passed between two readings to the hours."""
    start, end = passed.before.read_at, passed.after.read_at
    for flow in passed.flows:
        link = _over_gap(flow.link) if passed.is_gap else flow.link
        for at, part in parts(flow.size_bytes, start, end):
            if at in made and part != 0:
                made[at].links.setdefault(link, Sum()).add(part)
    for reads in passed.reads:
        then_by: dict[str, GroupReads | None] = {
            **strategies.of(reads, passed.after.snapshot),
            **stream_groups.reading_by_strategy(reads, passed.after),
        }
        for strategy, then in then_by.items():
            for size_bytes, crosses in _read_bytes(passed, then):
                for at, part in parts(size_bytes, start, end):
                    if at in made:
                        key = reads.group.group_id, strategy
                        total, across = made[at].by_strategy.setdefault(key, (Sum(), Sum()))
                        total.add(part)
                        if crosses is not False:
                            across.add(part if crosses else None)


def _read_bytes(passed: Interval, reads: GroupReads | None) -> Iterator[tuple[int | None, bool | None]]:
    """Bytes that a group reads, and whether they cross racks; None if who reads what is not known."""
    if reads is None:
        yield None, None
        return
    for flow in consume_flows(passed.after.snapshot, passed.volumes, [reads], passed.progress):
        yield flow.size_bytes, flow.link.crosses


def _over_gap(link: Link) -> Link:
    return replace(link, basis=Basis.ESTIMATED, assumption=f"{link.assumption}; {OVER_A_GAP}")


def _add_reading(hour: _Hour, reading: ClusterReading, passed: Interval | None) -> None:
    """Let a reading of the hour be its last one."""
    hour.last, hour.passed = reading, passed
    ends = _ends(reading)
    for group_id, committed in reading.logs.committed.items():
        for partition, offset in committed.items():
            lag = _lag(offset, ends.get(partition, (None, None)))
            if lag is not None:
                key = group_id, partition
                hour.lag_max[key] = max(lag, hour.lag_max.get(key, lag))
    hour.reads = reads_of(reading.snapshot, reading.groups, reading.selectors) if passed is None else passed.reads
    counted = read_bytes({} if passed is None else passed.counted)
    hour.findings = [
        finding
        for reads in hour.reads
        for finding in find_causes(reads, reading.snapshot, measured_reads(reads, reading.groups, counted))
    ]


def _rows_of(
    hour: _Hour, strategies: _Strategies, stream_groups: StreamGroups, prices: PriceFile | None, policy: RackPolicy
) -> Rows:
    yield from (("traffic", row) for row in _traffic_rows(hour))
    if prices is not None:
        yield from _bill_rows(hour, prices)
    if hour.last is None:
        return
    yield from _group_rows(hour, hour.last)
    yield from (("advice", row) for row in _advice_rows(hour.last, hour.passed, policy, prices))
    for reads in hour.reads:
        for strategy, then in strategies.of(reads, hour.last.snapshot).items():
            yield "consumer_groups", _strategy_row(hour, hour.last, reads, strategy, then)
    for row in stream_groups.rows(hour.last):
        yield "stream_groups", {**row, **_bytes_by_tasks(hour, row["group_id"], row["strategy"])}
    yield from (("client_findings", row) for row in _client_finding_rows(hour, hour.last))


def _traffic_rows(hour: _Hour) -> Iterator[dict[str, Any]]:
    for link, total in hour.links.items():
        yield {
            "path": str(link.path),
            "topic": link.topic,
            "group_id": link.group,
            "source_rack": link.source_rack,
            "destination_rack": link.destination_rack,
            "basis": str(link.basis),
            "assumption": link.assumption,
            "bytes": total.size_bytes,
            "complete": total.complete,
        }


def _client_finding_rows(hour: _Hour, last: ClusterReading) -> Iterator[dict[str, Any]]:
    for finding in hour.findings:
        yield {
            "group_id": finding.group,
            "cause": finding.cause,
            "read_at": last.read_at,
            "members": list(finding.members),
            "topics": list(finding.topics),
            "partitions": finding.partitions,
            "reason": finding.reason,
            "remedy": finding.remedy,
        }


def _advice_rows(
    last: ClusterReading, passed: Interval | None, policy: RackPolicy, prices: PriceFile | None
) -> Iterator[dict[str, Any]]:
    for rank, advice in enumerate(advise(last.snapshot, policy, passed, prices), 1):
        yield {
            "rank": rank,
            "read_at": last.read_at,
            "concern": str(advice.concern),
            "kind": advice.kind,
            "topic": advice.topic,
            "group_id": advice.group,
            "reason": advice.reason,
            "bytes_a_month": advice.bytes_a_month,
            "money_a_month": advice.money_a_month,
            "currency": None if prices is None or advice.money_a_month is None else prices.currency,
            "command": advice.command,
            "cost": advice.cost,
            "undo": advice.undo,
            "assumption": advice.assumption,
        }


def _bill_rows(hour: _Hour, prices: PriceFile) -> Rows:
    flows = [TrafficFlow(link, total.size_bytes) for link, total in hour.links.items() if total.size_bytes is not None]
    flows += [TrafficFlow(link, None) for link, total in hour.links.items() if not total.complete]
    billed = bill(flows, prices)
    for row in (*billed.rows, *billed.unpriced):
        yield (
            "bill",
            {
                "path": str(row.path),
                "topic": row.topic,
                "group_id": row.group,
                "basis": str(row.basis),
                "bytes": row.size_bytes,
                "money": None if row.money is None else float(row.money),
                "currency": billed.currency,
                "reason": row.reason,
            },
        )


def _ends(reading: ClusterReading) -> dict[TopicPartition, tuple[int | None, int | None]]:
    """The earliest offset and the end of each partition; None if not known."""
    logs, rows = reading.logs, reading.snapshot.partitions
    names = [str(topic.name) for topic in reading.snapshot.topics]
    starts = [UNKNOWN_OFFSET] * len(rows) if logs.start_offset is None else logs.start_offset.tolist()
    columns = rows.topic.tolist(), rows.partition.tolist(), starts, logs.end_offset.tolist()
    return {
        TopicPartition(names[topic], partition): (
            None if start == UNKNOWN_OFFSET else start,
            None if end == UNKNOWN_OFFSET else end,
        )
        for topic, partition, start, end in zip(*columns, strict=True)
    }


def _lag(committed: int, ends: tuple[int | None, int | None]) -> int | None:
    start, end = ends
    return None if end is None or committed > end else end - max(committed, start or 0)


def _group_rows(hour: _Hour, last: ClusterReading) -> Rows:
    ends = _ends(last)
    described = {group.group_id: group for group in last.groups}
    lags: dict[str, list[int | None]] = {}
    for group_id, committed in last.logs.committed.items():
        for partition, offset in committed.items():
            start, end = ends.get(partition, (None, None))
            lag = _lag(offset, (start, end))
            lags.setdefault(group_id, []).append(lag)
            yield (
                "group_lag",
                {
                    "group_id": group_id,
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "read_at": last.read_at,
                    "committed_offset": offset,
                    "start_offset": start,
                    "end_offset": end,
                    "lag": lag,
                    "expired": None if start is None else max(0, start - offset),
                    "lag_max": hour.lag_max.get((group_id, partition)),
                },
            )
    for group_id, group in described.items():
        yield "groups", _group_row(group, last, lags.get(group_id, []))


def _group_row(group: GroupDescription, last: ClusterReading, lags: Sequence[int | None]) -> dict[str, Any]:
    committed = last.logs.committed.get(group.group_id, {})
    read = {partition for member in group.members for partition in member.partitions}
    known = [lag for lag in lags if lag is not None]
    return {
        "group_id": group.group_id,
        "read_at": last.read_at,
        "kind": str(group.kind),
        "state": group.state,
        "protocol": group.protocol,
        "members": len(group.members),
        "members_without_rack": sum(member.rack is None for member in group.members),
        "member_racks": sorted({str(member.rack) for member in group.members if member.rack is not None}),
        "topics": sorted({partition.topic for partition in (*read, *committed)}),
        "partitions": len(read),
        "lag": sum(known) if lags and len(known) == len(lags) else None,
    }


def _strategy_row(
    hour: _Hour, last: ClusterReading, reads: GroupReads, strategy: str, then: GroupReads
) -> dict[str, Any]:
    total, bytes_across = _bytes_by(hour, reads.group.group_id, strategy)
    known = strategy == NOW or all(member.rack is not None for member in reads.members)
    return {
        "group_id": reads.group.group_id,
        "strategy": strategy,
        "read_at": last.read_at,
        "kind": str(reads.group.kind),
        "members": len(reads.members),
        "partitions": sum(len(member.reads) for member in reads.members),
        "partitions_across": then.across if known else None,
        "bytes": total,
        "bytes_across": bytes_across,
    }


def _bytes_by_tasks(hour: _Hour, group_id: str, strategy: str) -> dict[str, int | None]:
    total, now = _bytes_by(hour, group_id, NOW)
    return {"bytes": total, "bytes_across_now": now, "bytes_across_best": _bytes_by(hour, group_id, strategy)[1]}


def _bytes_by(hour: _Hour, group_id: str, strategy: str) -> tuple[int | None, int | None]:
    """All bytes of a group within the hour as far as they are known, and those that cross racks; None if not known."""
    total, across = hour.by_strategy.get((group_id, strategy), (Sum(), Sum()))
    nothing = total.size_bytes is not None and across.size_bytes is None and across.complete
    return total.size_bytes, 0 if nothing else across.size_bytes if across.complete else None
