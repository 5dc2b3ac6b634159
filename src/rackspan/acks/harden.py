"""The least min.insync.replicas that forces k racks: the guarantee of min.insync.racks on any Kafka, at a cost.

Exact for the current placement, and so valid until replicas move; audit checks it again after that. A partition that is
being reassigned is judged by the target of the reassignment. A lower value is never advised.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from rackspan.acks.spreads import RackSpread, better_spreads
from rackspan.audit import Finding, PartitionBatch, RackPolicy, effective_min_isr, in_order, snapshot_batch
from rackspan.audit.constraints import KnownWords, finding_columns
from rackspan.audit.constraints.remedies import PLACE_ANEW, before_hardening, factor_to_harden, name_uncounted
from rackspan.audit.constraints.survival import SURVIVAL_NAMES
from rackspan.audit.findings import PlanRemedy, Remedy
from rackspan.model import (
    MIN_INSYNC_REPLICAS,
    NO_RACK,
    ClusterSnapshot,
    Int32s,
    Int64s,
    RackId,
    Topic,
    TopicName,
)


class HardenOutcome(StrEnum):
    """What to do about a topic's min.insync.replicas."""

    NOTHING_REQUIRED = "nothing-asked"
    """One rack is enough: every acknowledged record is on one."""
    SUFFICES = "suffices"
    """The current value forces the racks."""
    RAISE = "raise"
    """The least value is above the current one."""
    UNSAFE = "unsafe"
    """The least value is above the current one, and would stop acks=all where it continues now. Something else comes first."""
    ENFORCED = "enforced"
    """The least value is above the current one, but the brokers enforce min.insync.racks themselves."""
    IMPOSSIBLE = "impossible"
    """No value forces the racks: a partition has replicas on too few. Another placement does."""


@dataclass(frozen=True, slots=True)
class RackLossCost:
    """What the loss of one rack stops, with every other replica in sync.

    `stopped_by_value`: partitions that refuse acks=all though min.insync.racks alone would have allowed it: the price of
    hardening. `stopped_by_both`: partitions that refuse it either way, since too few racks are left.
    """

    rack: RackId
    stopped_by_value: int
    stopped_by_both: int


@dataclass(frozen=True, slots=True)
class HardenAdvice:
    """One topic.

    `current` and `least` are values of min.insync.replicas; `least` is what the most demanding partition needs, which is
    `decided_by` (its replicas per rack: `spread`, fullest first, replicas in no rack left out). `least` may exceed
    `smallest_replication_factor`: brokers hold a partition to as many as it has replicas. `too_few_racks` counts partitions
    whose replicas are in fewer racks than required, which makes forcing impossible and `least` meaningless; `moving` counts
    those that are being reassigned. `known`: the snapshot has the current value; else it is judged as 1 and may be any.
    `losses` has an entry for each rack whose loss stops writes, with the larger of `current` and `least` in force; every
    other rack can be lost. It is empty where forcing is impossible. `better` holds spreads that make possible, or survive at the least value, what this placement does not; it is empty where the current
    value is above the least.
    """

    topic: TopicName
    internal: bool
    partitions: int
    smallest_replication_factor: int
    min_insync_racks: int
    enforced: bool
    current: int
    least: int
    decided_by: int
    spread: tuple[int, ...]
    too_few_racks: int
    moving: int
    losses: tuple[RackLossCost, ...]
    better: tuple[RackSpread, ...]
    stopped: int = 0
    refused_at_once: int = 0
    first: str = ""
    known: bool = True

    @property
    def outcome(self) -> HardenOutcome:
        if self.min_insync_racks <= 1:
            return HardenOutcome.NOTHING_REQUIRED
        if self.too_few_racks:
            return HardenOutcome.IMPOSSIBLE
        if self.current >= self.least:
            return HardenOutcome.SUFFICES
        if self.enforced:
            return HardenOutcome.ENFORCED
        return HardenOutcome.UNSAFE if self.stopped or self.refused_at_once else HardenOutcome.RAISE

    @property
    def to_act_on(self) -> bool:
        return self.outcome in (HardenOutcome.RAISE, HardenOutcome.UNSAFE, HardenOutcome.IMPOSSIBLE)

    @property
    def to_set(self) -> bool:
        """Whether `least` can be set now. It might be lower than a current value that is not known."""
        return self.outcome is HardenOutcome.RAISE and self.known


