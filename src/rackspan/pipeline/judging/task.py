"""Runs one task: judges its snapshots with the functions of `rackspan.audit`, for every table in one pass over their rows.

Constraints: rows equal those of `rackspan audit`, `rackspan outage` and `rackspan drift` of each whole snapshot; memory is bounded by
the rows of a part. Method: topics are read in ranges, which is one range but for the largest snapshots; what concerns a
partition or a topic is complete in its range, what concerns a cluster is summed over ranges. Bound: the rows of PART_PARTITIONS partitions,
and the findings and harm of a snapshot. Source: our own. Tests: tests/pipeline/judging/test_task.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from rackspan.audit.drift.compare import DriftSide, changed_members, changed_topics
from rackspan.audit.judge import topic_findings, whole_cluster_findings
from rackspan.audit.loads import BrokerLoads, loads, summed_loads
from rackspan.audit.outage import RackLoss, joined_loss, judge_losses, losses_each_rack
from rackspan.pipeline.judging.read import SnapshotPart, snapshot_parts, topic_ranges
from rackspan.pipeline.judging.rows import drift_rows, durability_rows, finding_rows, harm_rows, loss_rows
from rackspan.pipeline.judging.tasks import JudgeTask, TaskSnapshot
from rackspan.pipeline.schemas import DRIFT, FINDINGS, OUTAGE_IMPACT, PARTITION_DURABILITY


@dataclass(slots=True)
class _ClusterSums:
    """The sums over the parts of one snapshot. `losses` has an entry for each loss, with that of each part."""

    loads: list[BrokerLoads] = field(default_factory=list)
    losses: list[list[RackLoss]] = field(default_factory=list)
    sides: tuple[DriftSide, DriftSide] | None = None


def judged_rows(task: JudgeTask) -> Iterator[tuple[str, TaskSnapshot, pa.Table]]:
    """The rows of each table, some at a time, each with its snapshot. Errors: InvalidWarehouse."""
    sums = {snapshot.stored.snapshot_id: _ClusterSums() for snapshot in task.judged}
    ranges = topic_ranges(task)
    for number, topics in enumerate(ranges, start=1):
        parts = snapshot_parts(task, topics)
        for snapshot in task.judged:
            of_cluster = sums[snapshot.stored.snapshot_id]
            for name, rows in _rows_of_part(snapshot, parts, of_cluster):
                yield name, snapshot, rows
            if number == len(ranges):
                for name, rows in _rows_of_cluster(snapshot, of_cluster):
                    yield name, snapshot, rows


def _rows_of_part(
    snapshot: TaskSnapshot, parts: dict[str, SnapshotPart], sums: _ClusterSums
) -> Iterator[tuple[str, pa.Table]]:
    part = parts[snapshot.stored.snapshot_id]
    if PARTITION_DURABILITY.name in snapshot.tables:
        yield PARTITION_DURABILITY.name, durability_rows(part)
    if FINDINGS.name in snapshot.tables:
        yield FINDINGS.name, finding_rows(list(topic_findings(part.batch)))
        sums.loads.append(loads(part.batch))
    if OUTAGE_IMPACT.name in snapshot.tables:
        losses = judge_losses(part.batch, part.internal, losses_each_rack(snapshot.members))
        yield OUTAGE_IMPACT.name, harm_rows(losses)
        sums.losses.append(losses)
    if snapshot.before is not None:
        before = parts[snapshot.before.snapshot_id]
        sums.sides = before.side, part.side
        yield DRIFT.name, drift_rows(list(changed_topics(*sums.sides)), snapshot.before.taken_at)


def _rows_of_cluster(snapshot: TaskSnapshot, sums: _ClusterSums) -> Iterator[tuple[str, pa.Table]]:
    if sums.loads:
        found = whole_cluster_findings(snapshot.members, summed_loads(sums.loads))
        yield FINDINGS.name, finding_rows(list(found))
    if sums.losses:
        yield OUTAGE_IMPACT.name, loss_rows([joined_loss(parts) for parts in zip(*sums.losses, strict=True)])
    if snapshot.before is not None and sums.sides is not None:
        yield DRIFT.name, drift_rows(list(changed_members(*sums.sides)), snapshot.before.taken_at)
