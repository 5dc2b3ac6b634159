"""Partitions judged in Spark's own columns, by Arrow batches and a partition at a time: the same in every row and column.

This is what lets the rule stand twice; see docs/decisions/0013-racks-as-bits-in-spark.md.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.audit.batch import ClusterMembers
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
from rackspan.model.json_format import utc_text
from rackspan.pipeline.frames import durability, outage
from rackspan.pipeline.frames.bits import broker_bits
from rackspan.pipeline.frames.bits import durability as durability_bits
from rackspan.pipeline.frames.bits import outage as outage_bits
from rackspan.pipeline.frames.registrations import Registrations, registrations
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.jobs import build
from rackspan.pipeline.jobs.tables import JOBS
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import TABLES
from tests.pipeline import expected
from tests.pipeline.examples import NOON, generated

SNAPSHOTS = 600 if os.environ.get("RACKSPAN_SOAK") else 60
JUDGED = ("partition_durability", "outage_impact")
NEARER = {1001: 6, 2_000_000: 9}
"""Broker ids so far apart are left to Arrow batches, which test_build.py holds against the same judge."""

POLICIES = {
    "shared": RackPolicy(),
    "own, with demands and known controllers": RackPolicy(
        UnrackedPolicy.OWN, 2, {"orders": 1, "a.b": 3}, {101: RackId("a"), 102: RackId("a"), 103: RackId("b")}
    ),
    "ignore": RackPolicy(UnrackedPolicy.IGNORE, 3),
}


def near(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """The same cluster with ids that an array can hold."""

    def moved(ids: Any) -> Any:
        for far, at in NEARER.items():
            ids = np.where(ids == far, np.int32(at), ids)
        return ids

    lists = ("leader", "replicas", "isr", "adding_replicas", "removing_replicas")
    brokers = tuple(replace(one, id=BrokerId(NEARER.get(one.id, one.id))) for one in snapshot.brokers)
    rows = replace(snapshot.partitions, **{name: moved(getattr(snapshot.partitions, name)) for name in lists})
    return replace(snapshot, brokers=brokers, partitions=rows)


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
            removing_replicas=[(), (), (), ()] + [(1, 77) for _ in range(4 * count - 4)],
            size_bytes=[-1, 2**53 + 1, *range(4 * count - 2)],
        ),
    )


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


@pytest.fixture(scope="module")
def everything() -> list[ClusterSnapshot]:
    later = replace(odd(), taken_at=NOON + timedelta(days=1), controllers=(), brokers=odd().brokers[:6])
    return [*map(near, generated(SNAPSHOTS)), odd(), later, of_racks(broker_bits.RACKS_MAX)]


def made(
    spark: SparkSession, snapshots: Sequence[ClusterSnapshot], policy: RackPolicy, root: Path
) -> dict[str, list[dict[str, Any]]]:
    """Rows of both tables as Spark makes them."""
    warehouse = pipeline.create_warehouse(root / "warehouse")
    store_all(snapshots, warehouse)
    markers = read_markers(warehouse)
    stored = tuple(markers.of_days(markers.count_by_day()))
    tables = {name: TableWork(TABLES[name], 0, tuple(range(len(stored)))) for name in JUDGED}
    work = RunWork("0000000001-test", stored, tables)
    known = registrations(warehouse, stored, policy)
    found = {}
    for name, one in tables.items():
        job = build.job_inputs(spark, warehouse, work, one, known)
        frame = build.table_rows(JOBS[name](job), job.compared.snapshots, one.table, work.run_id)
        rows = frame.toArrow().to_pylist()
        typed = [{**row, "taken_at": utc_text(row["taken_at"]), "day": row["day"].isoformat()} for row in rows]
        found[name] = expected.judged_columns(expected.ordered(typed, TABLES[name].grain))
    return found


def wanted(snapshots: Sequence[ClusterSnapshot], policy: RackPolicy, name: str) -> list[Any]:
    return expected.ordered(expected.table(name, snapshots, policy), TABLES[name].grain)


def compare(found: dict[str, list[dict[str, Any]]], snapshots: Sequence[ClusterSnapshot], policy: RackPolicy) -> None:
    for name in JUDGED:
        right = wanted(snapshots, policy, name)
        for mine, theirs in zip(found[name], right, strict=False):
            assert mine == theirs
        assert len(found[name]) == len(right) > len(snapshots)


def never(*_: Any) -> Any:
    raise AssertionError("this run should have gone the other way")


@pytest.mark.spark
@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "ignore"])
def test_bits_say_of_every_partition_what_the_judge_says(
    spark: SparkSession, everything: list[ClusterSnapshot], tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "durability", never)
    monkeypatch.setattr(outage, "partial_harm", never)
    compare(made(spark, everything, POLICIES[policy], tmp_path), everything, POLICIES[policy])


@pytest.mark.spark
def test_arrow_batches_say_the_same(
    spark: SparkSession, everything: list[ClusterSnapshot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability_bits, "durability_bits", never)
    monkeypatch.setattr(outage_bits, "partial_harm_bits", never)
    snapshots = [*everything[-3:], of_racks(broker_bits.RACKS_MAX + 1)]
    policy = POLICIES["own, with demands and known controllers"]
    compare(made(spark, snapshots, policy, tmp_path), snapshots, policy)


def known(*brokers: Broker) -> Registrations:
    return Registrations((ClusterMembers(brokers, (), RackPolicy()),), np.zeros(1, dtype=np.int32))


def racked(count: int) -> list[Broker]:
    return [Broker(BrokerId(one), RackId(f"r{one}")) for one in range(count)]


@pytest.mark.parametrize(
    ("registered", "width", "representable"),
    [
        (known(*racked(3)), 3, True),
        (known(*racked(62)), 6, True),
        (known(*racked(63)), 3, False),
        (known(*racked(3)), 7, False),
        (known(*racked(3)), 0, False),
        (known(Broker(BrokerId(broker_bits.ENTRIES_MAX - 3))), 3, True),
        (known(Broker(BrokerId(broker_bits.ENTRIES_MAX - 2))), 3, False),
    ],
)
def test_what_bits_cannot_represent_is_left_to_arrow_batches(
    registered: Registrations, width: int, representable: bool
) -> None:
    assert (broker_bits.broker_bits(registered, width) is not None) is representable
