"""Audits and outages as JSON documents. Scripts read them, and the tables on a terminal are drawn from them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, TypeAlias, TypedDict

import numpy as np
from msgspec import Meta

from rackspan.audit.findings import Finding, Severity
from rackspan.audit.judge import Audit
from rackspan.audit.outage import AFTER_REASSIGNMENT, LostRack, RackLoss, TopicHarm
from rackspan.audit.policy import Survive
from rackspan.audit.quorum import QuorumAfter
from rackspan.documents import AtLeastOne, Count, DecimalKey, UtcTime
from rackspan.model import ClusterSnapshot, shown
from rackspan.text import utc_text


class HeadDocument(TypedDict):
    cluster_id: str | None
    cluster_name: Annotated[str | None, Meta(description="The name of rackspan.toml, with --cluster.")]
    taken_at: Annotated[UtcTime | None, Meta(description="UTC; null if a snapshot does not say.")]
    brokers: Count
    topics: Count
    partitions: Count
    partial: Annotated[list[str], Meta(description="What could not be read, in words.")]
    complete: Annotated[bool, Meta(description="Nothing that is needed to judge is in `partial`.")]


_Diskless: TypeAlias = Annotated[Count, Meta(description="Partitions of diskless topics, which are not judged.")]


class FindingDocument(TypedDict):
    constraint: Annotated[str, Meta(description="A name of docs/constraints.md.")]
    severity: Severity
    topic: Annotated[str | None, Meta(description="null: about the cluster.")]
    partition: Annotated[int | None, Meta(description="null: about the cluster or the topic.")]
    reason: str
    remedy: Annotated[str, Meta(description="A command if it begins with rackspan or kafka-; else what to do.")]


class QuorumDocument(TypedDict):
    voters: Count
    surviving: Count
    lost: list[int]
    dead: Annotated[list[int], Meta(description="Those of the lost that were dead before.")]
    unknown_rack: Annotated[list[int], Meta(description="Controllers whose rack is not known.")]
    holds: bool
    certain: Annotated[bool, Meta(description="A majority is left wherever the controllers of unknown rack are.")]


class HarmDocument(TypedDict):
    """Partitions by their state after a loss."""

    offline: Count
    needs_unclean_election: Count
    under_min_isr: Count
    under_min_racks: Count
    after_reassignment: Annotated[
        Count, Meta(description="In none of these states now, but in one once their reassignment has ended.")
    ]


class LostRackDocument(TypedDict):
    """A rack that is down: every broker that counts in it is fenced, or, without brokers, every controller dead."""

    rack: str
    brokers: list[int]
    controllers: Annotated[list[int], Meta(description="Controllers of the rack that are down too.")]
    controllers_left: Annotated[list[int], Meta(description="Controllers of the rack that are not known to be down.")]
    partitions: Annotated[Count, Meta(description="Partitions that lack a replica, since it is in this rack.")]
    reason: Annotated[str, Meta(description="The same in one sentence.")]


class LossDocument(TypedDict):
    racks: list[str]
    lost: Annotated[
        bool, Meta(description="The racks are down already: what their loss does to partitions is the present.")
    ]
    happened: Annotated[
        bool,
        Meta(description="Lost already, and the majority does not need the controllers left there: no more follows."),
    ]
    survived: Annotated[bool, Meta(description="Nothing is harmed.")]
    as_required: Annotated[bool, Meta(description="Nothing is harmed that has to survive.")]
    controller_quorum: QuorumDocument | None


class LossSummary(LossDocument, HarmDocument):
    """A line of an audit's summary: totals instead of topics."""


class TopicHarmDocument(HarmDocument):
    topic: str
    internal: bool
    survive: Survive


class LossOfTopics(LossDocument):
    topics: list[TopicHarmDocument]
    leader_surge: Annotated[dict[DecimalKey, AtLeastOne], Meta(description="Broker id to leaderships that it gains.")]


class HarmedNow(TypedDict):
    topics: list[TopicHarmDocument]


class AuditSummary(HeadDocument):
    diskless: _Diskless
    racks: list[str]
    lost_racks: Annotated[list[LostRackDocument], Meta(description="The racks that are down already.")]
    violations: Count
    violated_partitions: Count
    warnings: Count
    by_constraint: Annotated[dict[str, AtLeastOne], Meta(description="Findings by constraint.")]
    survives_any_rack: Annotated[bool | None, Meta(description="For certain; null if there is no partition to judge.")]
    left_open_by: Annotated[list[str], Meta(description="The violations with which it is not certain.")]
    assumed: Annotated[list[str], Meta(description="In words: racks, unknown configs, reassignments in flight.")]
    losses: list[LossSummary]


class AuditDocument(TypedDict):
    """Findings, those to repair first before the others, and what the loss of each rack does."""

    summary: AuditSummary
    findings: list[FindingDocument]


