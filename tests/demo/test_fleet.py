"""Synthetic fleets: every planted fault is found, ranked as designed, and nothing else; events show and pass."""

import runpy
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from rackspan import api
from rackspan.advice import Advice
from rackspan.advice.advice import Concern
from rackspan.demo.fleet import (
    RECORD_BYTES,
    START,
    FleetFault,
    Happening,
    PlantedFault,
    SyntheticCluster,
    SyntheticFleet,
    synthetic_fleet,
)
from rackspan.pipeline import create_warehouse
from rackspan.pipeline.landing.store import SnapshotLocation, store_all
from rackspan.traffic import Basis, ClusterReading, Interval, TrafficPath

DAY = timedelta(days=1)


def advised(fleet: SyntheticFleet, cluster: SyntheticCluster) -> list[Advice]:
    """Over a whole day, in which every topic receives what it does on average."""
    passed = Interval(cluster.reading(fleet.end - DAY), cluster.reading(fleet.end))
    return api.advise(passed.after.snapshot, passed=passed)


def as_designed(fault: PlantedFault) -> tuple[bool, int]:
    """Risks first, then by what is saved."""
    return fault.bytes_a_month is not None, -(fault.bytes_a_month or 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_every_planted_fault_is_found_ranked_as_designed_and_nothing_else(seed: int) -> None:
    fleet = synthetic_fleet(seed)
    assert {fault.fault for fault in fleet.faults} == set(FleetFault)
    assert not fleet.clusters[0].faults
    for cluster in fleet.clusters:
        found = advised(fleet, cluster)
        expected = sorted(cluster.faults, key=as_designed)
        assert [each.kind for each in found] == [fault.kind for fault in expected]
        for advice, fault in zip(found, expected, strict=True):
            about_group = fault.group is not None
            assert advice.group == fault.group
            assert advice.topic == (None if about_group else fault.topic)
            assert (advice.concern is Concern.RISK) == (fault.bytes_a_month is None)
            if fault.bytes_a_month is not None:
                assert advice.bytes_a_month == pytest.approx(fault.bytes_a_month, rel=1e-6)


def test_what_passes_in_a_day_follows_from_the_rates_of_its_topics() -> None:
    fleet = synthetic_fleet(3)
    cluster = fleet.clusters[0]
    passed = Interval(cluster.reading(fleet.end - DAY), cluster.reading(fleet.end))
    bytes_of = {topic.name: topic.partitions * topic.records_an_hour * 24 * RECORD_BYTES for topic in cluster.topics}
    sums = Counter[tuple[str, TrafficPath]]()
    for flow in passed.flows:
        assert flow.link.basis is not Basis.ESTIMATED or flow.link.path is TrafficPath.PRODUCE
        sums[flow.link.topic, flow.link.path] += flow.size_bytes or 0
    for name, size in bytes_of.items():
        assert sums[name, TrafficPath.PRODUCE] == size
        assert sums[name, TrafficPath.REPLICATE] == 2 * size
        assert sums[name, TrafficPath.CONSUME] == size


@pytest.mark.slow
def test_events_show_in_the_readings_and_leave_nothing_behind() -> None:
    fleet = synthetic_fleet(1)
    happened = Counter[Happening]()
    for cluster in fleet.clusters:
        for event in cluster.events:
            happened[event.happening] += 1
            middle, after = cluster.reading(event.since + (event.until - event.since) / 2), cluster.reading(event.until)
            rows = middle.logs.snapshot.partitions
            down = {broker.rack for broker in middle.logs.snapshot.brokers if broker.fenced}
            empty = {group.group_id for group in middle.groups if not group.members}
            moving = {
                middle.logs.snapshot.topics[topic].name
                for topic, adding in zip(rows.topic.tolist(), rows.adding_replicas.tolist(), strict=True)
                if adding[:1] not in ([], [-1])
            }
            assert (down, moving, empty) == (
                {event.rack} - {None},
                {event.topic} - {None},
                {event.group} - {None},
            )
            assert _same_places(after, cluster.reading(event.since - timedelta(seconds=1)))
            renamed = {member.member_id for group in after.groups for member in group.members} - {
                member.member_id
                for group in cluster.reading(event.since - timedelta(seconds=1)).groups
                for member in group.members
            }
            assert bool(renamed) == (event.happening is Happening.DEPLOY)
    assert set(happened) == set(Happening)


def _same_places(one: ClusterReading, other: ClusterReading) -> bool:
    rows, others = one.logs.snapshot.partitions, other.logs.snapshot.partitions
    return (rows.replicas.tolist(), rows.isr.tolist(), rows.leader.tolist()) == (
        others.replicas.tolist(),
        others.isr.tolist(),
        others.leader.tolist(),
    )


@pytest.mark.slow
def test_equal_seeds_give_equal_fleets_and_readings() -> None:
    one, other = synthetic_fleet(7), synthetic_fleet(7)
    assert one == other
    assert one != synthetic_fleet(8)
    for first, second in zip(one.readings(DAY), other.readings(DAY), strict=True):
        assert first.logs.snapshot.same_as(second.logs.snapshot)
        assert first.logs.end_offset.tolist() == second.logs.end_offset.tolist()


@pytest.mark.slow
def test_a_collector_can_store_its_snapshots(tmp_path: Path) -> None:
    fleet = synthetic_fleet(2, days=2)
    snapshots = [reading.logs.snapshot for reading in fleet.readings(timedelta(hours=6))]
    assert [snapshot.taken_at for snapshot in snapshots[:5]] == [START] * 5
    stored = store_all(snapshots, create_warehouse(tmp_path / "warehouse"))
    assert all(isinstance(each, SnapshotLocation) and each.new for each in stored)


def test_the_example_writes_snapshots_that_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(__file__).parents[2] / "examples" / "synthetic_fleet.py"
    runpy.run_path(str(source))["main"](tmp_path / "snapshots", days=2)
    files = sorted((tmp_path / "snapshots").iterdir())
    assert len(files) == 5 * (2 * 4 + 1)
    assert api.snapshot_file(files[0]).read().snapshot.cluster_id == "cluster-1"
    assert len(capsys.readouterr().out.splitlines()) == len(FleetFault)
