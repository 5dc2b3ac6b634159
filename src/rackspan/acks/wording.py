"""Advice in words: one line each for the reason, for what a rack's loss costs, and for a spread that does better."""

from collections.abc import Callable, Mapping
from typing import Final

from rackspan.acks.harden import HardenAdvice, HardenOutcome, RackLossCost
from rackspan.acks.spreads import RackSpread
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, shown
from rackspan.text import count_noun


def reason(advice: HardenAdvice) -> str:
    """Why the outcome is what it is."""
    moving = (
        f"; {count_noun(advice.moving, 'partition')} on the move, judged by where that leads" if advice.moving else ""
    )
    return _REASONS[advice.outcome](advice) + moving


def remedies(advice: HardenAdvice) -> list[str]:
    """What to do, the value first, then placements; empty where nothing is to be gained."""
    placed = [f"{spread_words(one)}: {_reassign(advice, one)}" for one in advice.better]
    if advice.outcome is HardenOutcome.RAISE:
        return [f"{MIN_INSYNC_REPLICAS}={advice.least}", *placed]
    if advice.outcome is HardenOutcome.IMPOSSIBLE and not placed:
        return [f"add racks, or lower {MIN_INSYNC_RACKS}: these racks hold no spread that could"]
    return placed


def loss_words(advice: HardenAdvice, loss: RackLossCost) -> str:
    """`without a 3 of 6 partitions refuse writes: 2 by the value alone, 1 by min.insync.racks too`"""
    stopped = loss.stopped_by_value + loss.stopped_by_both
    alone = f"{loss.stopped_by_value} by the value alone" if loss.stopped_by_value else ""
    both = f"{loss.stopped_by_both} by {MIN_INSYNC_RACKS} too" if loss.stopped_by_both else ""
    return (
        f"without {shown(loss.rack)} {stopped} of {count_noun(advice.partitions, 'partition')} "
        f"{'refuses' if stopped == 1 else 'refuse'} writes: {', '.join(filter(None, (alone, both)))}"
    )


def spread_words(spread: RackSpread) -> str:
    """`RF 4 as 2/2 has value 3 and survives any 1 broker`"""
    spare = spread.replication_factor - spread.least
    survives = (
        "any rack" if spread.survives_rack else f"any {count_noun(spare, 'broker')}" if spare else "no loss at all"
    )
    return f"RF {spread.replication_factor} as {counts_words(spread.counts)} has value {spread.least} and survives {survives}"


def counts_words(counts: tuple[int, ...]) -> str:
    return "/".join(map(str, counts)) or "none in a known rack"


def kafka_configs(advice: HardenAdvice, bootstrap_server: str) -> str:
    """The same by Kafka's own tool."""
    return (
        f"kafka-configs.sh --bootstrap-server {bootstrap_server} --alter --entity-type topics "
        f"--entity-name {advice.topic} --add-config {MIN_INSYNC_REPLICAS}={advice.least}"
    )


def _raise(advice: HardenAdvice) -> str:
    return (
        f"{MIN_INSYNC_REPLICAS} {advice.current} lets fewer than {advice.min_insync_racks} racks acknowledge "
        f"({_deciding(advice)}); {advice.least} forces {advice.min_insync_racks}{_counted_as(advice, advice.least)}"
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
        f"the brokers hold {MIN_INSYNC_RACKS} {advice.min_insync_racks} themselves; without them it would take "
        f"{MIN_INSYNC_REPLICAS} {advice.least} ({_deciding(advice)})"
    )


def _impossible(advice: HardenAdvice) -> str:
    return (
        f"no value forces {count_noun(advice.min_insync_racks, 'rack')}: "
        f"{advice.too_few_racks} of {count_noun(advice.partitions, 'partition')} "
        f"{'is' if advice.too_few_racks == 1 else 'are'} in fewer"
    )


_REASONS: Final[Mapping[HardenOutcome, Callable[[HardenAdvice], str]]] = {
    HardenOutcome.NOTHING_REQUIRED: lambda _advice: "1 rack is enough",
    HardenOutcome.SUFFICES: _suffices,
    HardenOutcome.RAISE: _raise,
    HardenOutcome.ENFORCED: _enforced,
    HardenOutcome.IMPOSSIBLE: _impossible,
}


def _deciding(advice: HardenAdvice) -> str:
    return f"{advice.topic}-{advice.decided_by} is spread as {counts_words(advice.spread)}"


def _reassign(advice: HardenAdvice, spread: RackSpread) -> str:
    return f"rackspan reassign plan --topic {advice.topic} --replication-factor {spread.replication_factor}"
