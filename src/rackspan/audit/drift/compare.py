"""Every change between two whole snapshots of one cluster; changes.py has the rule for each kind of change."""

from collections.abc import Iterator

import numpy as np

from rackspan.audit.batch import PartitionBatch, requirements, snapshot_batch
from rackspan.audit.drift.causes import RECREATED, PartitionPair
from rackspan.audit.drift.changes import (
    Change,
    TopicSummary,
    appeared,
    disappeared,
    member_changes,
    partition_changes,
    recreated,
    topic_changes,
)
from rackspan.audit.drift.unread import is_known, unread
from rackspan.audit.policy import RackPolicy
from rackspan.model import Bools, ClusterSnapshot, Int64s


def drift(before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy) -> list[Change]:
    """Every change from one snapshot to a later one of the same cluster. Errors: UsageError where the policy refuses one.

    What either of them could not read is no change (unread.py).
    """
    lacks = unread(before.partial), unread(after.partial)
    return [one for one in _differences(before, after, policy) if is_known(one, *lacks)]


def _differences(before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy) -> list[Change]:
    old, new = snapshot_batch(before, policy), snapshot_batch(after, policy)
    old_topics, new_topics = _topics(before, policy), _topics(after, policy)
    old_rows, new_rows = _rows_in_both(old, new)
    kept_old, kept_new = old.take(old_rows), new.take(new_rows)
    whole_topics = _whole_topic_changes(old_topics, new_topics)
    gone, added = old.take(_other_rows(old, old_rows)), new.take(_other_rows(new, new_rows))
    recreated_topics = np.array([whole_topics.get(name) == RECREATED for name in new.topics], dtype=np.bool_)
    counted = np.bincount(kept_new.rows.topic, minlength=len(new.topics))
    kept_by_topic = dict(zip(new.topics, counted.tolist(), strict=True))
    return [
        *member_changes(old.members, new.members),
        *(
            change
            for name in sorted({*old_topics, *new_topics})
            for change in topic_changes(name, old_topics.get(name), new_topics.get(name), kept_by_topic.get(name, 0))
        ),
        *(
            change
            for _row, change in partition_changes(
                PartitionPair(kept_old, kept_new, recreated_topics[kept_new.rows.topic])
            )
        ),
        *(change for _row, change in appeared(added, _by_row(added, whole_topics))),
        *(change for _row, change in disappeared(gone, _by_row(gone, whole_topics))),
    ]


def _topics(snapshot: ClusterSnapshot, policy: RackPolicy) -> dict[str, TopicSummary]:
    required = requirements(snapshot.topics, policy)
    counts = np.bincount(snapshot.partitions.topic, minlength=len(snapshot.topics))
    return {
        topic.name: TopicSummary(
            topic.topic_id,
            int(counts[code]),
            int(required.min_insync_replicas[code]),
            int(required.min_insync_racks[code]),
        )
        for code, topic in enumerate(snapshot.topics)
    }


def _whole_topic_changes(before: dict[str, TopicSummary], after: dict[str, TopicSummary]) -> dict[str, str]:
    """The change of each topic that was created, deleted or recreated, by topic name."""
    return {
        **dict.fromkeys(after.keys() - before.keys(), "topic-created"),
        **dict.fromkeys(before.keys() - after.keys(), "topic-deleted"),
        **{name: RECREATED for name in after.keys() & before.keys() if recreated(before[name], after[name])},
    }


def _rows_in_both(before: PartitionBatch, after: PartitionBatch) -> tuple[Int64s, Int64s]:
    """The rows of the partitions that are in both batches, in the same order: those of the earlier and of the later."""
    row_before = dict(_named_rows(before))
    rows = [(row_before[key], row) for key, row in _named_rows(after) if key in row_before]
    return tuple(np.array(rows, dtype=np.int64).reshape(-1, 2).T)  # type: ignore[return-value]  # Two rows, as reshaped.


def _named_rows(batch: PartitionBatch) -> Iterator[tuple[tuple[str, int], int]]:
    for row, (topic, partition) in enumerate(
        zip(batch.rows.topic.tolist(), batch.rows.partition.tolist(), strict=True)
    ):
        yield (batch.topics[topic], partition), row


def _other_rows(batch: PartitionBatch, rows: Int64s) -> Bools:
    others = np.ones(len(batch.rows), dtype=np.bool_)
    others[rows] = False
    return others


def _by_row(batch: PartitionBatch, whole_topics: dict[str, str]) -> list[str | None]:
    """The change of each row's whole topic, None where the topic stayed."""
    return [whole_topics.get(batch.topics[topic]) for topic in batch.rows.topic.tolist()]
