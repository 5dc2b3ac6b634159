"""Sums up the tables for a report, batch by batch with Arrow, so that no table has to fit into memory, and without Spark.

Times are microseconds since 1970 UTC. Each function reads one table once, or twice, and returns what is left per cluster.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

ReadColumns: TypeAlias = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""The rows of a table, of these columns alone, in any order."""

GROUP: Final = ("taken_at", "change", "cause", "cause_broker", "state_before", "state_after")
EXAMPLE: Final = ("topic", "partition", "broker", "before", "after")
FOUND: Final = ("topic", "partition", "reason", "remedy")

StateCounter: TypeAlias = Counter[str]
"""Partitions by state."""


@dataclass(frozen=True, slots=True)
class DurabilitySums:
    """The durability of one cluster: the states of each snapshot, and those of each topic of the latest one."""

    points: dict[int, StateCounter] = field(default_factory=lambda: defaultdict(Counter))
    topics: dict[str, StateCounter] = field(default_factory=lambda: defaultdict(Counter))


def durability_sums(read: ReadColumns, latest: Mapping[str, int]) -> dict[str, DurabilitySums]:
    """Partitions by state, of each snapshot and, for the snapshots `latest`, of each topic that has any at risk."""
    sums = {cluster: DurabilitySums() for cluster in latest}
    for batch in read(("cluster_id", "taken_at", "topic", "state")):
        rows = _of_clusters(batch, latest)
        for cluster, at, state, count in _counted(rows, ("cluster_id", "taken_at", "state")):
            sums[cluster].points[at][state] += count
        newest = pa.array(list(latest.values()), pa.int64())
        recent = rows.filter(pc.is_in(rows["taken_at"], newest))
        for cluster, at, topic, state, count in _counted(recent, ("cluster_id", "taken_at", "topic", "state")):
            if at == latest[cluster]:
                sums[cluster].topics[topic][state] += count
    return sums


@dataclass(slots=True)
class FindingSum:
    """The findings of one constraint and severity: how many the latest snapshot has, and the first of the last ones."""

    findings: int = 0
    topics: set[str] = field(default_factory=set)
    snapshots: set[int] = field(default_factory=set)
    last_found: int = -(2**63)
    example: tuple[Any, ...] = ()


def finding_sums(read: ReadColumns, latest: Mapping[str, int]) -> dict[str, dict[tuple[str, str], FindingSum]]:
    """Findings by constraint and severity."""
    sums: dict[str, dict[tuple[str, str], FindingSum]] = {cluster: defaultdict(FindingSum) for cluster in latest}
    group = ("cluster_id", "constraint", "severity", "taken_at")
    for batch in read((*group, *FOUND)):
        rows = _of_clusters(batch, latest)
        for cluster, constraint, severity, at, count in _counted(rows, group):
            found = sums[cluster][constraint, severity]
            found.snapshots.add(at)
            found.findings += count if at == latest[cluster] else 0
        now = rows.filter(pc.is_in(rows["taken_at"], pa.array(list(latest.values()), pa.int64())))
        for cluster, constraint, severity, at, topic, _ in _counted(now, (*group, "topic")):
            if at == latest[cluster] and topic is not None:
                sums[cluster][constraint, severity].topics.add(topic)
        for row in _firsts(rows, ("cluster_id", "constraint", "severity"), FOUND):
            found = sums[row["cluster_id"]][row["constraint"], row["severity"]]
            example = tuple(row[name] for name in FOUND)
            if row["taken_at"] > found.last_found:
                found.last_found, found.example = row["taken_at"], example
            elif row["taken_at"] == found.last_found:
                found.example = min(found.example, example, key=nulls_first)
    return sums


