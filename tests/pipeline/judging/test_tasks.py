"""Which snapshots a task has."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot, columns
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.judging import read, tasks
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.warehouse import Warehouse
from tests.pipeline.examples import NOON, small


def sized(hours: int, partitions: int) -> ClusterSnapshot:
    rows = columns(
        topic=[0] * partitions,
        partition=list(range(partitions)),
        leader=[1] * partitions,
        replicas=[[1, 2, 3]] * partitions,
        isr=[[1]] * partitions,
    )
    return replace(small(taken_at=NOON + timedelta(hours=hours)), partitions=rows)


def planned(root: Path, snapshots: Sequence[ClusterSnapshot], skipped: int = 0) -> list[tasks.JudgeTask]:
    """The tasks of all tables; the first snapshots are only compared with the next one."""
    warehouse: Warehouse = pipeline.create_warehouse(root / "warehouse")
    store_all(snapshots, warehouse)
    markers = read_markers(warehouse)
    stored = tuple(markers.of_days(markers.count_by_day()))
    places = tuple(range(skipped, len(stored)))
    work = RunWork("1", stored, {name: TableWork(table, 0, places) for name, table in TABLES.items()})
    return tasks.judge_tasks(warehouse, work, RackPolicy())


@pytest.mark.parametrize(
    ("sizes", "judged"),
    [
        ([1], [[1]]),
        ([3, 3, 4], [[3, 3, 4]]),
        ([3, 3, 5], [[3], [3], [5]]),
        ([11, 1, 1], [[11], [1, 1]]),
        ([6, 6, 6, 6], [[6], [6], [6], [6]]),
        ([4, 4, 4, 4], [[4, 4], [4, 4]]),
    ],
)
def test_tasks_of_a_day_have_as_many_partitions_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], judged: list[list[int]]
) -> None:
    monkeypatch.setattr(tasks, "TASK_PARTITIONS", 10)
    found = planned(tmp_path, [sized(hour, count) for hour, count in enumerate(sizes)])
    assert [[snapshot.stored.partitions for snapshot in task.judged] for task in found] == judged


def test_a_task_has_snapshots_of_one_day_and_reads_the_one_before_each(tmp_path: Path) -> None:
    found = planned(tmp_path, [sized(hour, 1) for hour in (0, 10, 13, 14)], skipped=1)
    assert [[snapshot.stored.taken_at.hour for snapshot in task.judged] for task in found] == [[22], [1, 2]]
    assert [[snapshot.stored.taken_at.hour for snapshot in task.snapshots] for task in found] == [[12, 22], [22, 1, 2]]
    for task in found:
        for snapshot in task.judged:
            assert snapshot.before is not None
            assert snapshot.before.taken_at < snapshot.stored.taken_at
        assert not any(snapshot.tables for snapshot in task.snapshots if snapshot not in task.judged)
        assert {file.day for file in task.files["partitions"]} == {one.stored.day for one in task.snapshots}


def test_a_day_of_snapshots_that_are_only_compared_has_no_task(tmp_path: Path) -> None:
    found = planned(tmp_path, [sized(hour, 1) for hour in (0, 13)], skipped=1)
    assert [[snapshot.stored.taken_at.hour for snapshot in task.snapshots] for task in found] == [[12, 1]]


def test_a_task_reads_no_rows_of_other_snapshots_in_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a compaction a file has those of a day."""
    monkeypatch.setattr(tasks, "TASK_PARTITIONS", 1)
    found = planned(tmp_path, [sized(hour, 1) for hour in (0, 1, 2)])
    assert len(found) == 3
    for task in found:
        batches = read._batches(task, "partitions", read.PARTITION_ROWS)
        ids = {identity for batch in batches for identity in batch.column("snapshot_id").to_pylist()}
        assert ids == {stored.snapshot_id for stored in task.chain}
