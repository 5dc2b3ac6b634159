"""Audits and outages as JSON documents. Scripts read them, and the tables on a terminal are drawn from them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rackspan.audit.findings import Finding, Severity
from rackspan.audit.judge import Audit
from rackspan.audit.outage import RackLoss, TopicHarm
from rackspan.audit.quorum import QuorumAfter
from rackspan.model import ClusterSnapshot, shown
from rackspan.text import utc_text

STATES = ("offline", "needs_unclean_election", "under_min_isr", "under_min_racks")
"""The states of partitions after a loss."""

AFTER_REASSIGNMENT: Final = "after_reassignment"
"""Partitions in none of these states, which are in one once their reassignment has ended."""


def audit_document(snapshot: ClusterSnapshot, judged: Audit, name: str | None = None) -> dict[str, Any]:
    """`summary` first, then every finding. `name`: the cluster's name to show."""
    severities = Counter(finding.severity for finding in judged.findings)
    return {
        "summary": {
            **head_document(snapshot, name),
            "racks": [shown(rack) for rack in judged.racks],
            "violations": severities[Severity.VIOLATION],
            "violated_partitions": _violated_partitions(judged.findings),
            "warnings": severities[Severity.WARNING],
            "by_constraint": dict(sorted(Counter(one.constraint for one in judged.findings).items())),
            "survives_any_rack": judged.survives_any_rack,
            "left_open_by": list(judged.left_open_by),
            "assumed": list(judged.assumed),
            "losses": [loss_summary(loss) for loss in judged.losses],
        },
        "findings": [finding_document(finding) for finding in judged.findings],
    }


def _violated_partitions(findings: Iterable[Finding]) -> int:
    violations = (
        finding for finding in findings if finding.severity is Severity.VIOLATION and finding.partition is not None
    )
    return len({(violation.topic, violation.partition) for violation in violations})


def outage_document(
    snapshot: ClusterSnapshot,
    now: RackLoss,
    losses: list[RackLoss],
    name: str | None = None,
    assumed: Sequence[str] = (),
) -> dict[str, Any]:
    """`now` is what is harmed already, with no rack lost; each loss includes it. `assumed`: of `assumptions`."""
    return {
        **head_document(snapshot, name),
        "assumed": list(assumed),
        "now": {"topics": [topic_document(topic) for topic in now.topics]},
        "losses": [loss_document(loss) for loss in losses],
    }


def head_document(snapshot: ClusterSnapshot, name: str | None = None) -> dict[str, Any]:
    return {
        "cluster_id": snapshot.cluster_id,
        "cluster_name": name,
        "taken_at": None if snapshot.taken_at is None else utc_text(snapshot.taken_at),
        "brokers": len(snapshot.brokers),
        "topics": len(snapshot.topics),
        "partitions": len(snapshot.partitions),
        "partial": list(snapshot.partial),
        "complete": not snapshot.unread,
    }


FINDING_COLUMNS: Final = ("constraint", "severity", "topic", "partition", "reason", "remedy")
"""The keys of a finding."""


def finding_document(finding: Finding) -> dict[str, Any]:
    return {
        "constraint": finding.constraint,
        "severity": str(finding.severity),
        "topic": finding.topic,
        "partition": finding.partition,
        "reason": finding.reason,
        "remedy": finding.remedy,
    }


def loss_summary(loss: RackLoss) -> dict[str, Any]:
    """One line of an audit's summary: totals instead of topics."""
    return {
        "racks": [shown(rack) for rack in loss.racks],
        "survived": loss.survived,
        "as_required": loss.as_required,
        **{state: loss.total(state) for state in (*STATES, AFTER_REASSIGNMENT)},
        "controller_quorum": quorum_document(loss.quorum),
    }


def loss_document(loss: RackLoss) -> dict[str, Any]:
    return {
        "racks": [shown(rack) for rack in loss.racks],
        "survived": loss.survived,
        "as_required": loss.as_required,
        "topics": [topic_document(topic) for topic in loss.topics],
        "leader_surge": {str(broker): gained for broker, gained in loss.leader_surge.items()},
        "controller_quorum": quorum_document(loss.quorum),
    }


def topic_document(topic: TopicHarm) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "internal": topic.internal,
        "survive": topic.survive.value,
        **{state: getattr(topic, state) for state in (*STATES, AFTER_REASSIGNMENT)},
    }


def quorum_document(quorum: QuorumAfter | None) -> dict[str, Any] | None:
    if quorum is None:
        return None
    return {
        "voters": quorum.voters,
        "surviving": quorum.surviving,
        "lost": list(quorum.lost),
        "dead": list(quorum.dead),
        "unknown_rack": list(quorum.unknown_rack),
        "holds": quorum.holds,
        "certain": quorum.certain,
    }
