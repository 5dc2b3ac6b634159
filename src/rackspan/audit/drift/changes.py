"""What changed between two snapshots of one cluster, and which partitions it made safer or less safe.

Constraints: `safety-lost` and `safety-gained` stand for exactly the partitions whose state (durability.py) got worse or
better; one that appears at risk has lost, one that disappears at risk has gained. A cause names another change of the same
two snapshots, or `several`. Goal: the change to look at first. Method: causes.py. Bound: a few passes over the
columns, and one step a change. Source: our own; Kafka keeps no such history. Tests: tests/audit/drift/test_compare.py, against
plain loops over the JSON (tests/audit/brute_force_drift.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch
from rackspan.audit.drift.causes import (
    PartitionPair,
    isr_changes,
    leader_changes,
    lists_that_differ,
    replica_changes,
    safety_causes,
)
from rackspan.audit.durability import OK, STATES, states
from rackspan.model import NO_BROKER, Bools, Int32s, Int64s, PartitionColumns
from rackspan.model.partitions import unpadded_rows

CHANGES: Final[Mapping[str, str]] = {
    "safety-lost": "a partition's state got worse, or it appeared in a state other than `ok`; before and after are states",
    "safety-gained": "a partition's state got better, or it disappeared in a state other than `ok`",
    "broker-appeared": "after is its rack",
    "broker-gone": "before was its rack",
    "broker-rack-changed": "before and after are racks",
    "broker-fenced": "the broker no longer leads or follows",
    "broker-unfenced": "it does again",
    "voter-appeared": "a controller may vote; after is its rack",
    "voter-gone": "it no longer may; before was its rack",
    "voter-rack-changed": "before and after are racks",
    "topic-created": "after is its number of partitions",
    "topic-deleted": "before was its number of partitions",
    "topic-recreated": "before and after are topic ids",
    "partitions-added": "before and after are numbers of partitions",
    "partitions-removed": "the same; Kafka itself removes none, so the topic was created again or a snapshot is partial",
    "min-insync-replicas-changed": "before and after are the numbers in effect",
    "min-insync-racks-changed": "the same",
    "replicas-moved": "other brokers hold the partition; before and after are broker ids in assignment order",
    "replicas-reordered": "the same brokers in another order",
    "isr-shrunk": "before and after are broker ids, ascending",
    "isr-expanded": "the same",
    "isr-changed": "some left and some joined",
    "leader-lost": "before was the leader",
    "leader-elected": "after is the leader, before there was none",
    "leader-moved": "before and after are leaders",
}
"""Every change, and what its `before` and `after` hold."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change. Fields that do not apply are None; `broker` is a controller id in the voter changes."""

    change: str
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    before: str | None = None
    after: str | None = None
    cause: str | None = None
    cause_broker: int | None = None


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in one snapshot, with the minimums in effect."""

    topic_id: str | None
    partitions: int
    min_insync_replicas: int
    min_insync_racks: int


def member_changes(before: ClusterMembers, after: ClusterMembers) -> Iterator[Change]:
    """Changes of brokers, and of controllers that vote."""
    brokers = (
        {int(broker.id): broker.rack for broker in before.brokers},
        {int(broker.id): broker.rack for broker in after.brokers},
    )
    fenced = [{int(broker.id) for broker in side.brokers if broker.fenced} for side in (before, after)]
    yield from _broker_changes("broker", *brokers)
    for broker in sorted(set(brokers[0]) & set(brokers[1]) & (fenced[0] ^ fenced[1])):
        yield Change("broker-fenced" if broker in fenced[1] else "broker-unfenced", broker=broker)
    yield from _broker_changes("voter", before.voter_racks, after.voter_racks)


def topic_changes(topic: str, before: TopicSummary | None, after: TopicSummary | None, kept: int) -> Iterator[Change]:
    """Changes of one topic as a whole. `kept` of its partitions are in both snapshots."""
    if before is None or after is None:
        yield from _came_or_went(topic, before, after)
        return
    if recreated(before, after):
        yield Change("topic-recreated", topic, before=before.topic_id, after=after.topic_id)
    counts = str(before.partitions), str(after.partitions)
    if after.partitions > kept:
        yield Change("partitions-added", topic, None, None, *counts)
    if before.partitions > kept:
        yield Change("partitions-removed", topic, None, None, *counts)
    for name in ("min_insync_replicas", "min_insync_racks"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield Change(f"{name.replace('_', '-')}-changed", topic, before=str(old), after=str(new))


def recreated(before: TopicSummary, after: TopicSummary) -> bool:
    """Whether both snapshots have the topic's id, and the two differ."""
    return None not in (before.topic_id, after.topic_id) and before.topic_id != after.topic_id


@dataclass(frozen=True, slots=True)
class OwnChanges:
    """Changes of replicas, ISRs and leaders, in order of partition and of these. `rows` are rows of the batch; one entry a change in each."""

    batch: PartitionBatch
    rows: Int64s
    names: Sequence[str]
    before: Sequence[str | None]
    after: Sequence[str | None]

    def __iter__(self) -> Iterator[Change]:
        columns = self.batch.rows.topic[self.rows].tolist(), self.batch.rows.partition[self.rows].tolist()
        for name, topic, partition, before, after in zip(self.names, *columns, self.before, self.after, strict=True):
            yield Change(name, self.batch.topics[topic], partition, None, before, after)


