"""What changed between two snapshots of one cluster, and which partitions it made safer or less safe.

Constraints: `safety-lost` and `safety-gained` stand for exactly the partitions whose state (durability.py) got worse or
better; one that appears at risk has lost, one that disappears at risk has gained. A cause names another change of the same
two snapshots, or `several`. Goal: the change to look at first. Method: causes.py. Bound: a few passes over the
columns, and one step a change. Source: our own; Kafka keeps no such history. Tests: tests/audit/drift/test_compare.py, against
plain loops over the JSON (tests/audit/brute_force_drift.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch
from rackspan.audit.drift.causes import PartitionPair, isr_change, leader_change, replica_change, safety_causes
from rackspan.audit.durability import OK, STATES, states
from rackspan.model import NO_BROKER, Bools, Int32s, PartitionColumns, any_in_row
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


def partition_changes(twice: PartitionPair) -> Iterator[tuple[int, Change]]:
    """Changes of the partitions that are in both snapshots, each with its row."""
    # By row, then in the order of the three kinds.
    for row, _kind, change in sorted(_own_changes(twice), key=itemgetter(0, 1)):
        yield row, change
    for row, worse, why, broker in safety_causes(twice):
        name = "safety-lost" if worse else "safety-gained"
        words = [STATES[int(side[row])] for side in (twice.states_before, twice.states_after)]
        named = twice.after.topic(row), int(twice.after.rows.partition[row])
        yield row, Change(name, *named, None, words[0], words[1], why, broker)


def rows_that_differ(before: PartitionColumns, after: PartitionColumns) -> Bools:
    """Which partitions have another leader, other replicas or another ISR. Row for row the same partitions. Shape (P,)."""
    replicas, isr = lists_that_differ(before.replicas, after.replicas), lists_that_differ(before.isr, after.isr)
    return np.asarray((before.leader != after.leader) | replicas | isr)


def lists_that_differ(before: Int32s, after: Int32s) -> Bools:
    """Which rows of two padded matrices differ, whatever the widths. Shape (P,)."""
    width = min(before.shape[1], after.shape[1])
    differ = any_in_row(before[:, :width] != after[:, :width])
    # The wider matrix has lists that are longer, or padding.
    return differ | any_in_row(before[:, width:] != NO_BROKER) | any_in_row(after[:, width:] != NO_BROKER)


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


def _own_changes(twice: PartitionPair) -> Iterator[tuple[int, int, Change]]:
    """Changes of replicas, ISR and leader, each with its row and the place of its kind."""
    before, after = twice.before.rows, twice.after.rows
    for kind, (change_of, old, new) in enumerate(
        ((replica_change, before.replicas, after.replicas), (isr_change, before.isr, after.isr))
    ):
        in_order = sorted if change_of is isr_change else list
        rows = np.flatnonzero(lists_that_differ(old, new))
        for row, was, now in zip(rows.tolist(), unpadded_rows(old[rows]), unpadded_rows(new[rows]), strict=True):
            if (name := change_of(was, now)) is not None:
                yield row, kind, _change(twice, row, name, _listed(in_order(was)), _listed(in_order(now)))
    for row in np.flatnonzero(before.leader != after.leader).tolist():
        leaders = int(before.leader[row]), int(after.leader[row])
        if (name := leader_change(*leaders)) is not None:
            yield row, 2, _change(twice, row, name, *map(_leader, leaders))


def _change(twice: PartitionPair, row: int, name: str, before: str | None, after: str | None) -> Change:
    return Change(name, twice.after.topic(row), int(twice.after.rows.partition[row]), None, before, after)


def _at_risk(batch: PartitionBatch) -> Iterator[tuple[int, str]]:
    codes = states(batch)
    for row in np.flatnonzero(codes != STATES.index(OK)).tolist():
        yield row, STATES[int(codes[row])]


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _leader(leader: int) -> str | None:
    return None if leader == NO_BROKER else str(leader)