def harden(
    snapshot: ClusterSnapshot, policy: RackPolicy, topic_filter: re.Pattern[str] | None = None
) -> list[HardenAdvice]:
    """Advise every topic that has partitions, internal ones too, in order of name.

    `topic_filter` must match a topic's whole name. Errors: UsageError where the policy refuses the cluster's racks.

    Constraints: whatever subset of a partition's replicas is in sync, if it has as many members as the value, or is all of
    them, it stands on at least k racks.
    Goal: the least such value, over all partitions of the topic.
    Method: the k − 1 fullest racks hold c1 + … + c(k−1) replicas, replicas in no rack are counted as if among them, and
    one more must stand elsewhere. That is at most the partition's own replication factor where its replicas are in k
    racks at all, so that a value which another partition requires, counted as all replicas here, forces them too. Columns
    throughout: a few sorts of the replica matrix.
    Bound: a sort of each row of the replica matrix. Test: tests/acks/test_harden.py.
    Source: min.insync.racks, Motivation ("the operator must set min.insync.replicas=3 (or higher)"), made exact.
    """
    batch = snapshot_batch(snapshot, policy).of_topics(topic_filter).judged
    if len(batch.rows) == 0:
        return []
    return list(_advice(snapshot.topics, batch, _by_topic(batch)))


def values_to_set(advice: Sequence[HardenAdvice]) -> dict[str, int]:
    """min.insync.replicas by topic, where it must rise, can, and stops nothing by it that continues now."""
    return {advised.topic: advised.least for advised in advice if advised.to_set}


def stopped_once_set(snapshot: ClusterSnapshot, policy: RackPolicy, advice: Sequence[HardenAdvice]) -> list[Finding]:
    """What audit finds about losses in the topics whose value would rise, as if it had: where a loss would stop them.

    None of these survives with the present value: a topic with one that does is UNSAFE, and its value is not raised.
    """
    values = values_to_set(advice)
    if not values:
        return []
    raised = tuple(
        replace(topic, config={**topic.config, MIN_INSYNC_REPLICAS: str(values[topic.name])})
        if topic.name in values
        else topic
        for topic in snapshot.topics
    )
    batch = snapshot_batch(replace(snapshot, topics=raised), policy)
    chosen = np.array([topic.name in values for topic in raised], dtype=np.bool_)
    found = finding_columns(batch.take(chosen[batch.rows.topic]), KnownWords())
    return in_order(found.of(SURVIVAL_NAMES))


@dataclass(frozen=True, slots=True)
class _Topics:
    """Each topic that has partitions, in columns of shape (T,): its code, and sums or extremes over its partitions."""

    code: Int32s
    partitions: Int64s
    smallest_factor: Int64s
    largest_factor: Int64s
    least: Int64s
    deciding_row: Int64s
    too_few_racks: Int64s
    moving: Int64s
    stopped: Int64s
    refused_at_once: Int64s


def _by_topic(batch: PartitionBatch) -> _Topics:
    code, first, partitions = np.unique(batch.rows.topic, return_index=True, return_counts=True)
    # A snapshot's partitions are ordered by topic, so that each topic is one run of rows.
    least = np.maximum.reduceat(batch.forcing_value, first)
    deciding = np.flatnonzero(batch.forcing_value == np.repeat(least, partitions))
    _, first_deciding = np.unique(batch.rows.topic[deciding], return_index=True)
    required = batch.required.min_insync_racks
    return _Topics(
        code=code,
        partitions=partitions,
        smallest_factor=np.minimum.reduceat(batch.replication_factor, first),
        largest_factor=np.maximum.reduceat(batch.replication_factor, first),
        least=least,
        deciding_row=deciding[first_deciding],
        too_few_racks=np.add.reduceat((required > 1) & (batch.replica_rack_count < required), first, dtype=np.int64),
        moving=np.add.reduceat(batch.reassigning, first, dtype=np.int64),
        stopped=np.add.reduceat(batch.stopped_by_hardening, first, dtype=np.int64),
        refused_at_once=np.add.reduceat(batch.refused_by_hardening, first, dtype=np.int64),
    )


def _advice(topics: tuple[Topic, ...], batch: PartitionBatch, columns: _Topics) -> Iterator[HardenAdvice]:
    losses = _losses(batch, columns)
    rack_sizes = tuple(batch.members.rack_map.sizes.tolist())
    for index, code in enumerate(columns.code.tolist()):
        topic, row = topics[code], int(columns.deciding_row[index])
        advice = HardenAdvice(
            topic=topic.name,
            internal=topic.internal,
            partitions=int(columns.partitions[index]),
            smallest_replication_factor=int(columns.smallest_factor[index]),
            min_insync_racks=int(batch.required.min_insync_racks[row]),
            enforced=bool(batch.required.enforced[row]),
            current=int(batch.required.min_insync_replicas[row]),
            least=int(columns.least[index]),
            decided_by=int(batch.rows.partition[row]),
            spread=tuple(count for count in batch.replica_rack_counts[row].tolist() if count),
            too_few_racks=int(columns.too_few_racks[index]),
            moving=int(columns.moving[index]),
            losses=losses.get(code, ()),
            better=(),
            stopped=int(columns.stopped[index]),
            refused_at_once=int(columns.refused_at_once[index]),
            known=bool(batch.required.known[row]),
        )
        if advice.outcome is HardenOutcome.UNSAFE:
            first = before_hardening(batch, code)
            spread = _spread_first(batch, first, row, advice.min_insync_racks)
            yield replace(advice, first=str(first), better=spread)
        else:
            better = _better(advice, rack_sizes, int(columns.largest_factor[index]))
            # No plan moves a replica that counts in no rack.
            first = (name_uncounted(batch, code) if better else "") or _lower_first(advice, sum(rack_sizes))
            # Nor one of a topic whose placement is left alone.
            first = first or (PLACE_ANEW if better and batch.required.left_alone[row] else "")
            yield replace(advice, first=first, better=() if first else better)


