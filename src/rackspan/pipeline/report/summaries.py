"""Summarizes the tables for a report: each table is read batch by batch, and only what a page shows is kept.

States and findings are read from the tables; the losses are computed from the latest snapshot of each cluster by the same
`outage` that the CLI calls.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from rackspan import __version__
from rackspan.audit import ClusterPolicies, RackPolicy, Severity
from rackspan.errors import InvalidSnapshot
from rackspan.model import ClusterSnapshot, RackId
from rackspan.pipeline.changes.known_time import known_time, micros, time_of
from rackspan.pipeline.report import aggregates
from rackspan.pipeline.report.aggregates import FOUND, DriftSum, FindingSum, ReadColumns, StateCounter
from rackspan.report.data import (
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
from rackspan.report.from_snapshot import present

MICROS: Final = 1_000_000

KnownUntil: TypeAlias = Mapping[int, int]
"""Until when each snapshot of a cluster says something, by when it was taken, in microseconds since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a warehouse that a report reads."""

    durability: ReadColumns
    findings: ReadColumns
    impact: ReadColumns
    drift: ReadColumns
    known_durability: Mapping[str, KnownUntil]
    """By cluster, of the snapshots that have their rows of durability."""
    known_impact: Mapping[str, KnownUntil]


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """The summary of one cluster's rows."""

    history: History
    topics_at_risk: Mapping[str, StateCounts]
    findings: tuple[FindingGroup, ...]
    loss_history: tuple[LossHistory, ...]
    drift: tuple[DriftGroup, ...]
    drift_groups: int


def summarize(
    tables: Tables,
    latest: Mapping[str, ClusterSnapshot],
    policies: ClusterPolicies,
    *,
    topics_most: int = TOPICS_MAX,
    points_most: int = POINTS_MAX,
) -> ReportData:
    """The report on every cluster of `latest`, which maps the tables' cluster_id to its latest snapshot.

    Of each cluster at most `topics_most` topics, `points_most` points and DRIFT_MAX groups of changes are kept.
    Errors: InvalidSnapshot for a snapshot without a time; UsageError where a policy refuses a cluster.
    """
    if not latest:
        return ReportData((), __version__)
    at = {cluster_id: _micros(cluster_id, snapshot) for cluster_id, snapshot in latest.items()}
    collected = collect(tables, at, topics_most, points_most)
    clusters = (
        cluster_report(cluster_id, snapshot, policies.of_cluster(cluster_id), collected[cluster_id], topics_most)
        for cluster_id, snapshot in latest.items()
    )
    return ReportData(tuple(clusters), __version__)


def cluster_report(
    cluster_id: str, snapshot: ClusterSnapshot, policy: RackPolicy, collected: ClusterSummary, topics_most: int
) -> ClusterReport:
    """One cluster: the losses of its latest snapshot, and the summary of its tables."""
    return replace(
        present(snapshot, policy, collected.topics_at_risk, topics_most),
        cluster_id=cluster_id,
        states=collected.history.points[-1].counts,
        history=collected.history,
        findings=collected.findings,
        loss_history=collected.loss_history,
        drift=collected.drift,
        drift_groups=collected.drift_groups,
    )


def collect(tables: Tables, at: Mapping[str, int], topics_most: int, points_most: int) -> dict[str, ClusterSummary]:
    """Read the tables. `at` is when the latest snapshot of each cluster was taken, in microseconds since 1970 UTC."""
    durability = aggregates.durability_sums(tables.durability, at)
    for cluster_id, sums in durability.items():
        # A snapshot without partitions has no rows.
        for taken_at in (*tables.known_durability.get(cluster_id, ()), at[cluster_id]):
            if taken_at <= at[cluster_id]:
                sums.points.setdefault(taken_at, Counter())
    findings = aggregates.finding_sums(tables.findings, at)
    losses = aggregates.whole_cluster_losses(tables.impact, at)
    drift = aggregates.drift_sums(tables.drift, at, DRIFT_MAX)
    return {
        cluster_id: ClusterSummary(
            history=_history(durability[cluster_id].points, tables.known_durability.get(cluster_id, {}), points_most),
            topics_at_risk=_topics_at_risk(durability[cluster_id].topics, topics_most),
            findings=_findings(findings[cluster_id], sorted(durability[cluster_id].points)),
            loss_history=_loss_history(losses[cluster_id], tables.known_impact.get(cluster_id, {})),
            drift=tuple(_drift_group(group, drift_sum) for group, drift_sum in drift[cluster_id][0]),
            drift_groups=drift[cluster_id][1],
        )
        for cluster_id in at
    }


def _history(points: Mapping[int, StateCounter], known: KnownUntil, most: int) -> History:
    """The history in numbers, and at most `most` of its points."""
    counted = [(at, _counts(points[at])) for at in sorted(points)]
    times = [at for at, _ in counted]
    seconds = _lasting(times, known)
    return History(
        snapshots=len(counted),
        first_taken_at=time_of(counted[0][0]),
        last_taken_at=time_of(counted[-1][0]),
        points=tuple(HistoryPoint(time_of(at), counts) for at, counts in _drawn(counted, most)),
        states=tuple(
            _state_time(state, counted, seconds) for state in AT_RISK if any(counts.of(state) for _, counts in counted)
        ),
        seconds_at_risk=sum(
            lasts for (_, counts), lasts in zip(counted, seconds, strict=True) if any(map(counts.of, AT_RISK))
        ),
        longest_gap_seconds=max(_apart(times), default=0.0),
        seconds_unknown=max(0.0, sum(_apart(times)) - sum(seconds)),
    )


