"""Readings are stored with their snapshots, once, and read back as they were."""

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.model import columns
from rackspan.pipeline.hours.read import TaskReadings
from rackspan.pipeline.hours.work import HoursWork, concerned_hours, hour_tasks, with_reading
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.read import find_damage
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import OF_READINGS
from rackspan.pipeline.warehouse import Warehouse
from rackspan.traffic import ClusterLogs, ClusterReading
from tests.pipeline.examples import NOON, small
from tests.pipeline.readings import history, reading_of, same_readings, store_readings


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return pipeline.create_warehouse(tmp_path / "warehouse")


def stored(warehouse: Warehouse) -> list[StoredSnapshot]:
    markers = read_markers(warehouse)
    return markers.of_days(markers.count_by_day())


def kept(warehouse: Warehouse) -> list[ClusterReading]:
    """The readings of a warehouse, in order of cluster and time."""
    markers = with_reading(read_markers(warehouse))
    given = markers.of_days(markers.count_by_day())
    work = HoursWork("1", tuple(concerned_hours(markers, given)))
    found = {}
    for task in hour_tasks(warehouse, work, RackPolicy()):
        readings = TaskReadings(task)
        for each in task.of_readings:
            for one, reading in zip(each.snapshots, readings.of(each.snapshots), strict=True):
                found[one.cluster_id, one.taken_at] = reading
    return [reading for _, reading in sorted(found.items(), key=lambda item: item[0])]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_readings_are_read_back_as_they_were_whatever_their_snapshots_build_on(warehouse: Warehouse, seed: int) -> None:
    given = history(Random(seed), 12)
    bases = Bases()
    for reading in given:
        store_readings(warehouse, [reading], bases)
    assert any(one.base_id for one in stored(warehouse))
    found = kept(warehouse)
    assert len(found) == len(given)
    for mine, theirs in zip(found, given, strict=True):
        assert same_readings(mine, theirs)
        assert mine.snapshot.same_as(theirs.snapshot) or mine.snapshot.partitions.size_bytes is not None


@pytest.mark.slow
def test_a_reading_that_is_stored_twice_is_there_once(warehouse: Warehouse) -> None:
    given = history(Random(1), 3)
    store_readings(warehouse, given)
    store_readings(warehouse, given)
    counts = {name: len(list(pipeline.rows(warehouse, name))) for name in OF_READINGS}
    assert counts == {
        "readings": 3,
        "logs": 3 * 6,
        "group_descriptions": 3 * 3,
        "group_members": sum(len(group.members) for one in given for group in one.groups),
        "committed_offsets": sum(len(of) for one in given for of in one.logs.committed.values()),
        "gateway_counters": 3,
        "broker_counters": sum(len(one.bytes_out) for one in given),
    }


def test_a_snapshot_without_a_reading_has_no_rows_of_one_and_is_whole(warehouse: Warehouse) -> None:
    store_all([small()], warehouse)
    assert [dict(one.stored_rows).keys() & OF_READINGS.keys() for one in stored(warehouse)] == [set()]
    assert find_damage(warehouse, stored(warehouse)).snapshots == {}


@pytest.mark.slow
def test_a_reading_of_which_rows_are_lost_is_not_whole(warehouse: Warehouse) -> None:
    store_readings(warehouse, history(Random(2), 2))
    folder = warehouse.table_folder("logs")
    assert folder is not None
    for file in folder.rglob("*.parquet"):
        file.unlink()
    assert len(find_damage(warehouse, stored(warehouse)).snapshots) == 2


@pytest.mark.slow
def test_rows_of_a_cluster_without_groups_or_offsets_are_none(warehouse: Warehouse) -> None:
    (reading,) = history(Random(3), 1)
    bare = replace(reading, groups=(), selectors={}, counters={}, logs=replace(reading.logs, committed={}))
    store_readings(warehouse, [bare])
    (found,) = kept(warehouse)
    assert same_readings(found, bare)
    assert found.read_at > NOON


@pytest.mark.slow
def test_a_reading_of_a_cluster_without_topics_is_read_back(warehouse: Warehouse) -> None:
    given = reading_of(small())
    none: list[int] = []
    snapshot = replace(
        given.snapshot,
        topics=(),
        partitions=columns(topic=none, partition=none, leader=none, replicas=[], isr=[]),
    )
    no_offsets = np.zeros(0, np.int64)
    logs = ClusterLogs(snapshot, given.read_at, no_offsets, no_offsets.reshape(0, 0), start_offset=no_offsets)
    bare = replace(given, logs=logs)
    store_readings(warehouse, [bare])
    (found,) = kept(warehouse)
    assert same_readings(found, bare)