def _lower_first(advice: HardenAdvice, brokers: int) -> str:
    """Before the replicas of a topic that requires more of them than there are brokers can be placed at all."""
    if advice.outcome is not HardenOutcome.IMPOSSIBLE or advice.current <= brokers:
        return ""
    return f"lower {MIN_INSYNC_REPLICAS} to {brokers}, as many as there are brokers in racks"


def _spread_first(batch: PartitionBatch, first: Remedy, row: int, k: int) -> tuple[RackSpread, ...]:
    """The spread that the plan before hardening leads to, if there is one."""
    factor = factor_to_harden(batch, row)
    if factor is None or not isinstance(first, PlanRemedy):
        return ()
    return (RackSpread(tuple(spread for spread in batch.members.even_counts(factor) if spread), k),)


def _losses(batch: PartitionBatch, columns: _Topics) -> dict[int, tuple[RackLossCost, ...]]:
    """By topic code, the racks whose loss stops writes, by name. One entry of work a replica, however many racks there are."""
    row, rack, held = _racks_held(batch.replica_racks)
    required = batch.required.min_insync_racks
    value = np.maximum(np.repeat(columns.least, columns.partitions), batch.required.min_insync_replicas)
    min_isr = effective_min_isr(value, batch.replication_factor)
    judged = (required > 1) & np.repeat(columns.too_few_racks == 0, columns.partitions)
    stopped = judged[row] & (batch.replication_factor[row] - held < min_isr[row])
    row, rack = row[stopped], rack[stopped]
    by_both = batch.replica_rack_count[row] - 1 < required[row]
    names = batch.members.rack_map.racks
    cells, place = np.unique(batch.rows.topic[row].astype(np.int64) * len(names) + rack, return_inverse=True)
    both = np.bincount(place[by_both], minlength=len(cells))
    by_value = np.bincount(place, minlength=len(cells)) - both
    costs: dict[int, list[RackLossCost]] = {}
    for cell, alone, anyway in zip(cells.tolist(), by_value.tolist(), both.tolist(), strict=True):
        costs.setdefault(cell // len(names), []).append(RackLossCost(names[cell % len(names)], alone, anyway))
    return {code: tuple(listed) for code, listed in costs.items()}


def _racks_held(rack_codes: Int32s) -> tuple[Int64s, Int32s, Int64s]:
    """Each partition's racks as (row, rack code, replicas held), from a (P, width) matrix of rack codes."""
    ordered = np.sort(rack_codes)
    starts = ordered != NO_RACK
    starts[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    row, column = np.nonzero(starts)
    rack = ordered[row, column]
    run_ids = np.cumsum(starts.ravel()) - 1
    counted = (ordered != NO_RACK).ravel()
    return row, rack, np.bincount(run_ids[counted])


def _better(advice: HardenAdvice, rack_sizes: tuple[int, ...], replication_factor: int) -> tuple[RackSpread, ...]:
    """What would be gained by placing the topic otherwise; nothing where any rack can be lost already."""
    content = not advice.losses or advice.current > advice.least
    if content and advice.outcome is not HardenOutcome.IMPOSSIBLE:
        return ()
    factor = max(replication_factor, advice.current)
    return tuple(
        better_spread
        for better_spread in _better_spreads(rack_sizes, advice.min_insync_racks, factor)
        if _gains(better_spread, advice)
    )


_better_spreads = lru_cache(better_spreads)
"""The topics of a cluster have few different arguments."""


def _gains(spread: RackSpread, advice: HardenAdvice) -> bool:
    # No plan leaves a partition fewer replicas than its topic requires in sync.
    if spread.replication_factor < advice.current:
        return False
    # A spread that takes acks=all after the loss of a rack until its own value is set only leads to the next refusal.
    spared = spread.replication_factor - spread.counts[0]
    if len(spread.counts) > advice.min_insync_racks and advice.current <= spared < spread.least:
        return False
    if advice.outcome is HardenOutcome.IMPOSSIBLE or spread.survives_rack:
        return True
    return spread.survives_broker and advice.least >= advice.smallest_replication_factor
