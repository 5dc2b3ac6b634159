"""The content of a report from one snapshot and its audit: no history, and a group of findings for each remedy.

Pure: a snapshot, a policy and an audit in, values for the page out.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from rackspan import __version__
from rackspan.audit import Audit, Finding, RackPolicy, Severity, assumptions, outage, racks_down, snapshot_batch
from rackspan.audit.batch import PartitionBatch
from rackspan.audit.durability import STATES, states
from rackspan.model import ClusterSnapshot
from rackspan.report.broker_rows import broker_rows
from rackspan.report.data import (
    TOPICS_MAX,
    ClusterReport,
    DurabilityState,
    FindingGroup,
    ReportData,
    StateCounts,
)
from rackspan.report.topic_map import harmed_partitions, rack_members, topic_map


def audit_report(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    judged: Audit,
    topic_filter: re.Pattern[str] | None = None,
    name: str | None = None,
) -> ReportData:
    """The report on one snapshot. `judged` is its audit with the same policy and filter, `name` the cluster's name to show."""
    chosen = snapshot if topic_filter is None else _of_topics(snapshot, topic_filter)
    batch = snapshot_batch(chosen, policy)
    of_topics = _states_of_topics(batch.judged)
    cluster = replace(
        present(chosen, policy, of_topics),
        states=_summed(of_topics.values()),
        findings=tuple(finding_groups(judged.findings)),
        name=name,
    )
    return ReportData((cluster,), __version__)


def present(
    snapshot: ClusterSnapshot, policy: RackPolicy, of_topics: Mapping[str, StateCounts], topics_most: int = TOPICS_MAX
) -> ClusterReport:
    """What one snapshot says by itself, without findings. `of_topics`: the states of topics; one that it lacks is ok throughout."""
    now, losses = outage(snapshot, policy)
    batch = snapshot_batch(snapshot, policy)
    racks = rack_members(batch.members)
    return ClusterReport(
        cluster_id=snapshot.cluster_id,
        taken_at=snapshot.taken_at,
        topics=len(snapshot.topics),
        partitions=len(snapshot.partitions),
        racks=racks,
        unracked_brokers=len(snapshot.brokers) - sum(len(rack.brokers) for rack in racks),
        lost_racks=racks_down(snapshot, policy),
        assumed=assumptions(snapshot, policy),
        now=now,
        losses=tuple(losses),
        harmed=harmed_partitions(batch.judged, losses),
        topic_map=topic_map(snapshot, batch, losses, of_topics, topics_most),
        states=StateCounts(),
        history=None,
        findings=(),
        partial=snapshot.partial,
        broker_rows=broker_rows(batch),
    )


def finding_groups(findings: Iterable[Finding]) -> Iterable[FindingGroup]:
    """Findings of one constraint, severity and remedy together, in the order of the audit."""
    together: dict[tuple[str, Severity, str], list[Finding]] = {}
    for finding in findings:
        together.setdefault((finding.constraint, finding.severity, finding.remedy), []).append(finding)
    for (constraint, severity, remedy), alike in together.items():
        first = alike[0]
        yield FindingGroup(
            constraint=constraint,
            severity=severity,
            findings=len(alike),
            topics=len({finding.topic for finding in alike if finding.topic is not None}),
            snapshots=1,
            last_found_at=None,
            topic=first.topic,
            partition=first.partition,
            reason=first.reason,
            remedy=remedy,
        )


def _of_topics(snapshot: ClusterSnapshot, topic_filter: re.Pattern[str]) -> ClusterSnapshot:
    """The snapshot with the topics whose whole name matches, and with all brokers and controllers."""
    codes = [code for code, topic in enumerate(snapshot.topics) if topic_filter.fullmatch(topic.name)]
    new_code = {code: place for place, code in enumerate(codes)}
    rows = snapshot.partitions.take(np.flatnonzero(np.isin(snapshot.partitions.topic, codes)))
    topic = np.array([new_code[code] for code in rows.topic.tolist()], dtype=np.int32)
    return replace(
        snapshot, topics=tuple(snapshot.topics[code] for code in codes), partitions=replace(rows, topic=topic)
    )


def _states_of_topics(batch: PartitionBatch) -> dict[str, StateCounts]:
    """How many partitions of each topic are in each state."""
    cells = batch.rows.topic.astype(np.int64) * len(STATES) + states(batch)
    counted = np.bincount(cells, minlength=len(batch.topics) * len(STATES)).reshape(len(batch.topics), len(STATES))
    return {
        topic: StateCounts(**{DurabilityState(state).field: number for state, number in zip(STATES, row, strict=True)})
        for topic, row in zip(batch.topics, counted.tolist(), strict=True)
    }


def _summed(counts: Iterable[StateCounts]) -> StateCounts:
    counts = list(counts)
    return StateCounts(**{state.field: sum(each.of(state) for each in counts) for state in DurabilityState})
