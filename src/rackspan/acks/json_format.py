"""Advice as a document: the JSON that scripts rely on, and what the table on a terminal is drawn from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rackspan.acks.harden import HardenAdvice, HardenOutcome, RackLossCost
from rackspan.acks.spreads import RackSpread
from rackspan.acks.watch import ClusterIsr
from rackspan.acks.wording import kafka_configs, loss_words, reason, remedies
from rackspan.audit.constraints.survival import SURVIVAL_NAMES
from rackspan.audit.findings import Finding
from rackspan.audit.json_format import finding_document, head_document
from rackspan.model import MIN_INSYNC_REPLICAS, ClusterSnapshot, shown

JUDGED_BY: Final = frozenset({"min-insync-replicas-forces-racks"}) | SURVIVAL_NAMES
"""The constraint of audit that a hardened topic meets, and those that its value can break."""


def harden_document(
    snapshot: ClusterSnapshot, advice: Sequence[HardenAdvice], bootstrap_server: str = "HOST:PORT"
) -> dict[str, Any]:
    """`commands` set every value that must rise, by Kafka's own tool."""
    return {
        "summary": {
            **head_document(snapshot),
            "outcomes": dict(sorted(Counter(str(advised.outcome) for advised in advice).items())),
        },
        "topics": [advice_document(advised) for advised in advice],
        "commands": [
            kafka_configs(advised, bootstrap_server) for advised in advice if advised.outcome is HardenOutcome.RAISE
        ],
    }


def applied_document(values: Mapping[str, int], findings: Sequence[Finding]) -> dict[str, Any]:
    """What was set, and what audit says of it now: its rules on min.insync.replicas and on losses, judged anew."""
    return {
        "applied": [{"topic": topic, MIN_INSYNC_REPLICAS: value} for topic, value in sorted(values.items())],
        "audit": [finding_document(finding) for finding in findings if finding.constraint in JUDGED_BY],
    }


def advice_document(advice: HardenAdvice) -> dict[str, Any]:
    """`least` is null where no value forces the racks."""
    return {
        "topic": advice.topic,
        "internal": advice.internal,
        "outcome": str(advice.outcome),
        "reason": reason(advice),
        "remedies": remedies(advice),
        "min_insync_racks": advice.min_insync_racks,
        "enforced": advice.enforced,
        "current": advice.current,
        "least": None if advice.outcome is HardenOutcome.IMPOSSIBLE else advice.least,
        "decided_by": {"partition": advice.decided_by, "spread": list(advice.spread), "needs": advice.least},
        "partitions": advice.partitions,
        "too_few_racks": advice.too_few_racks,
        "moving": advice.moving,
        "smallest_replication_factor": advice.smallest_replication_factor,
        "losses": [loss_document(advice, loss) for loss in advice.losses],
        "better": [spread_document(spread) for spread in advice.better],
    }


def loss_document(advice: HardenAdvice, loss: RackLossCost) -> dict[str, Any]:
    return {
        "rack": shown(loss.rack),
        "stopped_by_value": loss.stopped_by_value,
        "stopped_by_both": loss.stopped_by_both,
        "words": loss_words(advice, loss),
    }


def spread_document(spread: RackSpread) -> dict[str, Any]:
    return {
        "replication_factor": spread.replication_factor,
        "spread": list(spread.counts),
        "least": spread.least,
        "survives_broker": spread.survives_broker,
        "survives_rack": spread.survives_rack,
    }


def watch_document(isr: ClusterIsr) -> dict[str, Any]:
    """One reading of a watch: counts of partitions, of the whole cluster and by leading broker."""
    return {
        "cluster_id": isr.cluster_id,
        "under_min_rack_isr": isr.under,
        "at_min_rack_isr": isr.at,
        "leaderless": isr.leaderless,
        "brokers": [
            {"id": leader.broker, "rack": leader.rack, "under_min_rack_isr": leader.under, "at_min_rack_isr": leader.at}
            for leader in isr.leaders
        ],
    }
