"""The least native min.insync.replicas that forces k racks: the strength of min.insync.racks on any Kafka, at a price.

Exact for the placement as it is, and so true until replicas move; audit finds it again when they have. A partition that
is being reassigned is judged by where that leads, as everywhere. Nothing here ever advises a lower value.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np

from rackspan.acks.spreads import Spread, better_spreads
from rackspan.audit.batch import PartitionBatch, effective_min_isr, snapshot_batch
from rackspan.audit.policy import RackPolicy
from rackspan.model.ids import NO_BROKER, RackId, TopicName
from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.model.racks import NO_RACK
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.model.topic import Topic


class Outcome(StrEnum):
    """What is to be done about a topic's min.insync.replicas."""

    NOTHING_ASKED = "nothing-asked"
    """One rack is enough: every acknowledged record is on one."""
    SUFFICES = "suffices"
    """The current value forces the racks."""
    RAISE = "raise"
    """The least value is above the current one."""
    ENFORCED = "enforced"
    """The least value is above the current one, but the brokers enforce min.insync.racks themselves."""
    IMPOSSIBLE = "impossible"
    """No value forces the racks: a partition stands on too few. Another placement does."""


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
    whose replicas stand on fewer racks than asked, which makes forcing impossible and `least` meaningless; `moving` counts
    those that are being reassigned. `losses` has an entry for each rack whose loss stops writes, with the larger of
    `current` and `least` in force; every other rack can be lost. It is empty where forcing is impossible. `better` holds
    spreads that make possible, or survive at the least value, what this placement does not; it is empty where the current
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
    better: tuple[Spread, ...]

    @property
    def outcome(self) -> Outcome:
        if self.min_insync_racks <= 1:
            return Outcome.NOTHING_ASKED
        if self.too_few_racks:
            return Outcome.IMPOSSIBLE
        if self.current >= self.least:
            return Outcome.SUFFICES
        return Outcome.ENFORCED if self.enforced else Outcome.RAISE

    @property
    def to_act_on(self) -> bool:
        return self.outcome in (Outcome.RAISE, Outcome.IMPOSSIBLE)


def harden(
    snapshot: ClusterSnapshot, policy: RackPolicy, topic_filter: re.Pattern[str] | None = None
) -> list[HardenAdvice]:
    """Advise every topic that has partitions, internal ones too, in order of name.

    `topic_filter` must match a topic's whole name. Errors: UsageError where the policy refuses the cluster's racks.

    Constraints: whatever subset of a partition's replicas is in sync, if it has as many members as the value, or is all of
    them, it stands on at least k racks.
    Goal: the least such value, over all partitions of the topic.
    Method: the k − 1 fullest racks hold c1 + … + c(k−1) replicas, replicas in no rack are counted as if among them, and
    one more must stand elsewhere. That is at most the partition's own replication factor where its replicas stand on k
    racks at all, so that a value which another partition asks for, counted as all replicas here, forces them too. Columns
    throughout: a few sorts of the replica matrix.
    Source: min.insync.racks, Motivation ("the operator must set min.insync.replicas=3 (or higher)"), made exact.
    """
    seen = _matching(snapshot_batch(snapshot, policy), topic_filter)
    if len(seen.rows) == 0:
        return []
    return list(_advice(snapshot.topics, seen, _by_topic(seen)))


def values_to_set(advice: Sequence[HardenAdvice]) -> dict[str, int]:
    """min.insync.replicas by topic, where it must rise and can."""
    return {one.topic: one.least for one in advice if one.outcome is Outcome.RAISE}


@dataclass(frozen=True, slots=True)
class _Topics:
    """Facts of each topic that has partitions, shape (T,): `code`, and what its partitions come to."""

    code: Int32s
    partitions: Int64s
    smallest_factor: Int64s
    largest_factor: Int64s
    least: Int64s
    deciding_row: Int64s
    too_few_racks: Int64s
    moving: Int64s


def _matching(seen: PartitionBatch, topic_filter: re.Pattern[str] | None) -> PartitionBatch:
    if topic_filter is None:
        return seen
    wanted = np.array([topic_filter.fullmatch(topic) is not None for topic in seen.topics], dtype=np.bool_)
    rows = np.flatnonzero(wanted[seen.rows.topic])
    asked = seen.required.of(rows.astype(np.int32))
    return replace(seen, rows=seen.rows.take(rows), required=asked)


