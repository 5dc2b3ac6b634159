"""Summarizes the tables for a report: Spark groups, counts and adds up time; only what a page shows is collected.

States and findings are read from the tables; the losses are computed from the latest snapshot of each cluster by the same
`outage` that the CLI calls.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, Row

from rackspan import __version__
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.findings import Severity
from rackspan.audit.judge import outage
from rackspan.audit.policy import RackPolicy
from rackspan.errors import InvalidSnapshot
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.pipeline.report import drift_frames, frames
from rackspan.pipeline.report.data import (
    AT_RISK,
    DRIFT_MAX,
    POINTS_MAX,
    TOPICS_MAX,
    ClusterReport,
    DriftGroup,
    DurabilityState,
    FindingGroup,
    History,
    HistoryPoint,
    LossHistory,
    ReportData,
    StateCounts,
    StateTime,
)
from rackspan.pipeline.report.topic_map import harmed_partitions, rack_members, topic_map

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a warehouse that a report reads, each with its own grain."""

    durability: DataFrame
    findings: DataFrame
    impact: DataFrame
    drift: DataFrame


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """The summary of one cluster that Spark returned."""

    history: History
    topics_at_risk: Mapping[str, StateCounts]
    findings: tuple[FindingGroup, ...]
    loss_history: tuple[LossHistory, ...]
    drift: tuple[DriftGroup, ...]
    drift_groups: int


def summarize(
    tables: Tables,
    latest: Mapping[str, ClusterSnapshot],
    policy: RackPolicy,
    *,
    topics_most: int = TOPICS_MAX,
    points_most: int = POINTS_MAX,
) -> ReportData:
    """The report on every cluster of `latest`, which maps the tables' cluster_id to its latest snapshot.

    For each cluster Spark returns at most `topics_most` topics, `points_most` points, DRIFT_MAX groups of changes, a group a
    constraint, a row a rack and one row of numbers.
    Errors: InvalidSnapshot for a snapshot without a time; UsageError where the policy refuses a cluster.
    """
    if not latest:
        return ReportData((), __version__)
    at = {cluster_id: _micros(cluster_id, snapshot) for cluster_id, snapshot in latest.items()}
    collected = collect(tables, at, topics_most, points_most)
    clusters = (
        cluster_report(cluster_id, snapshot, policy, collected[cluster_id], topics_most)
        for cluster_id, snapshot in latest.items()
    )
    return ReportData(tuple(clusters), __version__)


def cluster_report(
    cluster_id: str, snapshot: ClusterSnapshot, policy: RackPolicy, collected: ClusterSummary, topics_most: int
) -> ClusterReport:
    """One cluster: the losses of its latest snapshot, and the summary of its tables."""
    now, losses = outage(snapshot, policy)
    partition_batch = snapshot_batch(snapshot, policy)
    return ClusterReport(
        cluster_id=cluster_id,
        taken_at=snapshot.taken_at or collected.history.last_taken_at,
        topics=len(snapshot.topics),
        partitions=len(snapshot.partitions),
        racks=rack_members(partition_batch.members),
        rackless_brokers=tuple(int(broker.id) for broker in snapshot.brokers if broker.rack is None),
        now=now,
        losses=tuple(losses),
        harmed=harmed_partitions(partition_batch, losses),
        topic_map=topic_map(snapshot, partition_batch, losses, collected.topics_at_risk, topics_most),
        history=collected.history,
        findings=collected.findings,
        partial=snapshot.partial,
        loss_history=collected.loss_history,
        drift=collected.drift,
        drift_groups=collected.drift_groups,
    )


