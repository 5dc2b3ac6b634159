"""What groups would read with other settings, beside plain loops over random clusters."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.clients.measured import TopicBytes
from rackspan.model import UNKNOWN_SIZE
from rackspan.model.group import GroupKind
from rackspan.model.ids import RackId
from rackspan.traffic import Basis, CountedFlow, TrafficFlow, TrafficPath, consume_flows
from rackspan.traffic.flows import Link
from rackspan.traffic.what_if import (
    produced_with_leaders_of,
    reading_as_measured,
    reading_at_home,
    reading_best_assigned,
)
from tests.clients.worlds import World, random_world
from tests.traffic.volumes import volumes_of

BYTES = 6_000_000
"""In each partition; a multiple of the numbers of racks and readers, so that equal parts are whole."""


def across(world: World, changed: object) -> Counter[str]:
    """Bytes across racks by topic."""
    snapshot = world.snapshot()
    volumes = volumes_of(snapshot, np.full(len(world.placed), BYTES, np.int64))
    sums = Counter[str]()
    for flow in consume_flows(snapshot, volumes, [changed]):  # type: ignore[list-item]
        if flow.link.crosses:
            sums[flow.link.topic] += flow.size_bytes or 0
    return sums


def racks_of(world: World) -> list[RackId]:
    return sorted({RackId(rack) for rack in world.racks.values() if rack})


def meant(rack: str, racks: list[RackId]) -> str:
    """The one misspelt name of these worlds."""
    return "r1" if rack == "R1" and "r1" in racks else rack


@pytest.mark.slow
def test_300_random_groups_read_from_their_own_rack_whatever_is_in_sync_there() -> None:
    rng = Random(392)
    for _ in range(300):
        world = random_world(rng)
        world.kind = GroupKind.CLASSIC
        racks = racks_of(world)
        reads = group_reads(world.group(), world.snapshot(), world.selectors)
        # Members that share a partition read equal parts, one without a rack an equal part in each.
        readers = Counter[tuple[str, int]]()
        for member, rack in world.declared.items():
            for read in world.reads[member]:
                readers[read] += 1 if rack else len(racks)
        expected = Counter[str]()
        for member, rack in world.declared.items():
            for read in world.reads[member]:
                leader, _, in_sync = world.placed[read]
                near = {world.racks.get(broker) for broker in in_sync}
                for place in [meant(rack, racks)] if rack else racks:
                    home = world.racks.get(leader)
                    if place not in near and home and home != place:
                        expected[read[0]] += BYTES // readers[read]
        found = across(world, reading_at_home(reads, world.snapshot()))
        assert all(abs(found[topic] - expected[topic]) <= 20 for topic in found | expected)


def test_share_groups_read_from_leaders_whatever_is_set() -> None:
    rng = Random(932)
    world = random_world(rng)
    world.kind = GroupKind.SHARE
    reads = group_reads(world.group(), world.snapshot(), world.selectors)
    assert reading_at_home(reads, world.snapshot()) == reads
    assert reading_best_assigned(reads) == reads


@pytest.mark.slow
def test_the_best_assignment_reads_each_partition_once_and_no_more_across_racks() -> None:
    rng = Random(881)
    changed = 0
    for _ in range(200):
        world = random_world(rng)
        world.kind = GroupKind.CLASSIC
        racks = racks_of(world)
        for member in world.declared:
            world.declared[member] = rng.choice(racks) if racks else None
        reads = group_reads(world.group(), world.snapshot(), world.selectors)
        once = Counter(read.partition for member in reads.members for read in member.reads)
        if not racks or not once or max(once.values()) > 1 or reads.across_at_best is None:
            continue
        best = reading_best_assigned(reads)
        assert Counter(read.partition for member in best.members for read in member.reads) == once
        crossing = sum(member.rack not in read.replicas for member in best.members for read in member.reads)
        assert crossing == reads.across_at_best
        changed += best != reads
    assert changed


def measured_world() -> World:
    """Member `a` declares no rack and reads both topics from their leaders in rack r1."""
    return World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1, 2], [1, 2]), ("u", 0): (1, [1, 2], [1])},
        dict.fromkeys((1, 2), ReplicaSelectors.LEADER),
        declared={"a": None, "b": "r1"},
        reads={"a": [("t", 0), ("u", 0)], "b": []},
    )


IN_RACK, ACROSS = TopicBytes(9, 0, 0), TopicBytes(8, 1, 0)


@pytest.mark.parametrize(
    ("of_topics", "destinations", "rack", "served_from"),
    [
        ({"t": IN_RACK, "u": IN_RACK}, ["r2"], "r2", ["r2", "r1"]),
        ({"t": IN_RACK}, ["r2"], "r2", ["r2", "r1"]),
        ({"t": IN_RACK, "u": ACROSS}, ["r2"], None, ["r1", "r1"]),
        ({"t": IN_RACK}, ["r1", "r2"], None, ["r1", "r1"]),
        ({}, ["r2"], None, ["r1", "r1"]),
    ],
)
def test_a_member_whose_bytes_came_from_one_rack_reads_as_if_it_named_that_rack(
    of_topics: dict[str, TopicBytes], destinations: list[str], rack: str | None, served_from: list[str]
) -> None:
    world = measured_world()
    reads = group_reads(world.group(), world.snapshot(), world.selectors)
    counted = {CountedFlow(TrafficPath.FOLLOWER_FETCH, "t", "client-a", "r2", to): 9 for to in destinations}
    others = {
        CountedFlow(TrafficPath.PRODUCE, "t", "client-a", "r1", "r9"): 9,
        CountedFlow(TrafficPath.CONSUME, "t", "client-b", "r1", "r9"): 9,
        CountedFlow(TrafficPath.CONSUME, "t", "client-a", "r1", "r9"): 0,
    }
    measured = {("a", topic): found for topic, found in of_topics.items()}
    a, b = reading_as_measured(reads, measured, counted | others).members
    assert (a.member.rack, [read.served_from for read in a.reads]) == (rack, served_from)
    assert b == reads.members[1]


def test_producers_write_to_the_racks_of_the_new_leaders_each_topic_by_its_bytes() -> None:
    before = World({1: "r1", 2: "r2"}, {(topic, at): (1, [1, 2], [1, 2]) for topic in "tu" for at in range(3)}, {})
    moved_to_2 = dict.fromkeys([("t", 1), ("t", 2), ("u", 0)], (2, [2, 1], [1, 2]))
    after = replace(before, placed={**before.placed, **moved_to_2})

    def link(topic: str, source: str, destination: str) -> Link:
        ends = RackId(source), RackId(destination)
        return Link(TrafficPath.PRODUCE, topic, None, *ends, Basis.ESTIMATED, "spread")

    produced = [
        TrafficFlow(link("t", "r1", "r1"), 100),
        TrafficFlow(link("t", "r2", "r1"), 7),
        TrafficFlow(link("t", "r2", "r2"), 5),
        TrafficFlow(link("u", "r2", "r1"), 30),
        TrafficFlow(link("t", "r9", "r1"), None),
    ]
    bytes_in = np.array([10, 20, 40, UNKNOWN_SIZE, 1, 1], np.int64)
    moved = produced_with_leaders_of(produced, bytes_in, before.snapshot(), after.snapshot())
    ends = ((flow.link.topic, flow.link.source_rack, flow.link.destination_rack, flow.size_bytes) for flow in moved)
    assert sorted(ends, key=str) == [
        ("t", "r1", "r1", 14),
        ("t", "r1", "r2", 86),
        ("t", "r2", "r1", 1),
        ("t", "r2", "r2", 5),
        ("t", "r2", "r2", 6),
        ("t", "r9", "r1", None),
        ("u", "r2", "r1", 30),
    ]
