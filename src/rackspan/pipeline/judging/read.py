"""Reads the landing rows of a task's snapshots as batches of partitions, as the functions of `rackspan.audit` take them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rackspan.audit import RackPolicy
from rackspan.audit.batch import PartitionBatch, Requirements, requirements
from rackspan.audit.drift.compare import DriftSide, topic_summaries
from rackspan.audit.drift.unread import Unread, unread
from rackspan.errors import InvalidWarehouse
from rackspan.model import (
    UNKNOWN_SIZE,
    Bools,
    PartitionColumns,
    Topic,
    TopicName,
)
from rackspan.model.partitions import BROKER_LISTS
from rackspan.model.topic import AUDITED_CONFIGS
from rackspan.pipeline.changes.difference import Contents
from rackspan.pipeline.delta.table import read_files_at
from rackspan.pipeline.judging.tasks import JudgeTask, TaskSnapshot
from rackspan.pipeline.schemas import GONE, PARTITIONS, TOPICS
from rackspan.pipeline.warehouse import named_warehouse
from rackspan.sources.snapshot_folder import list_column

PART_PARTITIONS: Final = 2_000_000
"""How many rows of partitions are read at once: some 2 GB with all that is computed of them."""

WORDS: Final = pa.dictionary(pa.int32(), pa.string())
PARTITION_ROWS: Final = pa.schema(
    [("snapshot_id", WORDS), ("topic", WORDS)]
    + [PARTITIONS.schema.field(name) for name in ("partition", "leader", *BROKER_LISTS, "size_bytes", GONE)]
)
TOPIC_ROWS: Final = pa.schema(
    [("snapshot_id", WORDS), *(TOPICS.schema.field(name) for name in ("name", "topic_id", "internal", "config", GONE))]
)


@dataclass(frozen=True, slots=True)
class TopicRange:
    """Topics by name, from `least` to before `end`; None for no end."""

    least: str = ""
    end: str | None = None

    def of(self, names: pa.Array) -> pa.Array:
        """Which of some names are inside."""
        inside = pc.greater_equal(names, self.least)
        return inside if self.end is None else pc.and_(inside, pc.less(names, self.end))


EVERY_TOPIC: Final = TopicRange()


@dataclass(frozen=True)
class SnapshotPart:
    """Some topics of a snapshot, each with all of its partitions. `internal`, `ids` and `required` have one entry a topic code."""

    batch: PartitionBatch
    internal: Bools
    ids: Sequence[str | None]
    required: Requirements
    partial: tuple[str, ...]

    @cached_property
    def side(self) -> DriftSide:
        """The part as one side of a comparison."""
        return DriftSide(self.batch, topic_summaries(self.batch, self.ids, self.required), unread(self.partial))

    @property
    def may_be_moving(self) -> bool:
        """Whether a partition of the part is being reassigned, or which of the cluster are could not be read."""
        return bool(self.batch.reassigning.any() or Unread.MOVES in unread(self.partial))


@dataclass(frozen=True, slots=True)
class _Topics:
    """The topics of a cluster in one snapshot, which mostly are those of the next one too. `rows` are without the snapshot."""

    rows: pa.Table
    names: pa.Array
    internal: Bools
    ids: Sequence[str | None]
    required: Requirements


def topic_ranges(task: JudgeTask) -> list[TopicRange]:
    """The topics in parts that fit into memory, by their partitions in all of the task's snapshots. Errors: InvalidWarehouse."""
    if task.partitions <= PART_PARTITIONS:
        return [EVERY_TOPIC]
    counts: dict[str, int] = {}
    # What is built on a whole snapshot has about as many rows of a topic.
    built = Counter(snapshot.stored.root_id or snapshot.stored.snapshot_id for snapshot in task.snapshots)
    schema = pa.schema([PARTITION_ROWS.field(name) for name in ("snapshot_id", "topic", GONE)])
    for batch in _batches(task, PARTITIONS.name, schema):
        of_whole = pa.Table.from_batches([batch.filter(batch.column(GONE).is_null())]).group_by(
            ["snapshot_id", "topic"]
        )
        for count in of_whole.aggregate([([], "count_all")]).to_pylist():
            rows = count["count_all"] * built[count["snapshot_id"]]
            counts[count["topic"]] = counts.get(count["topic"], 0) + rows
    ends, held = [""], 0
    for name in sorted(counts):
        if held and held + counts[name] > PART_PARTITIONS:
            ends.append(name)
            held = 0
        held += counts[name]
    return [TopicRange(least, end) for least, end in zip(ends, [*ends[1:], None], strict=True)]


