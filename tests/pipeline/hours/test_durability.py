"""Seconds in states and refusals of stored tables, beside plain loops over whole snapshots, second by second."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.pipeline.hours.work import HOUR, hour_of
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.warehouse import Warehouse
from tests.depth import at_depth
from tests.pipeline import expected, plain_time
from tests.pipeline.examples import NOON, small
from tests.pipeline.plain_build import refresh

pytestmark = pytest.mark.slow

POLICY = RackPolicy(min_insync_racks=2)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return pipeline.create_warehouse(tmp_path / "warehouse")


def history(rng: Random, start: datetime = NOON - timedelta(hours=1, minutes=20)) -> list[ClusterSnapshot]:
    """Snapshots over some hours at whole seconds, a gap now and then, whose partitions change state."""
    found, at = [], start + timedelta(seconds=rng.randrange(600))
    for _ in range(rng.randint(4, 14)):
        snapshot = small(taken_at=at)
        rows = snapshot.partitions
        isr = rows.isr.copy()
        leader = rows.leader.copy()
        for row in range(2):
            held = rng.choice([1, 2, 3, 3])
            isr[row] = [*rows.replicas[row, :held], *[-1] * (3 - held)]
            leader[row] = -1 if rng.random() < 0.1 else rows.replicas[row, 0]
        snapshot = replace(snapshot, partitions=replace(rows, isr=isr, leader=leader))
        if rng.random() < 0.1:
            snapshot = replace(snapshot, partitions=snapshot.partitions.take(np.array([0])))
        found.append(snapshot)
        at += timedelta(seconds=rng.choice([300, 600, 600, 700, 6000]))
    return found


def plain_seconds(
    snapshots: list[ClusterSnapshot], known: Mapping[datetime, datetime]
) -> dict[tuple[object, ...], float]:
    """Second by second: the rows at the last snapshot, until nothing is known of it any more. `known`: until when of each."""
    rows = expected.table("partition_durability", snapshots, POLICY)
    impact = expected.table("outage_impact", snapshots, POLICY)
    states: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        states.setdefault(datetime.fromisoformat(row["taken_at"]), []).append(row)
    lost: dict[Any, list[str]] = {}
    for row in impact:
        if row["topic"] is None and row["survived"] is False and len(row["lost_racks"]) == 1:
            lost.setdefault(datetime.fromisoformat(row["taken_at"]), []).append(row["lost_racks"][0])
    times = [one.taken_at for one in snapshots if one.taken_at is not None]
    sums: Counter[tuple[object, ...]] = Counter()
    hour = hour_of(times[0])
    while hour + HOUR <= times[-1]:
        for second in range(3600):
            at = hour + timedelta(seconds=second)
            until = [time for time in times if time <= at]
            if not until:
                continue
            if at >= known[until[-1]]:
                sums[hour, None, None, "unknown", None] += 1
                continue
            sums[hour, None, None, "known", None] += 1
            for row in states.get(until[-1], ()):
                if row["state"] != "ok":
                    sums[hour, row["topic"], row["partition"], row["state"], None] += 1
            for rack in lost.get(until[-1], ()):
                sums[hour, None, None, "not-survived", rack] += 1
        hour += HOUR
    return dict(sums)


def found_seconds(warehouse: Warehouse) -> dict[tuple[object, ...], float]:
    return {
        (datetime.fromisoformat(row["hour"]), row["topic"], row["partition"], row["state"], row["lost_rack"]): row[
            "seconds"
        ]
        for row in pipeline.rows(warehouse, "durability_time")
    }


@pytest.mark.parametrize("seed", range(at_depth(test=3, soak=200)))
def test_seconds_are_those_of_the_rows_at_each_snapshot_in_whatever_order_they_come(
    warehouse: Warehouse, seed: int
) -> None:
    rng = Random(seed)
    # Over midnight too.
    snapshots = history(rng, NOON + timedelta(hours=10, minutes=rng.randrange(90)) if seed % 2 else NOON)
    bases, left, known = Bases(), list(snapshots), dict[datetime, datetime]()
    while left:
        some = [
            left.pop(rng.randrange(len(left)) if rng.random() < 0.3 else 0)
            for _ in range(min(len(left), rng.randint(1, 4)))
        ]
        period = rng.choice([None, None, 200.0, 400.0])
        store_all(some, warehouse, bases, period_seconds=period)
        times = [one.taken_at for one in some if one.taken_at is not None]
        known |= {at: plain_time.known_until(at, [*known, *times], period) for at in times}
        refresh(warehouse, POLICY)
    assert found_seconds(warehouse) == plain_seconds(snapshots, known)


def test_an_hour_has_rows_once_a_snapshot_after_it_is_judged(warehouse: Warehouse) -> None:
    store_all([small(taken_at=NOON + timedelta(minutes=minute)) for minute in (0, 20, 40)], warehouse)
    refresh(warehouse, POLICY)
    assert found_seconds(warehouse) == {}
    store_all([small(taken_at=NOON + timedelta(minutes=60))], warehouse)
    refresh(warehouse, POLICY)
    assert found_seconds(warehouse)[NOON, None, None, "known", None] == 3600


def test_refusals_are_spans_cut_to_hours_with_the_racks_missing(warehouse: Warehouse) -> None:
    def at(minute: int, held: int) -> ClusterSnapshot:
        snapshot = small(taken_at=NOON + timedelta(minutes=minute))
        isr = snapshot.partitions.isr.copy()
        isr[0] = [1, 2, 3][:held] + [-1] * (3 - held)
        isr[1] = [2, 3, 1]
        topics = tuple(replace(topic, config={"min.insync.replicas": "1"}) for topic in snapshot.topics)
        return replace(snapshot, topics=topics, partitions=replace(snapshot.partitions, isr=isr))

    store_all([at(0, 3), at(20, 1), at(40, 1), at(60, 1), at(80, 3), at(100, 3), at(120, 3)], warehouse)
    refresh(warehouse, POLICY)
    found = [
        (row["topic"], row["since"], row["until"], row["partitions"], row["racks_missing"])
        for row in pipeline.rows(warehouse, "refusals")
    ]
    assert found == [
        ("orders", "2026-11-20T12:20:00Z", "2026-11-20T13:00:00Z", 1, ["r2", "r3"]),
        ("orders", "2026-11-20T13:00:00Z", "2026-11-20T13:20:00Z", 1, ["r2", "r3"]),
    ]


def test_another_policy_makes_the_hours_again(warehouse: Warehouse) -> None:
    rng = Random(3)
    snapshots = history(rng)
    store_all(snapshots, warehouse)
    refresh(warehouse, RackPolicy())
    refresh(warehouse, POLICY)
    times = [one.taken_at for one in snapshots if one.taken_at is not None]
    assert found_seconds(warehouse) == plain_seconds(snapshots, plain_time.of_one_append(times))
