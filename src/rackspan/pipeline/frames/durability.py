"""The rows of partition_durability: the state of each partition, and the racks of its replicas and ISR."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.durability import STATES, states
from rackspan.model import NO_RACK, UNKNOWN_SIZE, Int32s
from rackspan.pipeline.frames.batches import NumberedBatch, partition_batches
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.pipeline.frames.requirements import BatchFunction
from rackspan.pipeline.schemas import PARTITION_DURABILITY, RACK_NAMES, ddl, own_columns

OWN_COLUMNS: Final = own_columns(PARTITION_DURABILITY)

DURABILITY: Final = f"snapshot INT, {ddl(OWN_COLUMNS)}"

ARROW: Final = pa.schema([("snapshot", pa.int32()), *((column.name, column.type) for column in OWN_COLUMNS)])


def durability(partitions_with_requirements: DataFrame, known: Registrations) -> DataFrame:
    """The state of each partition, as rackspan.audit computes it. Grain: snapshot, topic, partition."""
    return partitions_with_requirements.mapInArrow(_durability_by_batch(known), DURABILITY)


def _durability_by_batch(known: Registrations) -> BatchFunction:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(durability_batch, partition_batches(batches, known))

    return over


def durability_batch(batch: NumberedBatch) -> pa.RecordBatch:
    """One row a partition, columns as in DURABILITY."""
    partitions = batch.partitions
    size_bytes = partitions.rows.size_bytes
    columns = {
        "snapshot": batch.snapshot,
        "topic": _words(partitions.rows.topic, partitions.topics),
        "partition": partitions.rows.partition,
        "internal": batch.internal,
        "leader": partitions.rows.leader,
        "replication_factor": partitions.replication_factor,
        "isr_size": partitions.isr_size,
        "replica_racks": rack_names(partitions.replica_racks, partitions),
        "isr_racks": rack_names(partitions.isr_racks, partitions),
        "replica_rack_count": partitions.replica_rack_count,
        "isr_rack_count": partitions.isr_rack_count,
        "min_insync_replicas": partitions.required.min_insync_replicas,
        "min_insync_racks": partitions.required.min_insync_racks,
        "state": _words(states(partitions), STATES),
        "size_bytes": pa.array(size_bytes, mask=size_bytes == UNKNOWN_SIZE),
    }
    return pa.record_batch([_as(columns[field.name], field.type) for field in ARROW], schema=ARROW)


def rack_names(rack_codes: Int32s, partitions: PartitionBatch) -> pa.Array:
    """The distinct racks of each row by name. `rack_codes` is (P, width); codes ascend as names do."""
    ordered = np.sort(rack_codes, axis=1)
    first = ordered != NO_RACK
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    offsets = np.concatenate(([0], np.cumsum(np.count_nonzero(first, axis=1)))).astype(np.int32)
    names = pa.array(partitions.members.rack_map.racks, pa.string()).take(pa.array(ordered[first]))
    return pa.ListArray.from_arrays(pa.array(offsets), names, type=RACK_NAMES)


def _words(codes: np.ndarray[tuple[int], np.dtype[np.integer]], words: Iterable[str]) -> pa.Array:
    return pa.array(list(words), pa.string()).take(pa.array(codes))


def _as(column: object, kind: pa.DataType) -> pa.Array:
    return column.cast(kind) if isinstance(column, pa.Array) else pa.array(column).cast(kind)
