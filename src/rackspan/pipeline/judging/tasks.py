"""Plans the tasks of a run, on the driver and from logs only: the snapshots that each task judges, and the files that it reads.

Constraints: each snapshot is judged in one task, for all of its tables; a task has snapshots of one day, so that it writes one
file a table. Goal: tasks of equal size, few snapshots read twice. Method: snapshots in order of cluster and time, since each is
compared with the one before it, cut by their number of partitions. Bound: one row of each snapshot in memory. Source: our own. Tests: tests/pipeline/judging/test_tasks.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from rackspan.audit import ClusterMembers, ClusterPolicies
from rackspan.pipeline.changes.difference import chain
from rackspan.pipeline.delta.table import DataFile
from rackspan.pipeline.incremental import RunWork
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.read import files_near, files_of, read_registrations
from rackspan.pipeline.schemas import PARTITIONS, TOPICS
from rackspan.pipeline.warehouse import Warehouse

TASK_PARTITIONS: Final = 500_000
"""The most that a task judges, unless one snapshot has more: a second of work, some 5 MB in a file of partition_durability."""


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """A snapshot that a task reads. It gets rows in `tables`: none if the next snapshot is only compared with it."""

    stored: StoredSnapshot
    members: ClusterMembers
    tables: frozenset[str] = frozenset()
    before: StoredSnapshot | None = None
    """The snapshot that it is compared with."""
    whole: bool = True
    """Whether it gets all of its rows, instead of those that differ from the snapshot before."""
    compared: frozenset[str] = frozenset()
    """The tables of which the next snapshot needs its rows, to be compared with."""


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """One task. `snapshots` are in order of cluster and time; the files may hold rows of other snapshots too."""

    number: int
    root: str
    run_id: str
    snapshots: tuple[TaskSnapshot, ...]
    chain: tuple[StoredSnapshot, ...] = ()
    """The snapshots whose rows are read, in order of time: `snapshots`, and all that they build on."""
    files: Mapping[str, Sequence[DataFile]] = field(default_factory=dict)
    """The files to read, by landing table."""

    @property
    def judged(self) -> list[TaskSnapshot]:
        return [snapshot for snapshot in self.snapshots if snapshot.tables]

    @property
    def partitions(self) -> int:
        """How many rows of partitions the task reads."""
        return sum(snapshot.stored.partitions for snapshot in self.snapshots)


def judge_tasks(warehouse: Warehouse, work: RunWork, policies: ClusterPolicies) -> list[JudgeTask]:
    """The tasks of a run. Errors: InvalidWarehouse; UsageError where a policy refuses a cluster."""
    snapshots = _with_tables(work, cluster_members(warehouse, work.snapshots, policies))
    building = any(snapshot.base_id for snapshot in work.snapshots)
    known = read_markers(warehouse, skip_damaged=True).with_bases(work.snapshots) if building else None
    every = work.snapshots if known is None else tuple(known.values())
    files = {table.name: files_of(warehouse, table, every) for table in (PARTITIONS, TOPICS)}
    tasks = []
    for number, judged in enumerate(_cut([snapshot for snapshot in snapshots.values() if snapshot.tables])):
        read = {snapshot.stored.snapshot_id: snapshot for snapshot in judged}
        for snapshot in judged:
            if snapshot.before is not None:
                # What another task judges is only compared here.
                identity = snapshot.before.snapshot_id
                before = read.get(identity) or replace(snapshots[identity], tables=frozenset(), before=None)
                needed = frozenset() if snapshot.whole else snapshot.tables
                read[identity] = replace(before, compared=needed)
        ordered = sorted(read.values(), key=lambda snapshot: (snapshot.stored.cluster_id, snapshot.stored.taken_at))
        stored = _with_bases([snapshot.stored for snapshot in ordered], known)
        near = {name: files_near(of_table, stored) for name, of_table in files.items()}
        tasks.append(JudgeTask(number, warehouse.root, work.run_id, tuple(ordered), tuple(stored), near))
    return tasks


def _with_bases(stored: list[StoredSnapshot], known: Mapping[str, StoredSnapshot] | None) -> list[StoredSnapshot]:
    """Some snapshots and what they build on, in order of time."""
    if known is None:
        return stored
    bases = {identity: snapshot.base_id for identity, snapshot in known.items()}
    ids = {identity for snapshot in stored for identity in chain(snapshot.snapshot_id, bases)}
    return [snapshot for identity, snapshot in known.items() if identity in ids]


def cluster_members(
    warehouse: Warehouse, stored: Sequence[StoredSnapshot], policies: ClusterPolicies
) -> list[ClusterMembers]:
    """The brokers and controllers of each snapshot with the policy of its cluster; equal ones are one object.

    Errors: InvalidWarehouse; UsageError where the policy refuses a cluster.
    """
    by_hash = read_registrations(warehouse, stored)
    # Two clusters may have equal members, as two of a laptop have, and policies of their own. A policy is not hashable.
    policy_of = {snapshot.cluster_id: policies.of_cluster(snapshot.cluster_id) for snapshot in stored}
    found: dict[tuple[str, int], ClusterMembers] = {}
    for snapshot in stored:
        policy = policy_of[snapshot.cluster_id]
        key = snapshot.members, id(policy)
        if key not in found:
            found[key] = ClusterMembers(*by_hash[snapshot.members], policy)
    return [found[snapshot.members, id(policy_of[snapshot.cluster_id])] for snapshot in stored]


def _with_tables(work: RunWork, members: Sequence[ClusterMembers]) -> dict[str, TaskSnapshot]:
    """Every snapshot of a run by id, each with the tables that get its rows."""
    tables: list[set[str]] = [set() for _ in work.snapshots]
    differing, bases = work.differing, work.bases
    for name, table in work.tables.items():
        for place in differing.intersection(table.judged):
            tables[place].add(name)
    before = {after: work.snapshots[place] for place, after in work.pairs(differing)}
    return {
        stored.snapshot_id: TaskSnapshot(
            stored, members[place], frozenset(tables[place]), before.get(place), bases[stored.snapshot_id] is None
        )
        for place, stored in enumerate(work.snapshots)
    }


def _cut(judged: Sequence[TaskSnapshot]) -> Iterator[list[TaskSnapshot]]:
    """The snapshots of each task: of one day, and of about as many partitions as every other one of the day."""
    in_order = sorted(
        judged, key=lambda snapshot: (snapshot.stored.day, snapshot.stored.cluster_id, snapshot.stored.taken_at)
    )
    for _, of_day in groupby(in_order, key=lambda snapshot: snapshot.stored.day):
        snapshots = list(of_day)
        total = sum(snapshot.stored.partitions for snapshot in snapshots)
        share = total / max(1, -(-total // TASK_PARTITIONS))
        first = done = 0
        for end, snapshot in enumerate(snapshots):
            if end > first and done + snapshot.stored.partitions > share:
                yield snapshots[first:end]
                first, done = end, 0
            done += snapshot.stored.partitions
        yield snapshots[first:]