def collect(tables: Tables, at: Mapping[str, int], topics_most: int, points_most: int) -> dict[str, ClusterSummary]:
    """Run the frames. `at` is when the latest snapshot of each cluster was taken, in microseconds since 1970 UTC."""
    durability = tables.durability
    latest = durability.sparkSession.createDataFrame(list(at.items()), f"cluster_id string, {frames.AT} long")
    points = frames.points(durability, latest).cache()
    try:
        drawn = _by_cluster(frames.drawn_points(points, points_most))
        numbers = {row.cluster_id: row for row in frames.histories(frames.lasting(points)).collect()}
    finally:
        points.unpersist()
    topics = _by_cluster(frames.topics_at_risk(durability, latest, topics_most))
    groups = _by_cluster(frames.finding_groups(tables.findings, latest))
    losses = _by_cluster(drift_frames.loss_histories(tables.impact, latest))
    drift = _by_cluster(drift_frames.drift_groups(tables.drift, latest, DRIFT_MAX))
    return {
        cluster_id: ClusterSummary(
            history=_history(numbers[cluster_id], drawn[cluster_id]),
            topics_at_risk={row.topic: _counts(row) for row in topics[cluster_id]},
            findings=_findings(groups[cluster_id]),
            loss_history=_loss_history(losses[cluster_id]),
            drift=tuple(map(_drift_group, sorted(drift[cluster_id], key=lambda row: row["rank"]))),
            drift_groups=drift[cluster_id][0].groups if drift[cluster_id] else 0,
        )
        for cluster_id in at
    }


def _by_cluster(frame: DataFrame) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in frame.collect():
        rows[row.cluster_id].append(row)
    return rows


def _history(numbers: Row, drawn: Iterable[Row]) -> History:
    return History(
        snapshots=numbers.snapshots,
        first_taken_at=_timestamp(numbers.first),
        last_taken_at=_timestamp(numbers["last"]),
        points=tuple(HistoryPoint(_timestamp(row[frames.AT]), _counts(row)) for row in sorted(drawn, key=_at)),
        states=tuple(_state_time(numbers, state) for state in AT_RISK if numbers[f"{state.field}_most"]),
        seconds_at_risk=numbers.seconds_at_risk,
        longest_gap_seconds=numbers.longest_gap_seconds,
    )


def _state_time(numbers: Row, state: DurabilityState) -> StateTime:
    return StateTime(
        state=state,
        most=numbers[f"{state.field}_most"],
        most_at=_timestamp(numbers[f"{state.field}_most_at"]),
        seconds=numbers[f"{state.field}_seconds"],
    )


def _findings(rows: Iterable[Row]) -> tuple[FindingGroup, ...]:
    """Current findings first, violations before warnings, frequent before rare."""
    groups = (
        FindingGroup(
            constraint=row.constraint,
            severity=Severity(row.severity),
            findings=row.findings,
            topics=row.topics,
            snapshots=row.snapshots,
            last_found_at=_timestamp(row.last_found),
            topic=row.topic,
            partition=row.partition,
            reason=row.reason,
            remedy=row.remedy,
        )
        for row in rows
    )
    return tuple(sorted(groups, key=_urgency))


def _loss_history(rows: Iterable[Row]) -> tuple[LossHistory, ...]:
    """The racks whose loss was not survived for longest come first."""
    losses = (LossHistory(**_without(row, "cluster_id") | {"last_at": _timestamp_or_none(row.last_at)}) for row in rows)
    return tuple(sorted(losses, key=lambda one: (-one.seconds_not_survived, -one.not_survived, one.rack)))


def _drift_group(row: Row) -> DriftGroup:
    fields = _without(row, "cluster_id", frames.AT, "rank", "groups")
    return DriftGroup(taken_at=_timestamp(row[frames.AT]), **fields)


def _without(row: Row, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.asDict().items() if name not in names}


def _urgency(group: FindingGroup) -> tuple[bool, bool, int, str]:
    return not group.findings, group.severity is Severity.WARNING, -group.findings, group.constraint


def _counts(row: Row) -> StateCounts:
    return StateCounts(**{state.field: row[state.field] for state in DurabilityState})


def _at(row: Row) -> int:
    return int(row[frames.AT])


def _timestamp(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _timestamp_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else _timestamp(micros)


def _micros(cluster_id: str, snapshot: ClusterSnapshot) -> int:
    if snapshot.taken_at is None:
        raise InvalidSnapshot(
            f"cluster {cluster_id!r}: its latest snapshot has no taken_at; collect it again with rackspan pipeline collect"
        )
    return (snapshot.taken_at - EPOCH) // timedelta(microseconds=1)