def whole_cluster_losses(read: ReadColumns, latest: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """The rows of outage_impact that stand for the whole cluster: one for each snapshot and loss."""
    columns = ("lost_racks", "survived", "offline", "under_min_isr", "under_min_racks")
    found: dict[str, list[dict[str, Any]]] = {cluster: [] for cluster in latest}
    for batch in read(("cluster_id", "taken_at", "topic", *columns)):
        whole = _of_clusters(batch.filter(pc.is_null(batch.column("topic"))), latest)
        for row in whole.to_pylist():
            found[row["cluster_id"]].append(row)
    return found


@dataclass(slots=True)
class DriftSum:
    """The changes of one kind at one time: how many, of how many topics, and the first of them."""

    changes: int
    topics: set[str] = field(default_factory=set)
    example: tuple[Any, ...] = ()


def drift_sums(
    read: ReadColumns, clusters: Iterable[str], most: int
) -> dict[str, tuple[list[tuple[tuple[Any, ...], DriftSum]], int]]:
    """The latest groups of changes of each cluster, at most `most`, in order, and the number of all its groups.

    Reads the table twice: groups are counted first, and only those that are shown are looked at more closely.
    """
    known = set(clusters)
    counts: dict[str, Counter[tuple[Any, ...]]] = {cluster: Counter() for cluster in known}
    for rows in _drift_rows(read, known, ()):
        for cluster, *group, count in _counted(rows, ("cluster_id", *GROUP)):
            counts[cluster][tuple(group)] += count
    chosen = {
        cluster: {
            group: DriftSum(groups[group])
            for group in sorted(groups, key=lambda group_key: _need(group_key, groups[group_key]))[:most]
        }
        for cluster, groups in counts.items()
    }
    times = pa.array(sorted({group[0] for groups in chosen.values() for group in groups}), pa.int64())
    for rows in _drift_rows(read, known, EXAMPLE):
        for row in rows.filter(pc.is_in(rows["taken_at"], times)).to_pylist():
            drift = chosen[row["cluster_id"]].get(tuple(row[name] for name in GROUP))
            if drift is None:
                continue
            example = tuple(row[name] for name in EXAMPLE)
            drift.example = min(drift.example or example, example, key=nulls_first)
            if row["topic"] is not None:
                drift.topics.add(row["topic"])
    return {cluster: (list(groups.items()), len(counts[cluster])) for cluster, groups in chosen.items()}


def nulls_first(values: Iterable[Any]) -> list[tuple[bool, Any]]:
    """A sort key of values of which some are None."""
    return [(value is not None, value) for value in values]


def _drift_rows(read: ReadColumns, clusters: set[str], more: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of drift; states stand beside, for changes of safety alone."""
    named = ("topic", "partition", "broker") if more else ()
    for batch in read(("cluster_id", "taken_at", "change", "cause", "cause_broker", "before", "after", *named)):
        rows = _of_clusters(batch, clusters)
        safety = pc.starts_with(rows["change"], "safety-")
        for side in ("before", "after"):
            rows = rows.append_column(f"state_{side}", pc.if_else(safety, rows[side], None))
        yield rows


def _need(group: tuple[Any, ...], changes: int) -> tuple[Any, ...]:
    """The latest first, then lost safety, gained safety, and many changes before few."""
    at, change, *others = group
    rank = 0 if change == "safety-lost" else 1 if change.startswith("safety-") else 2
    return -at, rank, -changes, change, nulls_first(others)


def _of_clusters(batch: pa.RecordBatch, clusters: Iterable[str]) -> pa.Table:
    """The rows of some clusters, times as microseconds."""
    rows = pa.Table.from_batches([batch])
    rows = rows.filter(pc.is_in(rows["cluster_id"], pa.array(sorted(clusters), pa.string())))
    place = rows.column_names.index("taken_at")
    return rows.set_column(place, "taken_at", rows["taken_at"].cast(pa.int64()))


def _counted(rows: pa.Table, by: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The distinct values of some columns, each with the number of its rows."""
    groups = rows.select(by).group_by(list(by)).aggregate([([], "count_all")])
    return zip(*(groups[name].to_pylist() for name in (*by, "count_all")), strict=True)


def _firsts(rows: pa.Table, group: Sequence[str], order: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The first of the latest rows of each group, by the columns `order`, nulls first."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    last = rows.group_by(list(group)).aggregate([("taken_at", "max")])
    limits = {tuple(row[name] for name in group): row["taken_at_max"] for row in last.to_pylist()}
    times = pa.array(sorted(set(limits.values())), pa.int64())
    for row in rows.filter(pc.is_in(rows["taken_at"], times)).to_pylist():
        key = tuple(row[name] for name in group)
        if row["taken_at"] != limits[key]:
            continue
        if key not in best or nulls_first(row[name] for name in order) < nulls_first(best[key][name] for name in order):
            best[key] = row
    yield from best.values()
