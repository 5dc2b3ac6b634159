"""The audit of one snapshot: every finding, and what the loss of each rack would do."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit.batch import snapshot_batch
from rackspan.audit.constraints import cluster_findings, partition_findings
from rackspan.audit.constraints.survival import too_few_racks
from rackspan.audit.findings import Finding, Severity, in_order
from rackspan.audit.goals import excluded_broker_findings, goal_findings
from rackspan.audit.loads import loads
from rackspan.audit.outage import RackLoss, judge_losses, losses_to_judge
from rackspan.audit.policy import RackPolicy
from rackspan.model import Bools, ClusterSnapshot, RackId, Topic


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. `losses` has one entry a rack: what its loss would do."""

    findings: list[Finding]
    losses: list[RackLoss]
    racks: tuple[RackId, ...]

    @property
    def clean(self) -> bool:
        """Whether no constraint is broken. Warnings do not count."""
        return not any(finding.severity is Severity.VIOLATION for finding in self.findings)

    @property
    def survives_any_rack(self) -> bool:
        return all(loss.survived for loss in self.losses)


def audit(snapshot: ClusterSnapshot, policy: RackPolicy, topic_filter: re.Pattern[str] | None = None) -> Audit:
    """Check a snapshot against every constraint and goal.

    `topic_filter`: judge the topics whose whole name matches, and the brokers and controllers they depend on; the goals,
    which are about the loads of whole brokers, are left out. Errors: UsageError where the policy refuses the cluster.
    """
    batch = snapshot_batch(snapshot, policy).of_topics(topic_filter)
    broker_loads = loads(batch)
    findings = [
        *cluster_findings(batch.members),
        *too_few_racks(batch.members, broker_loads),
        *partition_findings(batch),
    ]
    if topic_filter is None:
        findings += [
            *excluded_broker_findings(batch.members, broker_loads),
            *goal_findings(batch.members, broker_loads),
        ]
    return Audit(
        findings=in_order(findings),
        losses=judge_losses(batch, internal(snapshot.topics), [(rack,) for rack in batch.members.failure_racks]),
        racks=batch.members.rack_map.racks,
    )


def outage(
    snapshot: ClusterSnapshot, policy: RackPolicy, *, lose: tuple[str, ...] | None = None, pairs: bool = False
) -> tuple[RackLoss, list[RackLoss]]:
    """What is harmed now, and what losing each rack, each pair, or the named racks together would do."""
    batch = snapshot_batch(snapshot, policy)
    losses = losses_to_judge(batch.members.failure_racks, lose, pairs)
    now, *after = judge_losses(batch, internal(snapshot.topics), [(), *losses])
    return now, after


def internal(topics: Sequence[Topic]) -> Bools:
    """Which topics are Kafka's own, as `__consumer_offsets`. Shape (topics,)."""
    return np.array([topic.internal for topic in topics], dtype=np.bool_)
