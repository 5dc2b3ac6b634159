"""Two readings a minute apart, of an orders topic that grew from 1,000 bytes in 10 records to 1,300 in 13."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rackspan.clients import ReplicaSelectors
from rackspan.model import Broker, BrokerId, RackId, TopicPartition
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupDescription, MemberDescription
from rackspan.traffic import (
    ClusterReading,
    CountedFlow,
    Interval,
    TrafficPath,
    counted_between,
    reads_of,
)
from tests.traffic.test_logs import AT, Log, reading

T = TopicPartition("t", 0)
MEMBER = MemberDescription("m", "client-m", host="10.0.0.7", rack=RackId("r2"), partitions=(T,))
GROUP = GroupDescription("g", "Stable", "consumer", "range", (MEMBER,))
IDLE = replace(GROUP, group_id="idle", members=())
LEADER = dict.fromkeys(range(1, 6), ReplicaSelectors.LEADER)
COUNTED = CountedFlow(TrafficPath.PRODUCE, "t", "p", "r3", "r1")


def apart(seconds: float, before_period: float = 60.0, after_period: float = 60.0) -> Interval:
    first = reading({"t": Log()})
    return Interval(
        ClusterReading(first, period_seconds=before_period),
        ClusterReading(replace(first, read_at=AT + timedelta(seconds=seconds)), period_seconds=after_period),
    )


def grown() -> Interval:
    first = replace(reading({"t": Log()}), committed={"g": {T: 10}})
    second = replace(
        reading({"t": Log([1300] * 3, end=13)}), committed={"g": {T: 12}}, read_at=AT + timedelta(seconds=90.5)
    )
    return Interval(
        ClusterReading(first, (GROUP,), LEADER, {"http://gateway": {COUNTED: 1000}}, partial=("no log of 4", "both")),
        ClusterReading(
            second, (GROUP, IDLE), LEADER, {"http://gateway": {COUNTED: 1120}}, partial=("both", "no log of 5")
        ),
    )


@pytest.mark.parametrize(
    ("seconds", "before_period", "after_period", "gap"),
    [
        (180, 60, 60, False),
        (180.001, 60, 60, True),
        (300, 100, 10, False),
        (300.001, 100, 10, True),
        (30, 10, 100, False),
        (30.001, 10, 100, True),
    ],
)
def test_readings_further_apart_than_three_periods_of_the_earlier_one_have_a_gap_between_them(
    seconds: float, before_period: float, after_period: float, gap: bool
) -> None:
    assert apart(seconds, before_period, after_period).is_gap is gap


def test_a_collector_that_does_not_say_otherwise_reads_once_a_minute() -> None:
    first = reading({"t": Log()})
    later = replace(first, read_at=AT + timedelta(seconds=180))
    assert not Interval(ClusterReading(first), ClusterReading(later)).is_gap
    assert Interval(ClusterReading(first), ClusterReading(later)).unread == ()
    too_late = replace(first, read_at=AT + timedelta(seconds=181))
    assert Interval(ClusterReading(first), ClusterReading(too_late)).is_gap


def test_an_interval_says_how_long_it_was_and_once_what_either_reading_lacks() -> None:
    passed = grown()
    assert (passed.seconds, passed.unread) == (90.5, ("no log of 4", "both", "no log of 5"))
    assert (passed.before.read_at, passed.after.read_at) == (AT, AT + timedelta(seconds=90.5))


def test_an_interval_has_the_flows_of_every_path_and_what_gateways_counted() -> None:
    passed = grown()
    assert dict(passed.counted) == {COUNTED: 120}
    assert passed.volumes.bytes_in.tolist() == [300]
    assert passed.progress == {"g": {T: 200}}
    assert [each.group.group_id for each in passed.reads] == ["g"]
    grew = "the replica's log grew by as much"
    spread = "producers are spread uniformly over the racks of brokers; less what gateways counted"
    assert [
        (
            flow.link.path,
            flow.link.group,
            flow.link.source_rack,
            flow.link.destination_rack,
            flow.size_bytes,
            flow.link.basis,
            flow.link.assumption,
        )
        for flow in passed.flows
    ] == [
        ("produce", None, "r3", "r1", 120, "measured", "counted by gateways"),
        # A fifth of 300, less 120 of 300.
        *(("produce", None, f"r{number}", "r1", 36, "estimated", spread) for number in range(1, 6)),
        ("replicate", None, "r1", "r2", 300, "derived", grew),
        ("replicate", None, "r1", "r3", 300, "derived", grew),
        ("consume", "g", "r1", "r2", 200, "derived", "the group read what it committed"),
    ]


def test_a_member_counts_where_its_address_is() -> None:
    networks = ClientNetworks({"10.0.0.0/24": "r3"})
    found = replace(grown(), networks=networks).flows
    assert {flow.link.destination_rack for flow in found if flow.link.path is TrafficPath.CONSUME} == {"r3"}


def test_a_group_without_members_reads_nothing() -> None:
    snapshot = reading({"t": Log()}).snapshot
    (found,) = reads_of(snapshot, (IDLE, GROUP), LEADER)
    assert found.group == GROUP
    assert [(read.partition, read.served_from) for member in found.members for read in member.reads] == [(T, "r1")]


def test_a_reading_of_another_snapshot_keeps_all_but_its_racks() -> None:
    first = grown().after
    moved = replace(first.snapshot, brokers=(Broker(BrokerId(1), RackId("x")),))
    second = first.of_snapshot(moved)
    assert second.snapshot is moved
    assert (second.read_at, second.groups, second.counters) == (first.read_at, first.groups, first.counters)
    assert second.logs.end_offset.tolist() == [13]


def test_gateways_that_both_readings_have_are_summed_and_one_that_was_restarted_counts_from_zero() -> None:
    other = COUNTED._replace(topic="u")
    before = {"a": {COUNTED: 100}, "b": {COUNTED: 50, other: 9}, "gone": {COUNTED: 7}}
    after = {"a": {COUNTED: 130}, "b": {COUNTED: 20, other: 9}, "new": {COUNTED: 1000}}
    assert dict(counted_between(before, after)) == {COUNTED: 50, other: 0}
