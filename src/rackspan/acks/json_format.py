"""Advice as a document: the JSON that scripts rely on, and what the table on a terminal is drawn from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypedDict

from msgspec import Meta

from rackspan.acks.harden import HardenAdvice, HardenOutcome, RackLossCost
from rackspan.acks.spreads import RackSpread
from rackspan.acks.watch import ClusterIsr
from rackspan.acks.wording import kafka_configs, loss_words, reason, remedies
from rackspan.audit.constraints.survival import SURVIVAL_NAMES
from rackspan.audit.findings import Finding
from rackspan.audit.json_format import FindingDocument, HeadDocument, finding_document, head_document
from rackspan.documents import AtLeastOne, Count
from rackspan.model import MIN_INSYNC_REPLICAS, ClusterSnapshot, shown

JUDGED_BY: Final = frozenset({"min-insync-replicas-forces-racks"}) | SURVIVAL_NAMES
"""The constraint of audit that a hardened topic meets, and those that its value can break."""


class HardenSummary(HeadDocument):
    outcomes: Annotated[dict[str, AtLeastOne], Meta(description="Topics by outcome.")]


class DecidingPartition(TypedDict):
    partition: Count
    spread: Annotated[list[Count], Meta(description="Its replicas by rack, most first.")]
    needs: Count


class HardenLoss(TypedDict):
    rack: str | None
    stopped_by_value: Count
    stopped_by_both: Count
    words: str


class SpreadDocument(TypedDict):
    replication_factor: Count
    spread: list[Count]
    least: Count
    survives_broker: bool
    survives_rack: bool


class AdviceDocument(TypedDict):
    topic: str
    internal: bool
    outcome: HardenOutcome
    reason: str
    remedies: list[str]
    min_insync_racks: Count
    enforced: Annotated[bool, Meta(description="The brokers enforce min.insync.racks themselves.")]
    current: Count
    known: Annotated[
        bool, Meta(description="false: min.insync.replicas is not in the snapshot, and `current` is assumed.")
    ]
    least: Annotated[Count | None, Meta(description="null: no value forces the racks.")]
    decided_by: Annotated[DecidingPartition, Meta(description="The partition that needs the highest value.")]
    partitions: Count
    too_few_racks: Count
    moving: Count
    smallest_replication_factor: Count
    losses: list[HardenLoss]
    better: list[SpreadDocument]


AppliedValue = TypedDict("AppliedValue", {"topic": str, "min.insync.replicas": Count})


class AppliedDocument(TypedDict, total=False):
    applied: Annotated[list[AppliedValue], Meta(description="With --apply.")]
    audit: Annotated[
        list[FindingDocument], Meta(description="With --apply: what audit finds about these topics afterwards.")
    ]


class HardenDocument(AppliedDocument):
    """The least min.insync.replicas of each topic that forces the required racks."""

    summary: HardenSummary
    topics: list[AdviceDocument]
    commands: Annotated[list[str], Meta(description="The same by kafka-configs.sh.")]


class LeaderIsrDocument(TypedDict):
    id: int
    rack: str | None
    under_min_rack_isr: Count
    at_min_rack_isr: Count


class WatchDocument(TypedDict):
    cluster_id: str | None
    under_min_rack_isr: Count
    at_min_rack_isr: Count
    leaderless: Count
    any_rack_loss_survived: Annotated[
        bool | None,
        Meta(
            description="For certain, as the policy requires; null if not known, or if there is no partition to judge."
        ),
    ]
    not_survived: Annotated[list[str], Meta(description="Racks whose loss is not survived as the policy requires.")]
    brokers: list[LeaderIsrDocument]


class ServedWatchDocument(WatchDocument):
    """One document for each reading that differs from the one before."""

    metrics: Annotated[str | None, Meta(description="HOST:PORT of the metrics; null without --metrics-listen.")]


def harden_document(snapshot: ClusterSnapshot, advice: Sequence[HardenAdvice]) -> HardenDocument:
    """`commands` set every value that `values_to_set` has, by Kafka's own tool."""
    return {
        "summary": {
            **head_document(snapshot),
            "outcomes": dict(sorted(Counter(str(advised.outcome) for advised in advice).items())),
        },
        "topics": [advice_document(advised) for advised in advice],
        "commands": [kafka_configs(advised) for advised in advice if advised.to_set],
    }


def applied_document(values: Mapping[str, int], findings: Sequence[Finding]) -> AppliedDocument:
    """What was set, and what audit says of it now: its rules on min.insync.replicas and on losses, judged anew."""
    return {
        "applied": [{"topic": topic, MIN_INSYNC_REPLICAS: value} for topic, value in sorted(values.items())],
        "audit": [finding_document(finding) for finding in findings if finding.constraint in JUDGED_BY],
    }


def advice_document(advice: HardenAdvice) -> AdviceDocument:
    return {
        "topic": advice.topic,
        "internal": advice.internal,
        "outcome": advice.outcome,
        "reason": reason(advice),
        "remedies": remedies(advice),
        "min_insync_racks": advice.min_insync_racks,
        "enforced": advice.enforced,
        "current": advice.current,
        "known": advice.known,
        "least": None if advice.outcome is HardenOutcome.IMPOSSIBLE else advice.least,
        "decided_by": {"partition": advice.decided_by, "spread": list(advice.spread), "needs": advice.least},
        "partitions": advice.partitions,
        "too_few_racks": advice.too_few_racks,
        "moving": advice.moving,
        "smallest_replication_factor": advice.smallest_replication_factor,
        "losses": [loss_document(advice, loss) for loss in advice.losses],
        "better": [spread_document(spread) for spread in advice.better],
    }


def loss_document(advice: HardenAdvice, loss: RackLossCost) -> HardenLoss:
    return {
        "rack": shown(loss.rack),
        "stopped_by_value": loss.stopped_by_value,
        "stopped_by_both": loss.stopped_by_both,
        "words": loss_words(advice, loss),
    }


def spread_document(spread: RackSpread) -> SpreadDocument:
    return {
        "replication_factor": spread.replication_factor,
        "spread": list(spread.counts),
        "least": spread.least,
        "survives_broker": spread.survives_broker,
        "survives_rack": spread.survives_rack,
    }


def watch_document(isr: ClusterIsr) -> WatchDocument:
    """One reading of a watch: counts of partitions, of the whole cluster and by leading broker."""
    return {
        "cluster_id": isr.cluster_id,
        "under_min_rack_isr": isr.under,
        "at_min_rack_isr": isr.at,
        "leaderless": isr.leaderless,
        "any_rack_loss_survived": isr.losses.any_survived,
        "not_survived": [
            shown(rack) for loss in isr.losses.losses if isr.losses.survived(loss) is False for rack in loss.racks
        ],
        "brokers": [
            {"id": leader.broker, "rack": leader.rack, "under_min_rack_isr": leader.under, "at_min_rack_isr": leader.at}
            for leader in isr.leaders
        ],
    }
