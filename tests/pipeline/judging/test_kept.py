"""Rows of a snapshot that is compared with the next one are the same whether they are kept or made again."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.judging import kept, task
from rackspan.pipeline.judging.kept import KeptSnapshots
from rackspan.pipeline.judging.tasks import JudgeTask, TaskSnapshot, judge_tasks
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.warehouse import Warehouse
from tests.pipeline.landing.test_bases import random_history

pytestmark = pytest.mark.slow


def stored_history(tmp_path: Path, seed: int) -> tuple[Warehouse, list[StoredSnapshot]]:
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    history, bases = random_history(random.Random(seed)), Bases()
    for snapshot in history:
        store_all([snapshot], warehouse, bases)
    markers = read_markers(warehouse)
    stored = sorted(markers.of_days(markers.count_by_day()), key=lambda one: (one.cluster_id, one.taken_at))
    return warehouse, stored


def differing(stored: Sequence[StoredSnapshot]) -> list[tuple[StoredSnapshot, StoredSnapshot]]:
    """Each snapshot of which changes are stored, behind the one before it."""
    return [
        (before, after)
        for before, after in pairwise(stored)
        if before.day == after.day and not (after.unchanged and after.base_id == before.snapshot_id)
    ]


def task_of(warehouse: Warehouse, two: Sequence[StoredSnapshot], policy: RackPolicy) -> JudgeTask:
    """The later snapshot judged, and compared with the earlier one."""
    work = RunWork("0000000001-a", tuple(two), {name: TableWork(TABLES[name], 0, (1,)) for name in TABLES})
    (found,) = judge_tasks(warehouse, work, policy)
    return found


def rows_of(given: JudgeTask) -> dict[str, list[pa.Table]]:
    found: dict[str, list[pa.Table]] = {}
    for name, _, rows in task.judged_rows(given):
        found.setdefault(name, []).append(rows)
    return found


@pytest.mark.parametrize("seed", [5, 6, 9])
def test_kept_rows_give_what_rows_made_again_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The policy changes in between, by which what is kept is another's."""
    warehouse, stored = stored_history(tmp_path, seed)
    policies = [RackPolicy(), RackPolicy(), RackPolicy(min_insync_racks=2)]
    keeping, hits = KeptSnapshots(), 0
    for number, pair in enumerate(differing(stored)):
        given = task_of(warehouse, pair, policies[number % 3])
        monkeypatch.setattr(task, "KEPT", KeptSnapshots())
        wanted = rows_of(given)
        monkeypatch.setattr(task, "KEPT", keeping)
        hits += keeping.of(given.snapshots[0]) is not None
        assert rows_of(given) == wanted
    assert hits


def test_a_snapshot_that_was_judged_is_not_judged_again_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, stored = stored_history(tmp_path, 5)
    made: list[bool] = []
    of_part = task._rows_of_part

    def counted(snapshot: TaskSnapshot, *words: Any) -> Any:
        made.append(bool(snapshot.tables))
        return of_part(snapshot, *words)

    monkeypatch.setattr(task, "_rows_of_part", counted)
    monkeypatch.setattr(task, "KEPT", KeptSnapshots())
    first, second = next(two for two in pairwise(differing(stored)) if two[0][1] == two[1][0])
    for pair in (first, second):
        rows_of(task_of(warehouse, pair, RackPolicy()))
    assert made == [False, True, True]


def test_no_more_partitions_are_kept_than_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse, stored = stored_history(tmp_path, 1)
    monkeypatch.setattr(kept, "KEPT_PARTITIONS_MAX", stored[0].partitions)
    keeping = KeptSnapshots()
    monkeypatch.setattr(task, "KEPT", keeping)
    for pair in differing(stored):
        rows_of(task_of(warehouse, pair, RackPolicy()))
        assert keeping.partitions <= kept.KEPT_PARTITIONS_MAX