def snapshot_parts(task: JudgeTask, topics: TopicRange) -> dict[str, SnapshotPart]:
    """The part of each of a task's snapshots that has these topics, by id. Errors: InvalidWarehouse."""
    bases = {stored.snapshot_id: stored.base_id for stored in task.chain}
    partitions = Contents(("topic", "partition"), _rows(task, PARTITIONS.name, PARTITION_ROWS, "topic", topics), bases)
    of_topics = Contents(("name",), _rows(task, TOPICS.name, TOPIC_ROWS, "name", topics), bases)
    known: dict[str, _Topics] = {}
    return {
        snapshot.stored.snapshot_id: _part(
            task, snapshot, partitions.of(snapshot.stored.snapshot_id), of_topics.of(snapshot.stored.snapshot_id), known
        )
        for snapshot in task.snapshots
    }


def _batches(task: JudgeTask, table: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    ids = [stored.snapshot_id for stored in task.chain]
    return read_files_at(named_warehouse(task.root).table(table), task.files[table], schema, ids)


def _rows(task: JudgeTask, table: str, schema: pa.Schema, key: str, topics: TopicRange) -> pa.Table:
    batches = _batches(task, table, schema)
    if topics != EVERY_TOPIC:
        batches = (batch.filter(topics.of(batch.column(key).cast(pa.string()))) for batch in batches)
    return pa.Table.from_batches(batches, schema).unify_dictionaries().combine_chunks()


def _part(
    task: JudgeTask, snapshot: TaskSnapshot, partitions: pa.Table, topics: pa.Table, known: dict[str, _Topics]
) -> SnapshotPart:
    identity, policy = snapshot.stored.cluster_id, snapshot.members.policy
    if identity not in known or not known[identity].rows.equals(topics):
        known[identity] = _topics(topics, policy)
    of_topics = known[identity]
    words = _only_chunk(partitions, "topic")
    codes = pc.index_in(words.dictionary, of_topics.names).fill_null(-1).to_numpy(zero_copy_only=False)
    codes = codes[words.indices.to_numpy()]
    if bool((codes < 0).any()):
        raise InvalidWarehouse(
            f"{task.root}: table topics lacks topics of snapshot {snapshot.stored.snapshot_id} of {snapshot.stored.cluster_id}"
        )
    rows = _partition_columns(partitions, codes.astype(np.int32))
    batch = PartitionBatch(snapshot.members, of_topics.names.to_pylist(), rows, of_topics.required.of(rows.topic))
    return SnapshotPart(batch, of_topics.internal, of_topics.ids, of_topics.required, snapshot.stored.partial)


def _topics(rows: pa.Table, policy: RackPolicy) -> _Topics:
    names, configs = _only_chunk(rows, "name"), _only_chunk(rows, "config")
    columns = [names, *(pc.map_lookup(configs, key, "first") for key in AUDITED_CONFIGS)]
    return _Topics(
        rows,
        names,
        _only_chunk(rows, "internal").fill_null(False).to_numpy(zero_copy_only=False),
        _only_chunk(rows, "topic_id").to_pylist(),
        requirements([_topic(*row) for row in zip(*map(pa.Array.to_pylist, columns), strict=True)], policy),
    )


def _partition_columns(rows: pa.Table, topic: Any) -> PartitionColumns:
    """The rows in order of topic and partition."""
    read = PartitionColumns(
        topic=topic,
        partition=_only_chunk(rows, "partition").to_numpy(),
        leader=_only_chunk(rows, "leader").to_numpy(),
        size_bytes=_only_chunk(rows, "size_bytes").fill_null(UNKNOWN_SIZE).to_numpy(),
        **{name: list_column(_only_chunk(rows, name)) for name in BROKER_LISTS},
    )
    key = (topic.astype(np.int64) << 32) | read.partition
    return read if bool((key[1:] > key[:-1]).all()) else read.take(np.argsort(key, kind="stable"))


def _topic(name: str, *values: str | None) -> Topic:
    configs = zip(AUDITED_CONFIGS, values, strict=True)
    return Topic(TopicName(name), config={key: value for key, value in configs if value is not None})


def _only_chunk(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.array([], column.type)
