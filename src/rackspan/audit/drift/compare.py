"""Every change between two whole snapshots of one cluster; changes.py has the rule for each kind of change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from rackspan.audit.batch import PartitionBatch, Requirements, requirements, snapshot_batch
from rackspan.audit.drift.causes import RECREATED, PartitionPair
from rackspan.audit.drift.changes import (
    Change,
    OwnChanges,
    TopicSummary,
    appeared,
    disappeared,
    member_changes,
    own_partition_changes,
    recreated,
    rows_that_differ,
    safety_changes,
    topic_changes,
)
from rackspan.audit.drift.unread import Unread, is_known, unread
from rackspan.audit.policy import RackPolicy
from rackspan.model import Bools, ClusterSnapshot, Int64s


@dataclass(frozen=True, slots=True)
class DriftSide:
    """One of two compared snapshots, or the same topics of both: its partitions, its topics by name, and what it could not read."""

    batch: PartitionBatch
    topics: Mapping[str, TopicSummary]
    lacks: Unread


def drift(before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy) -> list[Change]:
    """Every change from one snapshot to a later one of the same cluster. Errors: UsageError where the policy refuses one.

    What either of them could not read is no change (unread.py).
    """
    sides = [_side(before, policy), _side(after, policy)]
    return [*changed_members(*sides), *changed_topics(*sides)]


def _side(snapshot: ClusterSnapshot, policy: RackPolicy) -> DriftSide:
    batch, required = snapshot_batch(snapshot, policy), requirements(snapshot.topics, policy)
    ids = [topic.topic_id for topic in snapshot.topics]
    return DriftSide(batch, topic_summaries(batch, ids, required), unread(snapshot.partial))


def topic_summaries(
    batch: PartitionBatch, ids: Sequence[str | None], required: Requirements
) -> dict[str, TopicSummary]:
    """The topics of a batch by name. `ids` and `required` have one entry a topic code."""
    counts = np.bincount(batch.rows.topic, minlength=len(batch.topics)).tolist()
    columns = counts, required.min_insync_replicas.tolist(), required.min_insync_racks.tolist()
    return {name: TopicSummary(*row) for name, *row in zip(batch.topics, ids, *columns, strict=True)}


def changed_members(before: DriftSide, after: DriftSide) -> Iterator[Change]:
    """The changes of brokers and voters."""
    changes = member_changes(before.batch.members, after.batch.members)
    return (change for change in changes if is_known(change, before.lacks, after.lacks))


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """The changes of topics and partitions: of whole topics, of partitions' own columns, and of their safety."""

    of_topics: Sequence[Change]
    own: OwnChanges
    of_safety: Sequence[Change]

    def __iter__(self) -> Iterator[Change]:
        return chain(self.of_topics, self.own, self.of_safety)


def changed_topics(before: DriftSide, after: DriftSide) -> TopicChanges:
    """The changes of topics and partitions. Both sides hold each of their topics completely."""

    def known(changes: Iterable[Change]) -> list[Change]:
        return [change for change in changes if is_known(change, before.lacks, after.lacks)]

    found = _differences(before, after)
    # The columns of partitions are read with all of their topics, or not at all.
    return TopicChanges(known(found.of_topics), found.own, known(found.of_safety))


def _differences(before: DriftSide, after: DriftSide) -> TopicChanges:
    old, new = before.batch, after.batch
    old_rows, new_rows = _rows_in_both(old, new)
    kept = np.bincount(new.rows.topic[new_rows], minlength=len(new.topics)).tolist()
    kept_by_topic = dict(zip(new.topics, kept, strict=True))
    of_topics = [
        change
        for name in sorted({*before.topics, *after.topics})
        for change in topic_changes(name, before.topics.get(name), after.topics.get(name), kept_by_topic.get(name, 0))
    ]
    whole_topics = _whole_topic_changes(before.topics, after.topics)
    recreated_topics = np.array([whole_topics.get(name) == RECREATED for name in new.topics], dtype=np.bool_)
    kept_old, kept_new = _that_may_differ(old.take(old_rows), new.take(new_rows))
    pair = PartitionPair(kept_old, kept_new, recreated_topics[kept_new.rows.topic])
    gone, added = old.take(_other_rows(old, old_rows)), new.take(_other_rows(new, new_rows))
    of_safety = chain(
        safety_changes(pair),
        appeared(added, _by_row(added, whole_topics)),
        disappeared(gone, _by_row(gone, whole_topics)),
    )
    return TopicChanges(of_topics, own_partition_changes(pair), [change for _row, change in of_safety])


def _that_may_differ(before: PartitionBatch, after: PartitionBatch) -> tuple[PartitionBatch, PartitionBatch]:
    """The partitions of which a state may differ: all of them where members do. Most snapshots equal the one before."""
    if before.members != after.members:
        return before, after
    old, new = before.required, after.required
    minimums = (old.min_insync_replicas != new.min_insync_replicas) | (old.min_insync_racks != new.min_insync_racks)
    rows = np.flatnonzero(minimums | rows_that_differ(before.rows, after.rows))
    return before.take(rows), after.take(rows)


def _whole_topic_changes(before: Mapping[str, TopicSummary], after: Mapping[str, TopicSummary]) -> dict[str, str]:
    """The change of each topic that was created, deleted or recreated, by topic name."""
    return {
        **dict.fromkeys(after.keys() - before.keys(), "topic-created"),
        **dict.fromkeys(before.keys() - after.keys(), "topic-deleted"),
        **{name: RECREATED for name in after.keys() & before.keys() if recreated(before[name], after[name])},
    }


def _rows_in_both(before: PartitionBatch, after: PartitionBatch) -> tuple[Int64s, Int64s]:
    """The rows of the partitions that are in both batches, in the order of the later: those of the earlier and of the later."""
    code_of = {name: code for code, name in enumerate(after.topics)}
    codes = np.array([code_of.get(name, -1) for name in before.topics], dtype=np.int64)
    # A topic code and a partition id have 31 bits each.
    earlier = (codes[before.rows.topic] << 32) | before.rows.partition
    later = (after.rows.topic.astype(np.int64) << 32) | after.rows.partition
    if np.array_equal(earlier, later):
        every = np.arange(len(later))
        return every, every
    _, rows_before, rows_after = np.intersect1d(earlier, later, return_indices=True)
    order = np.argsort(rows_after)
    return rows_before[order], rows_after[order]


def _other_rows(batch: PartitionBatch, rows: Int64s) -> Bools:
    others = np.ones(len(batch.rows), dtype=np.bool_)
    others[rows] = False
    return others


def _by_row(batch: PartitionBatch, whole_topics: dict[str, str]) -> list[str | None]:
    """The change of each row's whole topic, None where the topic stayed."""
    return [whole_topics.get(batch.topics[topic]) for topic in batch.rows.topic.tolist()]
