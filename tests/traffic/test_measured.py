"""What gateways counted takes the place of the same bytes, once."""

import numpy as np

from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.model import RackId, TopicPartition
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription
from rackspan.traffic import (
    Basis,
    CountedFlow,
    TrafficFlow,
    TrafficPath,
    consume_flows,
    measured_flows,
    produce_flows,
    produced_flows,
)
from rackspan.traffic.flows import Link
from rackspan.traffic.measured import read_bytes, since
from tests.clients.worlds import World
from tests.traffic.volumes import volumes_of

PRODUCE, CONSUME, FOLLOWER = TrafficPath.PRODUCE, TrafficPath.CONSUME, TrafficPath.FOLLOWER_FETCH


def world() -> World:
    return World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1, 2], [1, 2]), ("u", 0): (2, [1, 2], [1, 2])},
        dict.fromkeys((1, 2), ReplicaSelectors.LEADER),
        declared={"a": "r2", "b": None},
        reads={"a": [("t", 0)], "b": [("u", 0)]},
    )


def produced(counted: dict[CountedFlow, int]) -> list[tuple[str, str | None, str | None, int | None, Basis]]:
    snapshot = world().snapshot()
    estimated = produce_flows(snapshot, volumes_of(snapshot, np.array([900, 600], np.int64)))
    return [
        (flow.link.topic, flow.link.source_rack, flow.link.destination_rack, flow.size_bytes, flow.link.basis)
        for flow in produced_flows(estimated, counted)
    ]


def test_what_was_counted_of_produce_comes_off_the_estimate_of_its_topic() -> None:
    counted = {CountedFlow(PRODUCE, "t", "p", "r2", "r1"): 300, CountedFlow(PRODUCE, "t", "q", "r2", "r1"): 300}
    assert produced(counted) == [
        ("t", "r2", "r1", 600, Basis.MEASURED),
        ("t", "r1", "r1", 150, Basis.ESTIMATED),
        ("t", "r2", "r1", 150, Basis.ESTIMATED),
        ("u", "r1", "r2", 300, Basis.ESTIMATED),
        ("u", "r2", "r2", 300, Basis.ESTIMATED),
    ]


def test_no_estimate_is_left_if_all_or_more_was_counted() -> None:
    assert [row for row in produced({CountedFlow(PRODUCE, "t", "p", "r1", "r1"): 1000}) if row[0] == "t"] == [
        ("t", "r1", "r1", 1000, Basis.MEASURED)
    ]


def test_bytes_of_a_rack_that_is_not_known_stay_in_the_estimate() -> None:
    assert {row[4] for row in produced({CountedFlow(PRODUCE, "t", "p", "", "r1"): 300})} == {Basis.ESTIMATED}
    assert sum(row[3] or 0 for row in produced({CountedFlow(PRODUCE, "t", "p", "", "r1"): 300})) == 1500


def consumed(counted: dict[CountedFlow, int], kind: GroupKind = GroupKind.CLASSIC) -> set[tuple[object, ...]]:
    places = world()
    places.kind = kind
    snapshot, group = places.snapshot(), places.group()
    reads = group_reads(group, snapshot, places.selectors)
    found, left = measured_flows(reads, [group], counted)
    derived = consume_flows(snapshot, volumes_of(snapshot, np.array([900, 600], np.int64)), [left])
    return {
        (
            flow.link.path,
            flow.link.topic,
            flow.link.source_rack,
            flow.link.destination_rack,
            flow.size_bytes,
            flow.link.basis,
        )
        for flow in (*found, *derived)
    }


DERIVED_T = (CONSUME, "t", "r1", "r2", 900, Basis.DERIVED)
ESTIMATED_U = {(CONSUME, "u", "r2", rack, 300, Basis.ESTIMATED) for rack in ("r1", "r2")}


def test_what_was_counted_of_a_member_takes_the_place_of_what_is_derived() -> None:
    counted = {
        CountedFlow(CONSUME, "t", "client-a", "r1", "r2"): 40,
        CountedFlow(FOLLOWER, "t", "client-a", "r2", "r2"): 50,
    }
    assert consumed(counted) == {
        (CONSUME, "t", "r1", "r2", 40, Basis.MEASURED),
        (FOLLOWER, "t", "r2", "r2", 50, Basis.MEASURED),
        *ESTIMATED_U,
    }
    # The member's rack is the gateway's word if nothing else says it.
    elsewhere = {CountedFlow(CONSUME, "u", "client-b", "r2", "r1"): 7}
    assert consumed(elsewhere) == {DERIVED_T, (CONSUME, "u", "r2", "r1", 7, Basis.MEASURED)}


def test_counts_without_a_rack_of_others_and_of_share_groups_replace_nothing() -> None:
    unknown = {CountedFlow(CONSUME, "u", "client-b", "r2", ""): 7}
    strangers = {
        CountedFlow(CONSUME, "t", "somebody", "r1", "r2"): 7,
        CountedFlow(PRODUCE, "t", "client-a", "r1", "r2"): 7,
    }
    assert consumed(unknown) == consumed(strangers) == {DERIVED_T, *ESTIMATED_U}
    shared = {CountedFlow(CONSUME, "t", "client-a", "r1", "r2"): 40}
    assert DERIVED_T in consumed(shared, GroupKind.SHARE)


