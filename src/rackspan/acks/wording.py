"""Advice in words: one line each for the reason, for what a rack's loss costs, and for a spread that does better."""

from collections.abc import Callable, Mapping
from typing import Final

from rackspan.acks.harden import HardenAdvice, HardenOutcome, RackLossCost
from rackspan.acks.spreads import RackSpread
from rackspan.audit.findings import BOOTSTRAP_SERVER
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, shown
from rackspan.text import count_noun


def reason(advice: HardenAdvice) -> str:
    """Why the outcome is what it is."""
    moving = (
        f"; {count_noun(advice.moving, 'partition')} being reassigned, judged by the target" if advice.moving else ""
    )
    unknown = "" if advice.known else f"; {MIN_INSYNC_REPLICAS} is not in the snapshot, and is judged as 1"
    return _REASONS[advice.outcome](advice) + unknown + moving


def remedies(advice: HardenAdvice) -> list[str]:
    """What to do, the value first, then placements; empty where nothing is to be gained."""
    placed = [f"{spread_words(spread)}: {_reassign(advice, spread)}" for spread in advice.better]
    if advice.outcome is HardenOutcome.UNSAFE:
        words = [f"{spread_words(spread)}: " for spread in advice.better]
        return [f"first: {''.join(words)}{advice.first}; then harden again"]
    if advice.outcome is HardenOutcome.RAISE:
        unless_higher = "" if advice.known else ", unless it is higher already"
        return [f"{MIN_INSYNC_REPLICAS}={advice.least}{unless_higher}", *placed]
    if advice.outcome is HardenOutcome.IMPOSSIBLE and advice.first:
        return [f"first: {advice.first}; then harden again"]
    if advice.outcome is HardenOutcome.IMPOSSIBLE and not placed:
        return [f"add racks, or lower {MIN_INSYNC_RACKS}: no placement on these racks can"]
    return placed


def loss_words(advice: HardenAdvice, loss: RackLossCost) -> str:
    """`if rack a is lost, 3 of 6 partitions refuse acks=all: 2 because of the new value, 1 under min.insync.racks too`"""
    stopped = loss.stopped_by_value + loss.stopped_by_both
    value = "the new value" if advice.least > advice.current else MIN_INSYNC_REPLICAS
    alone = f"{loss.stopped_by_value} because of {value}" if loss.stopped_by_value else ""
    both = f"{loss.stopped_by_both} under {MIN_INSYNC_RACKS} too" if loss.stopped_by_both else ""
    return (
        f"if rack {shown(loss.rack)} is lost, {stopped} of {count_noun(advice.partitions, 'partition')} "
        f"{'refuses' if stopped == 1 else 'refuse'} acks=all: {', '.join(filter(None, (alone, both)))}"
    )


def spread_words(spread: RackSpread) -> str:
    """`with RF 4 (2+2 replicas per rack) set 3; writes survive the loss of 1 broker`"""
    spare = spread.replication_factor - spread.least
    loss = f"the loss of {count_noun(spare, 'broker')}" if spare else "no loss"
    survives = "the loss of any rack" if spread.survives_rack else loss
    return (
        f"with RF {spread.replication_factor} ({counts_words(spread.counts)} replicas per rack) set {spread.least}; "
        f"writes survive {survives}"
    )


def counts_words(counts: tuple[int, ...]) -> str:
    return "+".join(map(str, counts)) or "none in a known rack"


def kafka_configs(advice: HardenAdvice) -> str:
    """The same by Kafka's own tool."""
    return (
        f"kafka-configs.sh {BOOTSTRAP_SERVER} --alter --entity-type topics "
        f"--entity-name {advice.topic} --add-config {MIN_INSYNC_REPLICAS}={advice.least}"
    )


def _raise(advice: HardenAdvice) -> str:
    return (
        f"{MIN_INSYNC_REPLICAS} {advice.current} lets fewer than {advice.min_insync_racks} racks acknowledge "
        f"({_deciding(advice)}); {advice.least} forces {advice.min_insync_racks}{_counted_as(advice, advice.least)}"
    )


def _unsafe(advice: HardenAdvice) -> str:
    """Why the least value is not to be set yet."""
    harms = [
        *([f"at once on {advice.refused_at_once}"] if advice.refused_at_once else []),
        *([f"after a loss on {advice.stopped}"] if advice.stopped else []),
    ]
    return (
        f"{MIN_INSYNC_REPLICAS} {advice.least} would force {advice.min_insync_racks} racks ({_deciding(advice)}), and stop "
        f"acks=all {' and '.join(harms)} of {count_noun(advice.partitions, 'partition')} that {'takes' if advice.partitions == 1 else 'take'} it with {advice.current}"
    )


def _suffices(advice: HardenAdvice) -> str:
    more = f"; {advice.least} would do" if advice.current > advice.least else ""
    return (
        f"{MIN_INSYNC_REPLICAS} {advice.current} forces {advice.min_insync_racks} racks ({_deciding(advice)}){more}"
        f"{_counted_as(advice, advice.current)}"
    )


def _counted_as(advice: HardenAdvice, value: int) -> str:
    """What a value does to partitions with fewer replicas; nothing where there are none."""
    fewest = advice.smallest_replication_factor
    if value <= fewest:
        return ""
    return (
        f"; a partition with fewer replicas ({fewest}) needs all in sync, and before Kafka 3.7 refuses acks=all always"
    )


def _enforced(advice: HardenAdvice) -> str:
    return (
        f"the brokers enforce {MIN_INSYNC_RACKS} {advice.min_insync_racks} themselves; others need "
        f"{MIN_INSYNC_REPLICAS} {advice.least} ({_deciding(advice)})"
    )


def _impossible(advice: HardenAdvice) -> str:
    return (
        f"no value can help: {advice.too_few_racks} of {count_noun(advice.partitions, 'partition')} "
        f"{'has' if advice.too_few_racks == 1 else 'have'} replicas in fewer than {advice.min_insync_racks} racks"
    )


_REASONS: Final[Mapping[HardenOutcome, Callable[[HardenAdvice], str]]] = {
    HardenOutcome.NOTHING_REQUIRED: lambda _advice: "1 rack is enough",
    HardenOutcome.SUFFICES: _suffices,
    HardenOutcome.RAISE: _raise,
    HardenOutcome.UNSAFE: _unsafe,
    HardenOutcome.ENFORCED: _enforced,
    HardenOutcome.IMPOSSIBLE: _impossible,
}


def _deciding(advice: HardenAdvice) -> str:
    return f"{advice.topic}-{advice.decided_by} has {counts_words(advice.spread)} replicas per rack"


def _reassign(advice: HardenAdvice, spread: RackSpread) -> str:
    return f"rackspan reassign plan --topic {advice.topic} --replication-factor {spread.replication_factor}"
