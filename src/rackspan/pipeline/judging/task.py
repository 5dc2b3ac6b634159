"""Runs one task: judges its snapshots with the functions of `rackspan.audit`, for every table in one pass over their rows.

Constraints: rows equal those of `rackspan audit`, `rackspan outage` and `rackspan drift` of each whole snapshot; memory is bounded by
the rows of a part. Method: topics are read in ranges, which is one range but for the largest snapshots; what concerns a
partition or a topic is complete in its range, what concerns a cluster is summed over ranges. Bound: the rows of PART_PARTITIONS partitions,
and the findings and harm of a snapshot. Source: our own. Tests: tests/pipeline/judging/test_task.py.
"""

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from rackspan.audit.constraints import KnownWords, finding_columns, throttle_findings
from rackspan.audit.drift.compare import DriftSide, changed_members, changed_topics
from rackspan.audit.judge import topic_findings, whole_cluster_findings
from rackspan.audit.loads import loads, summed_loads
from rackspan.audit.outage import joined_loss, judge_losses, losses_each_rack
from rackspan.pipeline.changes.difference import changes
from rackspan.pipeline.judging.kept import ClusterSums, JudgedSnapshot, KeptSnapshots, RowsByTable
from rackspan.pipeline.judging.read import SnapshotPart, snapshot_parts, topic_ranges
from rackspan.pipeline.judging.rows import (
    drift_rows,
    durability_rows,
    finding_rows,
    harm_rows,
    loss_rows,
    own_change_rows,
    partition_finding_rows,
)
from rackspan.pipeline.judging.tasks import JudgeTask, TaskSnapshot
from rackspan.pipeline.landing.bases import VOLATILE
from rackspan.pipeline.schemas import DRIFT, FINDINGS, OUTAGE_IMPACT, PARTITION_DURABILITY, TABLES

KEPT: Final = KeptSnapshots()

KNOWN_WORDS: Final = KnownWords()
"""Of all tasks of this process: Spark keeps an executor's Python from one task to the next, and most findings stand for hours."""


def judged_rows(task: JudgeTask) -> Iterator[tuple[str, TaskSnapshot, pa.Table]]:
    """The rows of each table, some at a time, each with its snapshot: all of the first of a day, and of the others those that
    differ from the snapshot before, with the column GONE. Errors: InvalidWarehouse.
    """
    sums = {snapshot.stored.snapshot_id: ClusterSums() for snapshot in task.snapshots}
    sides: dict[str, tuple[DriftSide, DriftSide]] = {}
    ranges = topic_ranges(task)
    for topics in ranges:
        parts = snapshot_parts(task, topics)

        def of_part(snapshot: TaskSnapshot) -> RowsByTable:
            identity = snapshot.stored.snapshot_id
            part = parts[identity]  # noqa: B023 - used up before the next part
            if len(ranges) > 1:
                return _rows_of_part(snapshot, part, sums[identity])
            judged = _judged(snapshot, part)
            sums[identity] = judged.sums
            return judged.rows

        yield from _changed(task, of_part)
        for snapshot in task.judged:
            if DRIFT.name in snapshot.tables and snapshot.before is not None:
                two = parts[snapshot.before.snapshot_id].side, parts[snapshot.stored.snapshot_id].side
                sides[snapshot.stored.snapshot_id] = two
                found, since = changed_topics(*two), snapshot.before.taken_at
                yield DRIFT.name, snapshot, drift_rows([*found.of_topics, *found.of_safety], since)
                yield DRIFT.name, snapshot, own_change_rows(found.own, since)
    yield from _changed(task, lambda snapshot: _rows_of_cluster(snapshot, sums[snapshot.stored.snapshot_id]))
    for snapshot in task.judged:
        members = sides.get(snapshot.stored.snapshot_id)
        if members is not None and snapshot.before is not None:
            yield DRIFT.name, snapshot, drift_rows(list(changed_members(*members)), snapshot.before.taken_at)


def _changed(
    task: JudgeTask, rows_of: Callable[[TaskSnapshot], RowsByTable]
) -> Iterator[tuple[str, TaskSnapshot, pa.Table]]:
    """The rows of each snapshot that are stored. Snapshots stand in order of cluster and time."""
    before: RowsByTable = {}
    for snapshot in task.snapshots:
        after = rows_of(snapshot)
        for name in after.keys() & snapshot.tables:
            if snapshot.whole:
                yield name, snapshot, after[name]
            else:
                grain = TABLES[name].grain[2:]
                yield name, snapshot, changes(before[name], after[name], grain, VOLATILE)
        before = after


def _judged(snapshot: TaskSnapshot, part: SnapshotPart) -> JudgedSnapshot:
    """A snapshot that is read at once, which the next task may need again."""
    kept = None if snapshot.tables else KEPT.of(snapshot)
    if kept is None:
        sums = ClusterSums()
        rows = _rows_of_part(snapshot, part, sums)
        kept = JudgedSnapshot(snapshot.members, len(part.batch.rows), rows, sums)
        KEPT.keep(snapshot, kept)
    return kept


def _rows_of_part(snapshot: TaskSnapshot, part: SnapshotPart, sums: ClusterSums) -> RowsByTable:
    wanted, rows, batch = snapshot.tables | snapshot.compared, {}, part.batch.judged
    if PARTITION_DURABILITY.name in wanted:
        rows[PARTITION_DURABILITY.name] = durability_rows(part)
    if FINDINGS.name in wanted:
        rows[FINDINGS.name] = pa.concat_tables(
            [
                partition_finding_rows(finding_columns(batch, KNOWN_WORDS)),
                finding_rows(list(topic_findings(batch))),
            ]
        )
        sums.loads.append(loads(part.batch))
        sums.throttled.extend(throttle_findings(batch))
        sums.moving |= part.may_be_moving
    if OUTAGE_IMPACT.name in wanted:
        losses = judge_losses(batch, part.internal, losses_each_rack(snapshot.members))
        rows[OUTAGE_IMPACT.name] = harm_rows(losses)
        sums.losses.append(losses)
    return rows


def _rows_of_cluster(snapshot: TaskSnapshot, sums: ClusterSums) -> RowsByTable:
    rows = {}
    if sums.loads:
        found = whole_cluster_findings(snapshot.members, summed_loads(sums.loads), complete=not snapshot.stored.partial)
        rows[FINDINGS.name] = finding_rows([*found, *(() if sums.moving else sums.throttled)])
    if sums.losses:
        rows[OUTAGE_IMPACT.name] = loss_rows([joined_loss(parts) for parts in zip(*sums.losses, strict=True)])
    return rows
