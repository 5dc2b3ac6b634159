"""What gateways counted takes the place of the same bytes, once."""

import numpy as np

from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.model.group import GroupKind
from rackspan.traffic import (
    Basis,
    CountedFlow,
    TrafficPath,
    consume_flows,
    measured_flows,
    produce_flows,
    produced_flows,
)
from rackspan.traffic.measured import read_bytes
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
