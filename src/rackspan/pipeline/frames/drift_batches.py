"""Converts Arrow batches of differing topics and partitions for rackspan.audit.drift, and its changes to Arrow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rackspan.audit.batch import ClusterMembers, PartitionBatch, Requirements
from rackspan.audit.drift.causes import PartitionPair
from rackspan.audit.drift.changes import Change, TopicSummary, appeared, disappeared, partition_changes, topic_changes
from rackspan.audit.drift.unread import Unread, is_known
from rackspan.model.partitions import PartitionColumns
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.pipeline.schemas import DRIFT, ddl, own_columns
from rackspan.sources.snapshot_folder import list_column

OWN_COLUMNS: Final = own_columns(DRIFT)[1:]
"""Without the earlier time, which Spark joins."""

ROWS: Final = f"snapshot INT, {ddl(OWN_COLUMNS)}"

ARROW: Final = pa.schema([("snapshot", pa.int32()), *((column.name, column.type) for column in OWN_COLUMNS)])


Gaps: TypeAlias = Mapping[int, tuple[Unread, Unread]]
"""What two compared snapshots could not read, by the number of the later one; a pair that lacks nothing is absent."""

WHOLE: Final = (Unread.NOTHING, Unread.NOTHING)


def change_row(snapshot: int, change: Change) -> dict[str, Any]:
    """One row, columns as in ROWS."""
    return {"snapshot": snapshot, **asdict(change)}


def topic_rows(batches: Iterable[pa.RecordBatch], gaps: Gaps) -> Iterator[pa.RecordBatch]:
    """One row a change, from rows of drift.topics_twice with partition counts."""
    for batch in batches:
        rows = [
            change_row(row["snapshot"], change)
            for row in batch.to_pylist()
            for change in _of_topic(row)
            if is_known(change, *gaps.get(row["snapshot"], WHOLE))
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=ARROW)


def partition_rows(batches: Iterable[pa.RecordBatch], known: Registrations, gaps: Gaps) -> Iterator[pa.RecordBatch]:
    """One row a change, from rows of drift.partitions_twice."""
    for batch in batches:
        changes = [
            change_row(snapshot, change)
            for part in _by_registrations(batch, known)
            for snapshot, change in _of_partitions(part, known)
            if is_known(change, *gaps.get(snapshot, WHOLE))
        ]
        yield pa.RecordBatch.from_pylist(changes, schema=ARROW)


def _of_topic(row: dict[str, Any]) -> Iterator[Change]:
    return topic_changes(row["topic"], _topic(row, "before"), _topic(row, "after"), row["partitions_kept"])


def _topic(row: dict[str, Any], side: str) -> TopicSummary | None:
    if not row[f"in_{side}"]:
        return None
    return TopicSummary(
        row[f"{side}_topic_id"],
        row[f"partitions_{side}"],
        row[f"{side}_min_insync_replicas"],
        row[f"{side}_min_insync_racks"],
    )


def _by_registrations(batch: pa.RecordBatch, known: Registrations) -> Iterator[pa.RecordBatch]:
    """The batch, split by the registrations of both snapshots."""
    before, after = (known.of_snapshot[batch.column(name).to_numpy()] for name in ("previous", "snapshot"))
    both = before.astype(np.int64) * len(known.distinct) + after
    for pair in np.unique(both).tolist():
        yield batch.filter(pa.array(both == pair))


def _of_partitions(part: pa.RecordBatch, known: Registrations) -> Iterator[tuple[int, Change]]:
    in_before, in_after = part.column("in_before"), part.column("in_after")
    registered = [known.of(part.column(name)[0].as_py()) for name in ("previous", "snapshot")]
    kept = part.filter(pc.and_(in_before, in_after))
    new, gone = part.filter(pc.invert(in_before)), part.filter(pc.invert(in_after))
    sides = _partition_batch(kept, "before", registered[0]), _partition_batch(kept, "after", registered[1])
    recreated = np.array([one is not None for one in kept.column("became").to_pylist()], dtype=np.bool_)
    yield from _rows(kept, partition_changes(PartitionPair(*sides, recreated)))
    yield from _rows(new, appeared(_partition_batch(new, "after", registered[1]), new.column("became").to_pylist()))
    yield from _rows(
        gone, disappeared(_partition_batch(gone, "before", registered[0]), gone.column("became").to_pylist())
    )


def _rows(part: pa.RecordBatch, changes: Iterable[tuple[int, Change]]) -> Iterator[tuple[int, Change]]:
    """The changes of rows, each with its snapshot."""
    snapshots = part.column("snapshot").to_pylist()
    return ((snapshots[row], change) for row, change in changes)


def _partition_batch(part: pa.RecordBatch, side: str, registered: ClusterMembers) -> PartitionBatch:
    topic = part.column("topic").dictionary_encode()
    min_replicas, min_racks = (part.column(f"{side}_min_insync_{what}").to_numpy() for what in ("replicas", "racks"))
    none = np.empty((len(part), 0), dtype=np.int32)
    rows = PartitionColumns(
        topic=topic.indices.to_numpy().astype(np.int32),
        partition=part.column("partition").to_numpy(),
        leader=part.column(f"{side}_leader").to_numpy(),
        replicas=list_column(part.column(f"{side}_replicas")),
        isr=list_column(part.column(f"{side}_isr")),
        adding_replicas=none,
        removing_replicas=none.copy(),
        size_bytes=np.full(len(part), -1, dtype=np.int64),
    )
    # A state depends neither on who enforces the minimum nor on the loss to survive.
    required = Requirements(
        min_replicas,
        min_racks,
        enforced=np.zeros(len(part), dtype=np.bool_),
        survive=np.zeros(len(part), dtype=np.int64),
    )
    return PartitionBatch(registered, topic.dictionary.to_pylist(), rows, required)