def own_partition_changes(twice: PartitionPair) -> OwnChanges:
    """Changes of the replicas, ISRs and leaders of the partitions that are in both snapshots."""
    before, after = twice.before.rows, twice.after.rows
    rows: list[int] = []
    names: list[str | None] = []
    sides: tuple[list[str | None], list[str | None]] = ([], [])
    for names_of, words_of, old, new in (
        (replica_changes, _in_assignment_order, before.replicas, after.replicas),
        (isr_changes, _ascending, before.isr, after.isr),
        (leader_changes, _leaders, before.leader, after.leader),
    ):
        differ = np.flatnonzero(old != new if old.ndim == 1 else lists_that_differ(old, new))
        rows += differ.tolist()
        names += names_of(old[differ], new[differ])
        for side, matrix in zip(sides, (old, new), strict=True):
            side += words_of(matrix[differ])
    # In order of the row; those of one row are in order of the three kinds already.
    order = [place for place in np.argsort(rows, kind="stable").tolist() if names[place] is not None]
    return OwnChanges(
        twice.after,
        np.array(rows, dtype=np.int64)[order],
        [name for name in map(names.__getitem__, order) if name is not None],
        *([side[place] for place in order] for side in sides),
    )


def safety_changes(twice: PartitionPair) -> Iterator[tuple[int, Change]]:
    """The partitions of both snapshots whose state got worse or better, each with its row."""
    for row, worse, why, broker in safety_causes(twice):
        name = "safety-lost" if worse else "safety-gained"
        words = [STATES[int(side[row])] for side in (twice.states_before, twice.states_after)]
        named = twice.after.topic(row), int(twice.after.rows.partition[row])
        yield row, Change(name, *named, None, words[0], words[1], why, broker)


def rows_that_differ(before: PartitionColumns, after: PartitionColumns) -> Bools:
    """Which partitions have another leader, other replicas or another ISR. Row for row the same partitions. Shape (P,)."""
    replicas, isr = lists_that_differ(before.replicas, after.replicas), lists_that_differ(before.isr, after.isr)
    return np.asarray((before.leader != after.leader) | replicas | isr)


def appeared(after: PartitionBatch, topics: Sequence[str | None]) -> Iterator[tuple[int, Change]]:
    """Partitions of the later snapshot alone that are at risk. `topics` holds the change of each row's whole topic."""
    for row, state in _at_risk(after):
        named = after.topic(row), int(after.rows.partition[row])
        yield row, Change("safety-lost", *named, after=state, cause=topics[row] or "partitions-added")


def disappeared(before: PartitionBatch, topics: Sequence[str | None]) -> Iterator[tuple[int, Change]]:
    """Partitions of the earlier snapshot alone that were at risk. `topics` as in `appeared`."""
    for row, state in _at_risk(before):
        named = before.topic(row), int(before.rows.partition[row])
        yield row, Change("safety-gained", *named, before=state, cause=topics[row] or "partitions-removed")


def _broker_changes(noun: str, before: Mapping[int, str | None], after: Mapping[int, str | None]) -> Iterator[Change]:
    for broker in sorted({*before, *after}):
        if broker not in before:
            yield Change(f"{noun}-appeared", broker=broker, after=after[broker])
        elif broker not in after:
            yield Change(f"{noun}-gone", broker=broker, before=before[broker])
        elif before[broker] != after[broker]:
            yield Change(f"{noun}-rack-changed", broker=broker, before=before[broker], after=after[broker])


def _came_or_went(topic: str, before: TopicSummary | None, after: TopicSummary | None) -> Iterator[Change]:
    if before is not None:
        yield Change("topic-deleted", topic, before=str(before.partitions))
    if after is not None:
        yield Change("topic-created", topic, after=str(after.partitions))


def _at_risk(batch: PartitionBatch) -> Iterator[tuple[int, str]]:
    codes = states(batch)
    for row in np.flatnonzero(codes != STATES.index(OK)).tolist():
        yield row, STATES[int(codes[row])]


def _in_assignment_order(brokers: Int32s) -> list[str | None]:
    return _listed(brokers, tuple)


def _ascending(brokers: Int32s) -> list[str | None]:
    return _listed(brokers, sorted)


def _listed(brokers: Int32s, in_order: Callable[[tuple[int, ...]], Iterable[int]]) -> list[str | None]:
    """Each row in words; most rows are as another one."""
    rows = unpadded_rows(brokers)
    words: dict[tuple[int, ...], str | None] = {row: ",".join(map(str, in_order(row))) for row in set(rows)}
    return [words[row] for row in rows]


def _leaders(leaders: Int32s) -> list[str | None]:
    return [None if leader == NO_BROKER else str(leader) for leader in leaders.tolist()]
