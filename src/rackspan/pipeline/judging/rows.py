"""The results of `rackspan.audit` as rows of the derived tables, without the keys of the snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.constraints import FindingColumns
from rackspan.audit.constraints.constraint import SEVERITIES
from rackspan.audit.drift.changes import Change, OwnChanges
from rackspan.audit.durability import STATES, states
from rackspan.audit.findings import Finding
from rackspan.audit.outage import STATES as HARM
from rackspan.audit.outage import RackLoss
from rackspan.model import NO_RACK, UNKNOWN_SIZE, Int32s
from rackspan.model.partitions import sorted_in_row
from rackspan.pipeline.judging.read import SnapshotPart
from rackspan.pipeline.schemas import (
    DRIFT,
    FINDINGS,
    OUTAGE_IMPACT,
    PARTITION_DURABILITY,
    RACK_NAMES,
    Table,
    own_columns,
)


def durability_rows(part: SnapshotPart) -> pa.Table:
    """One row a partition, but for those of diskless topics."""
    batch = part.batch.judged
    size_bytes = batch.rows.size_bytes
    return _rows(
        PARTITION_DURABILITY,
        {
            "topic": _words(batch.rows.topic, batch.topics),
            "partition": batch.rows.partition,
            "internal": part.internal[batch.rows.topic],
            "leader": batch.rows.leader,
            "replication_factor": batch.replication_factor,
            "isr_size": batch.isr_size,
            "replica_racks": rack_names(batch.replica_racks, batch),
            "isr_racks": rack_names(batch.isr_racks, batch),
            "replica_rack_count": batch.replica_rack_count,
            "isr_rack_count": batch.isr_rack_count,
            "min_insync_replicas": batch.required.min_insync_replicas,
            "min_insync_racks": batch.required.min_insync_racks,
            "state": _words(states(batch), STATES),
            "size_bytes": pa.array(size_bytes, mask=size_bytes == UNKNOWN_SIZE),
        },
    )


def finding_rows(found: Sequence[Finding]) -> pa.Table:
    """One row a finding."""
    columns = {column.name: list(map(attrgetter(column.name), found)) for column in own_columns(FINDINGS)}
    return _rows(FINDINGS, {**columns, "severity": [finding.severity.value for finding in found]})


def partition_finding_rows(found: FindingColumns) -> pa.Table:
    """One row a finding about a partition."""
    reasons, remedies, _ = zip(*found.words, strict=True) if found.words else ((), (), ())
    return _rows(
        FINDINGS,
        {
            "constraint": _words(found.constraint, found.names),
            "severity": _words(found.warns.astype(np.int8), SEVERITIES),
            "topic": _words(found.batch.rows.topic[found.rows], found.batch.topics),
            "partition": found.batch.rows.partition[found.rows],
            "reason": list(reasons),
            "remedy": list(remedies),
        },
    )


def harm_rows(losses: Iterable[RackLoss]) -> pa.Table:
    """One row for each loss and topic that it harms."""
    losses = list(losses)
    lost = pa.array([list(loss.racks) for loss in losses], RACK_NAMES)
    names = ("topic", "internal", *HARM)
    harmed = list(map(attrgetter(*names), chain.from_iterable(loss.topics for loss in losses)))
    none = [None] * len(harmed)
    columns = zip(*harmed, strict=True) if harmed else ((),) * len(names)
    return _rows(
        OUTAGE_IMPACT,
        {
            "lost_racks": lost.take(
                pa.array(np.repeat(np.arange(len(losses)), np.array([len(loss.topics) for loss in losses], np.int64)))
            ),
            **dict(zip(names, map(list, columns), strict=True)),
            **dict.fromkeys(("survived", "quorum_holds", "leader_surge"), none),
        },
    )


def loss_rows(losses: Sequence[RackLoss]) -> pa.Table:
    """One row for each loss, about the whole cluster."""
    return _rows(
        OUTAGE_IMPACT,
        {
            "lost_racks": [list(loss.racks) for loss in losses],
            "topic": [None] * len(losses),
            "internal": [None] * len(losses),
            **{name: [loss.total(name) for loss in losses] for name in HARM},
            "survived": [loss.survived for loss in losses],
            "quorum_holds": [loss.quorum and loss.quorum.holds for loss in losses],
            "leader_surge": [
                [{"broker": broker, "leaders": leaders} for broker, leaders in sorted(loss.leader_surge.items())]
                for loss in losses
            ],
        },
    )


def own_change_rows(changes: OwnChanges, previous_taken_at: Any) -> pa.Table:
    """One row a change of a partition's replicas, ISR or leader from the snapshot of that time."""
    none = [None] * len(changes.names)
    return _rows(
        DRIFT,
        {
            "change": changes.names,
            "topic": _words(changes.batch.rows.topic[changes.rows], changes.batch.topics),
            "partition": changes.batch.rows.partition[changes.rows],
            "broker": none,
            "before": changes.before,
            "after": changes.after,
            "cause": none,
            "cause_broker": none,
            "previous_taken_at": [previous_taken_at] * len(none),
        },
    )


def drift_rows(changes: Sequence[Change], previous_taken_at: Any) -> pa.Table:
    """One row a change from the snapshot of that time."""
    columns = {field.name: list(map(attrgetter(field.name), changes)) for field in fields(Change)}
    return _rows(DRIFT, {**columns, "previous_taken_at": [previous_taken_at] * len(changes)})


def rack_names(rack_codes: Int32s, batch: PartitionBatch) -> pa.Array:
    """The distinct racks of each row by name. `rack_codes` is (P, width); codes ascend as names do."""
    ordered = sorted_in_row(rack_codes)
    first = ordered != NO_RACK
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    offsets = np.concatenate(([0], np.cumsum(np.count_nonzero(first, axis=1)))).astype(np.int32)
    names = pa.array(batch.members.rack_map.racks, pa.string()).take(pa.array(ordered[first]))
    return pa.ListArray.from_arrays(pa.array(offsets), names, type=RACK_NAMES)


def _words(codes: np.ndarray[tuple[int], np.dtype[np.integer]], words: Iterable[str]) -> pa.Array:
    return pa.array(list(words), pa.string()).take(pa.array(codes))


def _rows(table: Table, columns: Mapping[str, Any]) -> pa.Table:
    """The rows of a table with its own columns, each cast to its type."""
    own = own_columns(table)
    arrays = [_as(columns[column.name], column.type) for column in own]
    return pa.table(arrays, names=[column.name for column in own])


def _as(column: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(column, list):
        return pa.array(column, kind)
    return column.cast(kind) if isinstance(column, pa.Array) else pa.array(column).cast(kind)