def _lasting(times: Sequence[int], known: KnownUntil) -> list[float]:
    """The seconds until the next time, 0 for the last; before a gap only those of which a snapshot says anything."""
    of_cluster = known_time(np.array(times, np.int64), np.array([known.get(at, at) for at in times], np.int64))
    return [*(of_cluster.lasted / MICROS).tolist(), 0.0]


def _apart(times: Sequence[int]) -> list[float]:
    return [(after - before) / MICROS for before, after in pairwise(times)]


def _drawn(counted: Sequence[tuple[int, StateCounts]], most: int) -> list[tuple[int, StateCounts]]:
    """The worst point of each of `most` − 1 stretches with equally many snapshots, and the last point."""
    if len(counted) <= most:
        return list(counted)
    *others, last = counted
    worst: dict[int, tuple[int, StateCounts]] = {}
    for row, point in enumerate(others):
        stretch = row * (most - 1) // (len(counted) - 1)
        if stretch not in worst or _badness(point[1]) > _badness(worst[stretch][1]):
            worst[stretch] = point
    return [*(worst[stretch] for stretch in sorted(worst)), last]


def _badness(counts: StateCounts) -> list[int]:
    return [counts.of(state) for state in AT_RISK]


def _state_time(
    state: DurabilityState, counted: Sequence[tuple[int, StateCounts]], seconds: Sequence[float]
) -> StateTime:
    most_at, most = max(counted, key=lambda point: (point[1].of(state), -point[0]))
    lasted = sum(lasts for (_, counts), lasts in zip(counted, seconds, strict=True) if counts.of(state))
    return StateTime(state, most.of(state), time_of(most_at), lasted)


def _topics_at_risk(topics: Mapping[str, StateCounter], most: int) -> dict[str, StateCounts]:
    """Topics with partitions that are not ok, the worst first."""
    counted = {topic: counts for topic, states in topics.items() if any(map((counts := _counts(states)).of, AT_RISK))}

    def urgency(topic: str) -> tuple[int, int, str]:
        badness = _badness(counted[topic])
        return next(rank for rank, count in enumerate(badness) if count), -sum(badness), topic

    return {topic: counted[topic] for topic in sorted(counted, key=urgency)[:most]}


def _findings(sums: Mapping[tuple[str, str], FindingSum], times: Sequence[int]) -> tuple[FindingGroup, ...]:
    """Current findings first, violations before warnings, frequent before rare. `times`: of all snapshots, in order."""
    groups = (
        FindingGroup(
            constraint=constraint,
            severity=Severity(severity),
            findings=found.findings,
            topics=len(found.topics),
            snapshots=len(found.snapshots),
            last_found_at=time_of(found.last_found),
            since=time_of(since) if (since := _since(found.snapshots, times)) is not None else None,
            **dict(zip(FOUND, found.example, strict=True)),
        )
        for (constraint, severity), found in sums.items()
    )
    return tuple(sorted(groups, key=_urgency))


def _since(having: Set[int], times: Sequence[int]) -> int | None:
    """The first of the snapshots that had a finding without a break up to the latest; None if the latest has it not."""
    since = None
    for at in reversed(times):
        if at not in having:
            break
        since = at
    return since


def _loss_history(rows: Iterable[Mapping[str, Any]], known: KnownUntil) -> tuple[LossHistory, ...]:
    """The racks whose loss was not survived for longest come first."""
    rows = list(rows)
    # Every snapshot has one row for the loss of no rack; these give the duration of each snapshot.
    times = sorted({row["taken_at"] for row in rows if not row["lost_racks"]})
    seconds = dict(zip(times, _lasting(times, known), strict=True)) if times else {}
    by_rack: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if len(row["lost_racks"]) == 1:
            by_rack.setdefault(row["lost_racks"][0], []).append(row)
    losses = (_loss_of_rack(rack, of_rack, seconds) for rack, of_rack in by_rack.items())
    return tuple(sorted(losses, key=lambda loss: (-loss.seconds_not_survived, -loss.not_survived, loss.rack)))


def _loss_of_rack(rack: str, rows: Sequence[Mapping[str, Any]], seconds: Mapping[int, float]) -> LossHistory:
    failed = [row["taken_at"] for row in rows if not row["survived"]]
    most = {
        f"most_{state}": max(row[state] for row in rows) for state in ("offline", "under_min_isr", "under_min_racks")
    }
    return LossHistory(
        rack=RackId(rack),
        snapshots=len(rows),
        not_survived=len(failed),
        seconds_not_survived=sum(seconds[at] for at in sorted(failed)),
        last_at=time_of(max(failed)) if failed else None,
        **most,
    )


def _drift_group(group: Sequence[Any], drift_sum: DriftSum) -> DriftGroup:
    at, change, cause, cause_broker, *_ = group
    topic, partition, broker, before, after = drift_sum.example
    return DriftGroup(
        time_of(at),
        change,
        drift_sum.changes,
        len(drift_sum.topics),
        topic,
        partition,
        broker,
        before,
        after,
        cause,
        cause_broker,
    )


def _urgency(group: FindingGroup) -> tuple[bool, bool, int, str]:
    return not group.findings, group.severity is Severity.WARNING, -group.findings, group.constraint


def _counts(states: StateCounter) -> StateCounts:
    return StateCounts(**{state.field: states[state.value] for state in DurabilityState})


def _micros(cluster_id: str, snapshot: ClusterSnapshot) -> int:
    if snapshot.taken_at is None:
        raise InvalidSnapshot(
            f"cluster {cluster_id!r}: its latest snapshot has no taken_at; collect it again with rackspan pipeline collect"
        )
    return micros(snapshot.taken_at)