class OutageDocument(HeadDocument):
    """What the loss of racks does. Topics without harm are left out."""

    diskless: _Diskless
    assumed: Annotated[list[str], Meta(description="In words: racks, unknown configs, reassignments in flight.")]
    left_open_by: Annotated[
        list[str], Meta(description="The violations with which it is not certain that a loss is survived.")
    ]
    lost_racks: Annotated[list[LostRackDocument], Meta(description="The racks that are down already.")]
    now: Annotated[HarmedNow, Meta(description="Harmed already, without a loss.")]
    losses: list[LossOfTopics]


def audit_document(snapshot: ClusterSnapshot, judged: Audit, name: str | None = None) -> AuditDocument:
    """`summary` first, then every finding. `name`: the cluster's name to show."""
    severities = Counter(finding.severity for finding in judged.findings)
    return {
        "summary": {
            **head_document(snapshot, name),
            "diskless": _diskless(snapshot),
            "racks": [shown(rack) for rack in judged.racks],
            "lost_racks": [lost_rack_document(lost) for lost in judged.lost_racks],
            "violations": severities[Severity.VIOLATION],
            "violated_partitions": _violated_partitions(judged.findings),
            "warnings": severities[Severity.WARNING],
            "by_constraint": dict(sorted(Counter(finding.constraint for finding in judged.findings).items())),
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
    lost_racks: Sequence[LostRack] = (),
    left_open_by: Sequence[str] = (),
) -> OutageDocument:
    """`now` is what is harmed already, with no rack lost; each loss includes it. `assumed`: of `assumptions`, `lost_racks`: of `racks_down`.

    `left_open_by`: as of `Audit`, as far as it is about which racks there are.
    """
    return {
        **head_document(snapshot, name),
        "diskless": _diskless(snapshot),
        "assumed": list(assumed),
        "left_open_by": list(left_open_by),
        "lost_racks": [lost_rack_document(lost) for lost in lost_racks],
        "now": {"topics": [topic_document(topic) for topic in now.topics]},
        "losses": [loss_document(loss) for loss in losses],
    }


def head_document(snapshot: ClusterSnapshot, name: str | None = None) -> HeadDocument:
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


def _diskless(snapshot: ClusterSnapshot) -> int:
    codes = [code for code, topic in enumerate(snapshot.topics) if topic.diskless]
    return int(np.count_nonzero(np.isin(snapshot.partitions.topic, codes))) if codes else 0


FINDING_COLUMNS: Final = tuple(FindingDocument.__annotations__)


def finding_document(finding: Finding) -> FindingDocument:
    return {
        "constraint": finding.constraint,
        "severity": finding.severity,
        "topic": finding.topic,
        "partition": finding.partition,
        "reason": finding.reason,
        "remedy": finding.remedy,
    }


def lost_rack_document(lost: LostRack) -> LostRackDocument:
    return {
        "rack": shown(lost.rack),
        "brokers": list(lost.brokers),
        "controllers": list(lost.controllers),
        "controllers_left": list(lost.controllers_left),
        "partitions": lost.partitions,
        "reason": lost.reason,
    }


def loss_summary(loss: RackLoss) -> LossSummary:
    return {
        "racks": [shown(rack) for rack in loss.racks],
        "lost": loss.lost,
        "happened": loss.happened,
        "survived": loss.survived,
        "as_required": loss.as_required,
        "offline": loss.total("offline"),
        "needs_unclean_election": loss.total("needs_unclean_election"),
        "under_min_isr": loss.total("under_min_isr"),
        "under_min_racks": loss.total("under_min_racks"),
        "after_reassignment": loss.total(AFTER_REASSIGNMENT),
        "controller_quorum": quorum_document(loss.quorum),
    }


def loss_document(loss: RackLoss) -> LossOfTopics:
    return {
        "racks": [shown(rack) for rack in loss.racks],
        "lost": loss.lost,
        "happened": loss.happened,
        "survived": loss.survived,
        "as_required": loss.as_required,
        "topics": [topic_document(topic) for topic in loss.topics],
        "leader_surge": {str(broker): gained for broker, gained in loss.leader_surge.items()},
        "controller_quorum": quorum_document(loss.quorum),
    }


def topic_document(topic: TopicHarm) -> TopicHarmDocument:
    return {
        "topic": topic.topic,
        "internal": topic.internal,
        "survive": topic.survive,
        "offline": topic.offline,
        "needs_unclean_election": topic.needs_unclean_election,
        "under_min_isr": topic.under_min_isr,
        "under_min_racks": topic.under_min_racks,
        "after_reassignment": topic.after_reassignment,
    }


def quorum_document(quorum: QuorumAfter | None) -> QuorumDocument | None:
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