def _by_topic(seen: PartitionBatch) -> _Topics:
    code, first, partitions = np.unique(seen.rows.topic, return_index=True, return_counts=True)
    # A snapshot's partitions are ordered by topic, so that each topic is one run of rows.
    least = np.maximum.reduceat(seen.forcing_value, first)
    deciding = np.flatnonzero(seen.forcing_value == np.repeat(least, partitions))
    _, first_deciding = np.unique(seen.rows.topic[deciding], return_index=True)
    asked = seen.required.min_insync_racks
    return _Topics(
        code=code,
        partitions=partitions,
        smallest_factor=np.minimum.reduceat(seen.replication_factor, first),
        largest_factor=np.maximum.reduceat(seen.replication_factor, first),
        least=least,
        deciding_row=deciding[first_deciding],
        too_few_racks=np.add.reduceat(((asked > 1) & (seen.replica_rack_count < asked)).astype(np.int64), first),
        moving=np.add.reduceat(_moving(seen).astype(np.int64), first),
    )


def _moving(seen: PartitionBatch) -> Bools:
    adding, removing = seen.rows.adding_replicas, seen.rows.removing_replicas
    return np.asarray((adding != NO_BROKER).any(axis=1) | (removing != NO_BROKER).any(axis=1))


def _advice(topics: tuple[Topic, ...], seen: PartitionBatch, facts: _Topics) -> Iterator[HardenAdvice]:
    losses = _losses(seen, facts)
    rack_sizes = tuple(seen.members.rack_map.sizes.tolist())
    for index, code in enumerate(facts.code.tolist()):
        topic, row = topics[code], int(facts.deciding_row[index])
        advice = HardenAdvice(
            topic=topic.name,
            internal=topic.internal,
            partitions=int(facts.partitions[index]),
            smallest_replication_factor=int(facts.smallest_factor[index]),
            min_insync_racks=int(seen.required.min_insync_racks[row]),
            enforced=bool(seen.required.enforced[row]),
            current=int(seen.required.min_insync_replicas[row]),
            least=int(facts.least[index]),
            decided_by=int(seen.rows.partition[row]),
            spread=tuple(count for count in seen.replica_rack_counts[row].tolist() if count),
            too_few_racks=int(facts.too_few_racks[index]),
            moving=int(facts.moving[index]),
            losses=losses.get(code, ()),
            better=(),
        )
        yield replace(advice, better=_better(advice, rack_sizes, int(facts.largest_factor[index])))


def _losses(seen: PartitionBatch, facts: _Topics) -> dict[int, tuple[RackLossCost, ...]]:
    """By topic code, the racks whose loss stops writes, by name. One entry of work a replica, however many racks there are."""
    row, rack, held = _held(seen.replica_racks)
    asked = seen.required.min_insync_racks
    value = np.maximum(np.repeat(facts.least, facts.partitions), seen.required.min_insync_replicas)
    min_isr = effective_min_isr(value, seen.replication_factor)
    judged = (asked > 1) & np.repeat(facts.too_few_racks == 0, facts.partitions)
    stopped = judged[row] & (seen.replication_factor[row] - held < min_isr[row])
    row, rack = row[stopped], rack[stopped]
    by_both = seen.replica_rack_count[row] - 1 < asked[row]
    names = seen.members.rack_map.racks
    cells, place = np.unique(seen.rows.topic[row].astype(np.int64) * len(names) + rack, return_inverse=True)
    both = np.bincount(place, weights=by_both, minlength=len(cells)).astype(np.int64)
    by_value = np.bincount(place, minlength=len(cells)) - both
    costs: dict[int, list[RackLossCost]] = {}
    for cell, alone, anyway in zip(cells.tolist(), by_value.tolist(), both.tolist(), strict=True):
        costs.setdefault(cell // len(names), []).append(RackLossCost(names[cell % len(names)], alone, anyway))
    return {code: tuple(listed) for code, listed in costs.items()}


def _held(rack_codes: Int32s) -> tuple[Int64s, Int32s, Int64s]:
    """Each partition's racks as (row, rack code, replicas held), from a (P, width) matrix of rack codes."""
    ordered = np.sort(rack_codes, axis=1)
    starts = ordered != NO_RACK
    starts[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    row, column = np.nonzero(starts)
    rack = ordered[row, column]
    run_ids = np.cumsum(starts.ravel()) - 1
    counted = (ordered != NO_RACK).ravel()
    return row, rack, np.bincount(run_ids[counted], minlength=len(row))


def _better(advice: HardenAdvice, rack_sizes: tuple[int, ...], replication_factor: int) -> tuple[Spread, ...]:
    """What would be gained by placing the topic otherwise; nothing where any rack can be lost already."""
    content = not advice.losses or advice.current > advice.least
    if advice.min_insync_racks <= 1 or (content and advice.outcome is not Outcome.IMPOSSIBLE):
        return ()
    return tuple(
        one for one in _better_spreads(rack_sizes, advice.min_insync_racks, replication_factor) if _gains(one, advice)
    )


_better_spreads = lru_cache(maxsize=1024)(better_spreads)
"""A fleet's topics ask few different things."""


def _gains(spread: Spread, advice: HardenAdvice) -> bool:
    if advice.outcome is Outcome.IMPOSSIBLE or spread.survives_rack:
        return True
    return spread.survives_broker and advice.least >= advice.smallest_replication_factor
