"""Two snapshots of one cluster held against each other: the whole of drift.py over whole snapshots."""

from collections.abc import Iterator

import numpy as np

from rackspan.audit.batch import PartitionBatch, Requirements, requirements, snapshot_batch
from rackspan.audit.drift.causes import RECREATED, SeenTwice
from rackspan.audit.drift.changes import (
    Change,
    TopicSeen,
    appeared,
    disappeared,
    partition_changes,
    recreated,
    registered_changes,
    topic_changes,
)
from rackspan.audit.policy import RackPolicy
from rackspan.model.partitions import Bools, Int64s
from rackspan.model.snapshot import ClusterSnapshot


def drift(before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy) -> list[Change]:
    """Every change from one snapshot to the next of the same cluster. Errors: UsageError where the policy refuses one."""
    batch = snapshot_batch(before, policy), snapshot_batch(after, policy)
    topics = _topics(before, policy), _topics(after, policy)
    kept_before, kept_after = _in_both(*batch)
    kept = _taken(batch[0], kept_before), _taken(batch[1], kept_after)
    became = _became(*topics)
    gone, new = (_taken(side, _others(side, rows)) for side, rows in zip(batch, (kept_before, kept_after), strict=True))
    again = np.array([became.get(name) == RECREATED for name in kept[1].topics], dtype=np.bool_)[kept[1].rows.topic]
    counted = np.bincount(kept[1].rows.topic, minlength=len(kept[1].topics))
    kept_by_topic = dict(zip(kept[1].topics, counted.tolist(), strict=True))
    return [
        *registered_changes(batch[0].members, batch[1].members),
        *(
            change
            for name in sorted({*topics[0], *topics[1]})
            for change in topic_changes(name, topics[0].get(name), topics[1].get(name), kept_by_topic.get(name, 0))
        ),
        *(change for _row, change in partition_changes(SeenTwice(*kept, again))),
        *(change for _row, change in appeared(new, _whole(new, became))),
        *(change for _row, change in disappeared(gone, _whole(gone, became))),
    ]


def _topics(snapshot: ClusterSnapshot, policy: RackPolicy) -> dict[str, TopicSeen]:
    required = requirements(snapshot.topics, policy)
    counts = np.bincount(snapshot.partitions.topic, minlength=len(snapshot.topics))
    return {
        topic.name: TopicSeen(
            topic.topic_id,
            int(counts[code]),
            int(required.min_insync_replicas[code]),
            int(required.min_insync_racks[code]),
        )
        for code, topic in enumerate(snapshot.topics)
    }


def _became(before: dict[str, TopicSeen], after: dict[str, TopicSeen]) -> dict[str, str]:
    """What became of topics as a whole, those that stayed left out."""
    return {
        **dict.fromkeys(after.keys() - before.keys(), "topic-created"),
        **dict.fromkeys(before.keys() - after.keys(), "topic-deleted"),
        **{name: RECREATED for name in after.keys() & before.keys() if recreated(before[name], after[name])},
    }


def _in_both(before: PartitionBatch, after: PartitionBatch) -> tuple[Int64s, Int64s]:
    """The rows of partitions in both, in the same order."""
    places = dict(_named_rows(before))
    rows = [(places[key], row) for key, row in _named_rows(after) if key in places]
    return tuple(np.array(rows, dtype=np.int64).reshape(-1, 2).T)  # type: ignore[return-value]


def _named_rows(batch: PartitionBatch) -> Iterator[tuple[tuple[str, int], int]]:
    for row, (topic, partition) in enumerate(
        zip(batch.rows.topic.tolist(), batch.rows.partition.tolist(), strict=True)
    ):
        yield (batch.topics[topic], partition), row


def _others(batch: PartitionBatch, rows: Int64s) -> Bools:
    others = np.ones(len(batch.rows), dtype=np.bool_)
    others[rows] = False
    return others


def _taken(batch: PartitionBatch, rows: Int64s | Bools) -> PartitionBatch:
    required = batch.required
    chosen = Requirements(required.min_insync_replicas[rows], required.min_insync_racks[rows], required.enforced[rows])
    return PartitionBatch(batch.members, batch.topics, batch.rows.take(rows), chosen)


def _whole(batch: PartitionBatch, became: dict[str, str]) -> list[str | None]:
    return [became.get(batch.topics[topic]) for topic in batch.rows.topic.tolist()]
