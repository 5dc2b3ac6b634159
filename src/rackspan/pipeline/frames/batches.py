"""Converts Arrow batches to batches of partitions, so that Spark's tasks can call the functions of rackspan.audit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rackspan.audit.batch import PartitionBatch, Requirements
from rackspan.model.partitions import UNKNOWN_SIZE, Bools, Int32s, PartitionColumns
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.sources.snapshot_folder import list_column

LISTS: Final = ("replicas", "isr", "adding_replicas", "removing_replicas")


@dataclass(frozen=True, slots=True)
class NumberedBatch:
    """Partitions with equal cluster members, of one or several snapshots. `snapshot`, the number of each, and `internal` are (P,)."""

    partitions: PartitionBatch
    snapshot: Int32s
    internal: Bools

    def by_snapshot(self) -> Iterator["NumberedBatch"]:
        """One batch for each snapshot."""
        for snapshot in np.unique(self.snapshot).tolist():
            yield self.take(np.flatnonzero(self.snapshot == snapshot))

    def take(self, rows: Any) -> "NumberedBatch":
        return NumberedBatch(self.partitions.take(rows), self.snapshot[rows], self.internal[rows])


def partition_batches(batches: Iterable[pa.RecordBatch], known: Registrations) -> Iterator[NumberedBatch]:
    """Each Arrow batch of partitions with requirements, split by the registration of their snapshots."""
    for batch in batches:
        if len(batch):
            yield from _by_registration(batch, known)


def _by_registration(batch: pa.RecordBatch, known: Registrations) -> Iterator[NumberedBatch]:
    snapshot = _numpy(batch, "snapshot")
    topic = batch.column("topic").dictionary_encode()
    names, rows = topic.dictionary.to_pylist(), _partitions(batch, topic.indices.to_numpy())
    required = Requirements(**{field.name: _numpy(batch, field.name) for field in fields(Requirements)})
    registration = known.of_snapshot[snapshot]
    internal = _numpy(batch, "internal")
    for place in np.unique(registration).tolist():
        whole = NumberedBatch(PartitionBatch(known.distinct[place], names, rows, required), snapshot, internal)
        yield whole.take(np.flatnonzero(registration == place))


def _partitions(batch: pa.RecordBatch, topic: Int32s) -> PartitionColumns:
    size_bytes = batch.column("size_bytes").fill_null(UNKNOWN_SIZE)
    return PartitionColumns(
        topic=topic.astype(np.int32),
        partition=_numpy(batch, "partition"),
        leader=_numpy(batch, "leader"),
        size_bytes=size_bytes.to_numpy(zero_copy_only=False),
        **{name: list_column(batch.column(name)) for name in LISTS},
    )


def _numpy(batch: pa.RecordBatch, name: str) -> Any:
    return batch.column(name).to_numpy(zero_copy_only=False)