def test_reads_leave_out_what_was_written() -> None:
    counted = {CountedFlow(PRODUCE, "t", "c", "r1", "r2"): 7, CountedFlow(CONSUME, "t", "c", "r1", "r2"): 5}
    assert read_bytes(counted) == {("c", "t"): {("r1", "r2"): 5}}


def test_counters_that_stood_still_or_are_new_or_went_back() -> None:
    before = {"still": 5, "grown": 5, "back": 5, "to zero": 5, "gone": 5}
    after = {"still": 5, "grown": 7, "back": 4, "to zero": 0, "new": 9}
    assert since(before, after) == {"still": 0, "grown": 2, "back": 4, "to zero": 0, "new": 9}


def test_reads_of_one_client_and_topic_are_summed_by_the_racks_that_they_left_and_reached() -> None:
    counted = {
        CountedFlow(CONSUME, "t", "c", "r1", "r2"): 5,
        CountedFlow(FOLLOWER, "t", "c", "r1", "r2"): 6,
        CountedFlow(CONSUME, "t", "c", "r2", "r1"): 7,
        CountedFlow(CONSUME, "u", "c", "r1", "r2"): 8,
        CountedFlow(CONSUME, "t", "d", "", ""): 9,
    }
    assert read_bytes(counted) == {
        ("c", "t"): {("r1", "r2"): 11, ("r2", "r1"): 7},
        ("c", "u"): {("r1", "r2"): 8},
        ("d", "t"): {("", ""): 9},
    }


def estimate(topic: str, source: str, size: int | None) -> TrafficFlow:
    return TrafficFlow(Link(PRODUCE, topic, None, RackId(source), RackId("r1"), Basis.ESTIMATED, "spread"), size)


def test_what_is_left_of_an_estimate_says_that_it_is_what_was_not_counted() -> None:
    counted = {
        CountedFlow(PRODUCE, "u", "p", "r2", "r1"): 0,
        CountedFlow(PRODUCE, "t", "p", "r2", "r1"): 30,
        CountedFlow(PRODUCE, "t", "p", "r1", "r1"): 10,
        CountedFlow(PRODUCE, "t", "p", "r1", ""): 1000,
        CountedFlow(CONSUME, "u", "p", "r1", "r1"): 1000,
    }
    estimated = [
        estimate("t", "r1", 100),
        estimate("t", "r2", 60),
        estimate("t", "r3", None),
        estimate("u", "r1", 9),
        estimate("u", "r2", 0),
    ]
    found = produced_flows(estimated, counted)
    assert [
        (flow.link.topic, flow.link.source_rack, flow.size_bytes, flow.link.basis, flow.link.assumption)
        for flow in found
    ] == [
        ("t", "r1", 10, "measured", "counted by gateways"),
        ("t", "r2", 30, "measured", "counted by gateways"),
        ("t", "r1", 75, "estimated", "spread; less what gateways counted"),
        ("t", "r2", 45, "estimated", "spread; less what gateways counted"),
        ("t", "r3", None, "estimated", "spread"),
        ("u", "r1", 9, "estimated", "spread"),
    ]


def test_nothing_is_left_of_the_only_estimate_of_a_topic_if_more_was_counted() -> None:
    (found,) = produced_flows([estimate("t", "r1", 100)], {CountedFlow(PRODUCE, "t", "p", "r1", "r1"): 101})
    assert (found.size_bytes, found.link.basis) == (101, Basis.MEASURED)
    assert len(produced_flows([estimate("t", "r1", 100)], {CountedFlow(PRODUCE, "t", "p", "r1", "r1"): 99})) == 2


def test_measured_flows_are_sorted_name_their_group_and_have_no_row_of_nothing() -> None:
    places = world()
    snapshot, group = places.snapshot(), places.group()
    reads = group_reads(group, snapshot, places.selectors)
    counted = {
        CountedFlow(FOLLOWER, "t", "client-a", "r2", "r2"): 50,
        CountedFlow(CONSUME, "t", "client-a", "r2", "r1"): 0,
        CountedFlow(CONSUME, "t", "client-a", "r1", "r1"): 40,
        CountedFlow(CONSUME, "t", "client-a", "r1", "r2"): 2,
    }
    found, left = measured_flows(reads, [group], counted)
    # It is in rack r2 by its own word, whatever the gateway says.
    ends = RackId("r1"), RackId("r2")
    in_rack = RackId("r2"), RackId("r2")
    assert found == (
        TrafficFlow(Link(CONSUME, "t", "shop", *ends, Basis.MEASURED, "counted by gateways"), 42),
        TrafficFlow(Link(FOLLOWER, "t", "shop", *in_rack, Basis.MEASURED, "counted by gateways"), 50),
    )
    assert [(member.member.member_id, len(member.reads)) for member in left.members] == [("a", 0), ("b", 1)]
    assert left.group == group


def test_a_client_id_of_members_of_two_groups_proves_nothing() -> None:
    places = world()
    snapshot, group = places.snapshot(), places.group()
    reads = group_reads(group, snapshot, places.selectors)
    twin = MemberDescription("z", "client-a", partitions=(TopicPartition("t", 0),))
    other = GroupDescription("other", "Stable", "consumer", "range", (twin,))
    counted = {CountedFlow(CONSUME, "t", "client-a", "r1", "r2"): 40}
    assert measured_flows(reads, [group, other], counted) == ((), reads)
    assert measured_flows(reads, [group], counted) != ((), reads)
