"""The audit of one snapshot: every finding, and the verdict on losing each rack."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit.batch import evidence
from rackspan.audit.constraints.cluster import cluster_findings
from rackspan.audit.constraints.partitions import partition_findings
from rackspan.audit.findings import Finding, Severity, in_order
from rackspan.audit.goals import goal_findings
from rackspan.audit.loads import loads
from rackspan.audit.outage import RackLoss, judge_losses, losses_to_judge
from rackspan.audit.policy import RackPolicy
from rackspan.model.ids import RackId
from rackspan.model.partitions import Bools
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.model.topic import Topic


@dataclass(frozen=True, slots=True)
class Audit:
    """What is wrong with a cluster. `losses` holds one entry a rack: what its loss would do."""

    findings: list[Finding]
    losses: list[RackLoss]
    racks: tuple[RackId, ...]

    @property
    def clean(self) -> bool:
        """No constraint is broken. Warnings do not count."""
        return not any(finding.severity is Severity.VIOLATION for finding in self.findings)

    @property
    def survives_any_rack(self) -> bool:
        return all(loss.survived for loss in self.losses)


def audit(snapshot: ClusterSnapshot, policy: RackPolicy) -> Audit:
    """Hold a snapshot against every constraint and goal. Errors: UsageError where the policy refuses the cluster."""
    seen = evidence(snapshot, policy)
    found = [
        *cluster_findings(seen.registered),
        *partition_findings(seen),
        *goal_findings(seen.registered, loads(seen)),
    ]
    return Audit(
        findings=in_order(found),
        losses=judge_losses(seen, internal(snapshot.topics), [(rack,) for rack in seen.registered.failure_racks]),
        racks=seen.registered.rack_map.racks,
    )


def outage(
    snapshot: ClusterSnapshot, policy: RackPolicy, *, lose: tuple[str, ...] | None = None, pairs: bool = False
) -> tuple[RackLoss, list[RackLoss]]:
    """What is harmed now, and what losing each rack, each pair, or the named racks together would do."""
    seen = evidence(snapshot, policy)
    losses = losses_to_judge(seen.registered.failure_racks, lose, pairs)
    now, *after = judge_losses(seen, internal(snapshot.topics), [(), *losses])
    return now, after


def internal(topics: Sequence[Topic]) -> Bools:
    return np.array([topic.internal for topic in topics], dtype=np.bool_)
