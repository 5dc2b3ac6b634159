from dataclasses import replace
from random import Random

import pytest

from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from tests.clients.worlds import World, least_across, random_world, served_from


@pytest.mark.slow
def test_500_random_groups_read_what_plain_loops_say() -> None:
    rng = Random(392)
    known = 0
    for _ in range(500):
        world = random_world(rng)
        found = group_reads(world.group(), world.snapshot(), world.selectors)
        for member in found.members:
            name = member.member.member_id
            reads, rack = world.reads[name], world.declared[name]
            served = [served_from(world, name, read) for read in reads]
            assert [read.served_from for read in member.reads] == served
            local = [rack in {world.racks[broker] for broker in world.placed[read][1]} for read in reads]
            assert member.in_own_rack == (None if rack is None else sum(local))
            assert member.across_at_best == (None if rack is None else len(reads) - sum(local))
            across = None if rack is None or None in served else sum(at != rack for at in served)
            assert member.across == across
            known += across is not None
        each = [member.across for member in found.members]
        assert found.across == (None if None in each else sum(count or 0 for count in each))
    assert known > 100


@pytest.mark.slow
def test_the_best_of_200_random_groups_is_that_of_all_assignments() -> None:
    rng = Random(881)
    compared = 0
    while compared < 200:
        world = random_world(rng)
        if world.kind is GroupKind.SHARE or None in world.declared.values():
            continue
        found = group_reads(world.group(), world.snapshot(), world.selectors)
        assert found.across_at_best == least_across(world)
        compared += 1


def test_a_member_without_a_rack_leaves_the_groups_best_unknown() -> None:
    world = World({1: "r1", 2: "r2"}, {("t", 0): (1, [1], [1])}, {}, declared={"a": None}, reads={"a": [("t", 0)]})
    assert group_reads(world.group(), world.snapshot(), {}).across_at_best is None


def test_readers_of_a_share_group_are_nearest_to_a_leader_in_the_rack_of_most_of_them() -> None:
    world = World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1, 2], [1, 2])},
        dict.fromkeys((1, 2), ReplicaSelectors.RACK_AWARE),
        GroupKind.SHARE,
        declared={"a": "r2", "b": "r2", "c": "r1"},
        reads={name: [("t", 0)] for name in "abc"},
    )
    found = group_reads(world.group(), world.snapshot(), world.selectors)
    assert [member.across for member in found.members] == [1, 1, 0]
    assert (found.across, found.across_at_best) == (2, 1)


def test_an_address_range_says_where_a_member_is_whatever_it_declares() -> None:
    world = World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1, 2], [1, 2])},
        dict.fromkeys((1, 2), ReplicaSelectors.RACK_AWARE),
        declared={"a": "r1", "b": None, "c": "r1"},
        reads={name: [("t", 0)] for name in "abc"},
        hosts={"a": "10.0.2.7", "b": "10.0.2.128", "c": "broker-host"},
    )
    networks = ClientNetworks({"10.0.0.0/16": "r1", "10.0.2.0/24": "r2", "10.0.2.128": "r1"})
    found = group_reads(world.group(), world.snapshot(), world.selectors, networks)
    assert [member.rack for member in found.members] == ["r2", "r1", "r1"]
    assert [member.across for member in found.members] == [1, 0, 0]


def test_a_streams_member_reads_the_partitions_of_its_active_tasks() -> None:
    world = World({1: "r1", 2: "r2"}, {("t", at): (1, [1], [1]) for at in range(3)} | {("u", 0): (2, [2], [2])}, {})
    member = MemberDescription(
        "a", "a", streams=StreamsMember("p", {}, active={"0": (0, 2)}, standby={"0": (1,)}, warmup={}, offsets=None)
    )
    group = GroupDescription(
        "shop",
        "Stable",
        "streams",
        "",
        (member,),
        kind=GroupKind.STREAMS,
        topology={"0": SubtopologyTopics(("t", "u"), ())},
    )
    found = group_reads(group, world.snapshot(), {})
    assert [read.partition for read in found.members[0].reads] == [("t", 0), ("t", 2), ("u", 0)]
    assert found.across_at_best is None


def test_partitions_that_the_snapshot_does_not_have_are_left_out() -> None:
    """Of a topic that is not there, and before, between and after those that are."""
    world = World(
        {1: "r1", 2: "r2"},
        {("t", at): (1, [1], [1]) for at in (1, 3)} | {("u", 5): (2, [2], [2])},
        {},
        declared={"a": "r1"},
        reads={"a": [("t", 0), ("t", 1), ("t", 2), ("t", 3), ("t", 4), ("u", 4), ("u", 5), ("u", 6), ("s", 0)]},
    )
    [member] = group_reads(world.group(), world.snapshot(), {}).members
    assert [(read.partition, read.leader) for read in member.reads] == [
        (("t", 1), "r1"),
        (("t", 3), "r1"),
        (("u", 5), "r2"),
    ]


def test_who_serves_a_reader_is_known_where_the_leader_must_or_its_selector_is() -> None:
    world = World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1, 2], [1, 2])},
        {},
        declared={"without": None, "near": "r1", "far": "r2"},
        reads={name: [("t", 0)] for name in ("without", "near", "far")},
    )
    for selector, served in (
        (ReplicaSelectors.UNKNOWN, ["r1", "r1", None]),
        (ReplicaSelectors.OTHER, ["r1", "r1", None]),
        (ReplicaSelectors.LEADER, ["r1", "r1", "r1"]),
        (ReplicaSelectors.RACK_AWARE, ["r1", "r1", "r2"]),
    ):
        members = group_reads(world.group(), world.snapshot(), {1: selector}).members
        assert [member.reads[0].served_from for member in members] == served
    [without, *_] = members
    assert (without.in_own_rack, without.across, without.across_at_best) == (None, None, None)


def test_members_of_other_topics_are_given_none_of_them_at_best() -> None:
    world = World(
        {1: "r1", 2: "r2"},
        {("t", 0): (2, [2], [2]), ("u", 0): (1, [1], [1])},
        {},
        declared={"a": "r1", "b": "r2"},
        reads={"a": [("t", 0)], "b": [("u", 0)]},
    )
    group = world.group()
    assert group_reads(group, world.snapshot(), {}).across_at_best == 0
    subscribed = [(member, topic) for member, topic in zip(group.members, ("t", "u"), strict=True)]
    own = replace(group, members=tuple(replace(member, topics=frozenset({topic})) for member, topic in subscribed))
    assert group_reads(own, world.snapshot(), {}).across_at_best == 2


def test_a_share_group_without_a_rack_to_lead_in_reads_all_of_it_across() -> None:
    world = World({1: None, 2: "r2"}, {("t", 0): (1, [1], [1])}, {}, GroupKind.SHARE, {"a": "r2"}, {"a": [("t", 0)]})
    assert group_reads(world.group(), world.snapshot(), {}).across_at_best == 1


def test_tasks_of_a_sub_topology_that_is_not_described_read_nothing() -> None:
    world = World({1: "r1"}, {("t", 0): (1, [1], [1])}, {})
    tasks = StreamsMember("p", {}, active={"0": (0,), "7": (0,)}, standby={}, warmup={}, offsets=None)
    group = GroupDescription(
        "shop",
        "Stable",
        "streams",
        "",
        (MemberDescription("a", "a", streams=tasks),),
        kind=GroupKind.STREAMS,
        topology={"0": SubtopologyTopics(("t", "missing"), ())},
    )
    [member] = group_reads(group, world.snapshot(), {}).members
    assert [read.partition for read in member.reads] == [("t", 0)]
