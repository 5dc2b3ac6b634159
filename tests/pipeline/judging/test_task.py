"""The rows of a task equal the audit of every snapshot, whatever the tasks and parts: no Spark, and no column in what is expected."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from rackspan import pipeline
from rackspan.audit import ClusterPolicies, RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.model import (
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    RackId,
    Topic,
    TopicName,
    UnrackedPolicy,
    columns,
)
from rackspan.pipeline.delta.append import NewFile
from rackspan.pipeline.incremental import RunWork
from rackspan.pipeline.judging import read, tasks, write
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.warehouse import Warehouse, existing_table
from rackspan.text import utc_text
from tests.depth import at_depth
from tests.pipeline import expected
from tests.pipeline.examples import NOON, as_stored, generated, recorded, small
from tests.pipeline.plain_build import Judged, refresh

POLICIES: Final[Mapping[str, RackPolicy]] = {
    "shared": RackPolicy(),
    "own, with demands and known controllers": RackPolicy(
        UnrackedPolicy.OWN, 2, {"orders": 1, "a.b": 3}, {101: RackId("a"), 102: RackId("a"), 103: RackId("b")}
    ),
    "ignore": RackPolicy(UnrackedPolicy.IGNORE, 3),
}


def odd() -> ClusterSnapshot:
    """Each partition another oddity; a rack that holds controllers alone, and the majority of them."""
    rows: dict[str, tuple[int, list[int], list[int]]] = {
        "all is well": (1, [1, 2, 3], [1, 2, 3]),
        "the next two are in the leader's rack": (1, [1, 4, 7, 2], [1, 4, 7, 2]),
        "the leader is fenced": (8, [8, 2, 3], [8, 2, 3]),
        "the leader is not the first": (3, [1, 2, 3], [2, 3]),
        "nobody is in sync": (-1, [1, 2, 3], []),
        "in sync without a leader": (-1, [1, 2, 3], [1, 2]),
        "all in sync are fenced": (8, [8, 2], [8]),
        "all in sync are unknown": (77, [77, 2_147_483_647, 1], [77, 2_147_483_647]),
        "the only other is in no rack": (1, [1, 9], [1, 9]),
        "in no rack alone": (9, [9], [9]),
        "six": (1, [1, 4, 7, 2, 5, 3], [1, 4, 7, 2, 5, 3]),
        "six in one rack and unknown": (1, [1, 4, 7, 70, 71, 72], [7, 1, 4]),
    }
    leaders, replicas, isr = zip(*rows.values(), strict=True)
    count = len(rows)
    return ClusterSnapshot(
        cluster_id="odd",
        taken_at=NOON,
        brokers=(
            *(Broker(BrokerId(one), RackId(f"r{one % 3}"), fenced=one == 8) for one in range(1, 9)),
            Broker(BrokerId(9)),
        ),
        controllers=tuple(
            Controller(BrokerId(100 + one), RackId("r0" if one else "zone \\ [9] \"'")) for one in range(2)
        ),
        topics=tuple(
            Topic(TopicName(name), internal=name.startswith("__"), config=config)
            for name, config in {
                "__internal": {"min.insync.racks": "2"},
                "asks": {"min.insync.replicas": "2", "min.insync.racks": "3"},
                "beyond": {"min.insync.replicas": "9"},
                "plain": {},
            }.items()
        ),
        partitions=columns(
            topic=[code for code in range(4) for _ in range(count)],
            partition=list(range(count)) * 4,
            leader=leaders * 4,
            replicas=replicas * 4,
            isr=isr * 4,
            removing_replicas=[(), (), (), ()] + [_leaving(row) for row in (replicas * 4)[4:]],
            size_bytes=[-1, 2**53 + 1, *range(4 * count - 2)],
        ),
    )


def _leaving(replicas: Sequence[int]) -> tuple[int, ...]:
    """Brokers 1 and 77, where they are replicas and not the only ones."""
    leaving = tuple(one for one in (1, 77) if one in replicas)
    return leaving if len(leaving) < len(replicas) else ()


def of_racks(count: int) -> ClusterSnapshot:
    """A broker in each rack; each rack but three holds the only replica of a partition."""
    return ClusterSnapshot(
        cluster_id=f"{count} racks",
        taken_at=NOON,
        brokers=tuple(Broker(BrokerId(one), RackId(f"r{one}")) for one in range(count)),
        topics=(Topic(TopicName("t"), config={"min.insync.replicas": "2"}),),
        partitions=columns(
            topic=[0] * count,
            partition=list(range(count)),
            leader=list(range(count)),
            replicas=[[one] for one in range(count - 3)] + [[one, one - 1, 0] for one in range(count - 3, count)],
            isr=[[one] for one in range(count - 3)] + [[one, 0] for one in range(count - 3, count)],
        ),
    )


def everything() -> list[ClusterSnapshot]:
    later = replace(odd(), taken_at=NOON + timedelta(days=1), controllers=(), brokers=odd().brokers[:6])
    given = [*generated(at_depth(test=10, soak=1000)), *recorded()]
    # As one cluster too, so that everything changes from each to the next.
    changing = [
        replace(snapshot, cluster_id="changing", taken_at=NOON + timedelta(hours=hour))
        for hour, snapshot in enumerate(given[:20])
    ]
    return [*given, *changing, odd(), later, of_racks(70)]


def judging_build(warehouse: Warehouse) -> Judged:
    """The tasks of a run one after another in this process, each as an executor gets it."""

    def build(work: RunWork, policies: ClusterPolicies) -> dict[str, list[NewFile]]:
        files: dict[str, list[NewFile]] = {name: [] for name in work.tables}
        for task in tasks.judge_tasks(replace(warehouse, damaged=work.damaged), work, policies):
            for name, file in write.write_task(pickle.loads(pickle.dumps(task))):  # noqa: S301
                files[name].append(file)
        return files

    return build


def check_rows(warehouse: Warehouse, snapshots: list[ClusterSnapshot], policy: RackPolicy) -> None:
    snapshots = as_stored(warehouse, snapshots)
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, policy), table.grain)
        found = expected.judged_columns(pipeline.rows(warehouse, name))
        for mine, theirs in zip(found, wanted, strict=False):
            assert mine == theirs, name
        assert len(found) == len(wanted), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "task_partitions", "part_partitions"),
    [("shared", 500_000, 2_000_000), ("own, with demands and known controllers", 7, 3), ("ignore", 60, 1)],
)
def test_every_table_equals_the_audit_of_every_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, task_partitions: int, part_partitions: int
) -> None:
    """Tasks of one snapshot and of many; parts of a single topic, whose sums make the cluster."""
    monkeypatch.setattr(tasks, "TASK_PARTITIONS", task_partitions)
    monkeypatch.setattr(read, "PART_PARTITIONS", part_partitions)
    snapshots = everything()
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse {a,b} [1] *")
    store_all(snapshots, warehouse, Bases())
    refresh(warehouse, POLICIES[policy], judging_build(warehouse))
    check_rows(warehouse, snapshots, POLICIES[policy])


def throttled(hour: int, *, adding: Sequence[int] = (), partial: tuple[str, ...] = ()) -> ClusterSnapshot:
    """A throttled topic, and another one of which a replica may be being added."""
    configs = {"moved": {}, "throttled": {"leader.replication.throttled.replicas": "*"}}
    return replace(
        small(taken_at=NOON + timedelta(hours=hour)),
        topics=tuple(Topic(TopicName(name), config=config) for name, config in configs.items()),
        partitions=columns(
            topic=[0, 1],
            partition=[0, 0],
            leader=[1, 1],
            replicas=[[1, 2]] * 2,
            isr=[[1, 2]] * 2,
            adding_replicas=[adding, ()],
        ),
        partial=partial,
    )


@pytest.mark.slow
@pytest.mark.parametrize("part_partitions", [1, 2_000_000])
@pytest.mark.parametrize("task_partitions", [1, 500_000])
def test_a_throttle_is_left_behind_only_if_nothing_in_the_cluster_may_be_moving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_partitions: int, task_partitions: int
) -> None:
    """In another part, in a snapshot that another task judged, or unknown."""
    monkeypatch.setattr(tasks, "TASK_PARTITIONS", task_partitions)
    monkeypatch.setattr(read, "PART_PARTITIONS", part_partitions)
    unknown = ("reassignments under way: unknown, no response in time",)
    snapshots = [throttled(0), throttled(1, adding=[2]), throttled(2), throttled(3), throttled(4, partial=unknown)]
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    store_all(snapshots, warehouse, Bases())
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    check_rows(warehouse, snapshots, RackPolicy())
    found = [
        row["taken_at"] for row in pipeline.rows(warehouse, "findings") if row["constraint"] == "throttle-left-behind"
    ]
    assert found == [utc_text(NOON + timedelta(hours=hour)) for hour in (0, 2, 3)]


@pytest.mark.slow
def test_rows_that_another_engine_wrote_again_are_read_in_whatever_order_and_types(tmp_path: Path) -> None:
    """delta-rs writes texts as views when it rewrites a file, and other engines move rows."""
    snapshots = [small(taken_at=NOON + timedelta(hours=hour), leader=1 + hour % 3) for hour in range(3)]
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    store_all(snapshots, warehouse)
    for name in ("topics", "partitions"):
        table = existing_table(warehouse, name)
        rows = table.to_pyarrow_table()
        write_deltalake(table, rows.take(list(reversed(range(len(rows))))), mode="overwrite")
        existing_table(warehouse, name).delete("snapshot_id = 'none of them'")
    refresh(warehouse, RackPolicy(), judging_build(warehouse))
    check_rows(warehouse, snapshots, RackPolicy())


@pytest.mark.slow
def test_a_topic_that_is_lost_is_an_error_and_not_a_row_less(tmp_path: Path) -> None:
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    store_all([small()], warehouse)
    work: list[RunWork] = []

    def without_topics(given: RunWork, policies: ClusterPolicies) -> dict[str, list[NewFile]]:
        work.append(given)
        (task,) = tasks.judge_tasks(warehouse, given, policies)
        write.write_task(replace(task, files={**task.files, "topics": ()}))
        return {}

    with pytest.raises(InvalidWarehouse, match="table topics lacks topics of snapshot 20261120T"):
        refresh(warehouse, RackPolicy(), without_topics)
    assert work


@pytest.mark.slow
def test_files_of_two_attempts_have_different_names_and_no_rows_in_common_with_an_empty_table(tmp_path: Path) -> None:
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    store_all([small()], warehouse)
    attempts: list[dict[str, NewFile]] = []

    def twice(work: RunWork, policies: ClusterPolicies) -> dict[str, list[NewFile]]:
        (task,) = tasks.judge_tasks(warehouse, work, policies)
        attempts.extend(dict(write.write_task(task)) for _ in range(2))
        return {name: [file] for name, file in attempts[1].items()}

    refresh(warehouse, RackPolicy(), twice)
    assert "drift" not in attempts[0]
    for name, file in attempts[0].items():
        assert file.path != attempts[1][name].path
        assert pq.read_metadata(Path(warehouse.table(name)) / file.path).num_rows == file.rows
    check_rows(warehouse, [small()], RackPolicy())
