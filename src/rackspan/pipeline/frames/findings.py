"""The rows of the table findings: those of partitions, and those of whole clusters."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from rackspan.audit.constraints import cluster_findings, partition_findings_by_row
from rackspan.audit.constraints.survival import too_few_racks
from rackspan.audit.findings import Finding
from rackspan.audit.goals import excluded_broker_findings, goal_findings
from rackspan.audit.loads import Figure, from_figures
from rackspan.pipeline.frames.batches import NumberedBatch, partition_batches
from rackspan.pipeline.frames.registrations import Registrations
from rackspan.pipeline.frames.requirements import BatchFunction
from rackspan.pipeline.schemas import FINDINGS, ddl, own_columns

OWN_COLUMNS: Final = own_columns(FINDINGS)

FOUND: Final = f"snapshot INT, {ddl(OWN_COLUMNS)}"

ARROW: Final = pa.schema([("snapshot", pa.int32()), *((column.name, column.type) for column in OWN_COLUMNS)])


def partition_findings(partitions_with_requirements: DataFrame, known: Registrations) -> DataFrame:
    """The findings about partitions. Grain: snapshot, constraint, topic, partition."""
    return partitions_with_requirements.mapInArrow(_findings_by_batch(known), FOUND)


def whole_cluster_findings(figures: DataFrame, known: Registrations) -> DataFrame:
    """The findings about whole clusters: constraints and goals. Grain: snapshot, constraint, reason.

    `figures` has the grain snapshot, field, index and at least one row for each snapshot (loads.py).
    """

    def judged(rows: pa.Table) -> pa.Table:
        return judged_cluster(rows, known)

    return figures.groupBy("snapshot").applyInArrow(judged, FOUND)


def judged_cluster(rows: pa.Table, known: Registrations) -> pa.Table:
    """The findings about one snapshot's cluster, from the figures of its loads."""
    snapshot = rows.column("snapshot")[0].as_py()
    registered = known.of(snapshot)
    parts = [Figure(row["field"], row["index"], row["value"]) for row in rows.to_pylist()]
    loads = from_figures(parts, len(registered.brokers))
    found = [
        *cluster_findings(registered),
        *too_few_racks(registered, loads),
        *excluded_broker_findings(registered, loads),
        *goal_findings(registered, loads),
    ]
    return pa.Table.from_batches([_found((snapshot, finding) for finding in found)])


def _findings_by_batch(known: Registrations) -> BatchFunction:
    def over(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(findings_batch, partition_batches(batches, known))

    return over


def findings_batch(batch: NumberedBatch) -> pa.RecordBatch:
    """A row a finding, columns as in FOUND."""
    return _found((int(batch.snapshot[row]), finding) for row, finding in partition_findings_by_row(batch.partitions))


def _found(found: Iterable[tuple[int, Finding]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([_row(snapshot, finding) for snapshot, finding in found], schema=ARROW)


def _row(snapshot: int, finding: Finding) -> dict[str, Any]:
    return {
        "snapshot": snapshot,
        "constraint": finding.constraint,
        "severity": finding.severity.value,
        "topic": finding.topic,
        "partition": finding.partition,
        "reason": finding.reason,
        "remedy": finding.remedy,
    }
